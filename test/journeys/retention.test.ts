// What is kept, and for how long (decisions section 8, Retention): a test for each row that login has.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Address } from "@svc/protocol";
import { getBuiltInIssuer, issueCredential } from "../../service/src/credentials/index.ts";
import { purgeLogins } from "../../service/src/login/retention.ts";
import { purgeDeliveries } from "../../service/src/login/session/back-channel-store.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { openJar } from "../cookie-jar.ts";
import {
  approveByQr,
  authorizationUrl,
  finish,
  logIn,
  makePkce,
  openPage,
  redeem,
} from "../login-flow.ts";
import { untilBlocked, untilWritersEnd } from "../lock-waits.ts";
import { newIdentity, openWalletSession, sameDeviceReturn, scan } from "../raw-wallet.ts";
import { deleteUser } from "../operator-verbs.ts";
import { openWorld, type World } from "../world.ts";

const day = 86_400;
let world: World;
before(async () => {
  world = await openWorld({ DATA_DIR: await mkdtemp(join(tmpdir(), "svc-retention-")) });
});
after(async () => {
  await world[Symbol.asyncDispose]();
  await rm(world.ctx.config.dataDirectory, { recursive: true, force: true });
});

async function rowsOf(text: string, values: unknown[] = []): Promise<number> {
  const [row] = await world.ctx.db.query<{ n: number }>({ name: "", text, values });
  return row?.n ?? -1;
}

test("logins go 30 days after they began, and browser sessions 30 days after their last use", async () => {
  using _ = world.holdTime();
  await openPage(world.baseUrl, world.client);
  await logIn(world.baseUrl, world.client, newIdentity());
  await world.advance(30 * day);
  await purgeLogins(world.ctx);
  await untilWritersEnd(world.ctx.db);
  assert.equal(await rowsOf("select count(*)::int as n from login"), 2);
  assert.equal(await rowsOf("select count(*)::int as n from session"), 1);
  await world.advance(1);
  await purgeLogins(world.ctx);
  await untilWritersEnd(world.ctx.db);
  assert.equal(await rowsOf("select count(*)::int as n from login"), 0);
  assert.equal(await rowsOf("select count(*)::int as n from session"), 0);
});

test("a session that is used at the moment of the purge stays", async () => {
  const identity = newIdentity();
  await logIn(world.baseUrl, world.client, identity);
  // Ages the rows instead of moving the time, which would start the service's own purge.
  for (const text of [
    "update session set used_at = used_at - $1::bigint where user_address = $2",
    "update token_family set refresh_expires_at = refresh_expires_at - $1::bigint where user_address = $2",
  ])
    await world.ctx.db.query({ name: "", text, values: [31 * day, identity.address] });
  const { purge } = await world.ctx.db.transaction(async (tx) => {
    const text = "update session set used_at = $1 where user_address = $2";
    await tx.query({ name: "", text, values: [world.ctx.clock.now(), identity.address] });
    const purging = purgeLogins(world.ctx);
    await untilBlocked(world.ctx.db, tx, [purging]);
    return { purge: purging };
  });
  await purge;
  const text = "select count(*)::int as n from session where user_address = $1";
  assert.equal(await rowsOf(text, [identity.address]), 1);
});

/** One logout that a client was told of, and one that is due tomorrow. */
async function addLogouts(user: string): Promise<void> {
  const now = world.ctx.clock.now();
  for (const [dueAt, endedAt] of [
    [now, now],
    [now + day, null],
  ])
    await rowsOf(
      `insert into logout_delivery (id, client_id, user_address, due_at, created_at, ended_at)
        values (gen_random_uuid(), $1, $2, $3, $4, $5) returning 1 as n`,
      [world.client.id, user, dueAt, now, endedAt],
    );
}

/** A credential of somebody, with a value to forget. */
async function issuePhone(user: Address): Promise<void> {
  const issuer = await getBuiltInIssuer(world.ctx, "demo", "live");
  await issueCredential(world.ctx, issuer, {
    user,
    document: "CONTACT",
    fields: [{ field: "PHONE", data: "+41791234567" }],
    expiresAt: world.ctx.clock.now() + day,
  });
}

test("a deleted user leaves nothing but the audit trail, and every token ends", async () => {
  const identity = newIdentity();
  const { tokens } = await logIn(world.baseUrl, world.client, identity);
  const bearer = await openWalletSession(world.baseUrl, identity);
  await issuePhone(identity.address);
  const started = await fetch(`${world.baseUrl}/w/emails`, {
    method: "POST",
    headers: { ...bearer, "content-type": "application/json" },
    body: JSON.stringify({ email: "alice@example.com" }),
  });
  assert.equal(started.status, 202);
  await addLogouts(identity.address);
  for (const changed of [
    { login_hint: `svcid:${identity.address}` },
    { id_token_hint: tokens.id_token, prompt: "login" },
  ])
    await openPage(world.baseUrl, world.client, { changed });
  const changed = { login_hint: `svcid:${identity.address}` };
  const other = await logIn(world.baseUrl, world.client, newIdentity(), { changed });
  const [status, said] = await deleteUser(world, identity.address);
  assert.equal(status, 0, said);
  assert.deepEqual(JSON.parse(said), { deleted: identity.address, credentials: 1, orders: 0 });
  assert.equal((await deleteUser(world, identity.address))[0], 1);
  for (const [table, column] of [
    ["login", "claimed_by"],
    ["token_family", "user_address"],
    ["session", "user_address"],
    ["wallet_session", "user_address"],
    ["svc_user", "address"],
    ["organization_user", "user_address"],
    ["credential", "user_address"],
    ["email_verification", "user_address"],
  ]) {
    assert.equal(
      await rowsOf(`select count(*)::int as n from ${table} where ${column} = $1`, [
        identity.address,
      ]),
      0,
      table,
    );
  }
  assert.equal(
    await rowsOf("select count(*)::int as n from login where request::text like $1", [
      `%${identity.address}%`,
    ]),
    0,
    "no login names it, whoever answered",
  );
  assert.equal(
    await rowsOf("select count(*)::int as n from login where id = $1", [other.page.loginId]),
    1,
  );
  const logouts = "select count(*)::int as n from logout_delivery where user_address = $1";
  assert.equal(await rowsOf(logouts, [identity.address]), 1, "one is still to be told");
  await purgeDeliveries(world.ctx.db, 0, 100);
  assert.equal(await rowsOf(logouts, [identity.address]), 1);
  await rowsOf("update logout_delivery set ended_at = due_at where user_address = $1 returning 1", [
    identity.address,
  ]);
  await purgeDeliveries(world.ctx.db, 0, 100);
  assert.equal(await rowsOf(logouts, [identity.address]), 0);
  assert.equal(
    await rowsOf("select count(*)::int as n from audit_entry where subject = $1", [
      identity.address,
    ]),
    2,
  );
  const userinfo = await fetch(`${world.baseUrl}/userinfo`, {
    headers: { authorization: `Bearer ${tokens.access_token}` },
  });
  assert.equal(userinfo.status, 401);
  assert.equal((await fetch(`${world.baseUrl}/w/logins`, { headers: bearer })).status, 401);
});

async function assertNothingLeft(user: string): Promise<void> {
  for (const [table, column] of [
    ["login", "claimed_by"],
    ["session", "user_address"],
    ["svc_user", "address"],
    ["organization_user", "user_address"],
  ]) {
    const text = `select count(*)::int as n from ${table} where ${column} = $1`;
    assert.equal(await rowsOf(text, [user]), 0, table);
  }
}

/** Calls while the user's deletion is held between its steps, and lets it go on once the call waits for it. */
async function askDuringDeletion(
  user: `0x${string}`,
  ask: () => Promise<Response>,
): Promise<Response> {
  await issuePhone(user);
  const { deletion, answer } = await world.ctx.db.transaction(async (tx) => {
    const text = "select from credential where user_address = $1 for update";
    await tx.query({ name: "", text, values: [user] });
    const held = deleteUser(world, user);
    await untilBlocked(world.ctx.db, tx, [held]);
    const asked = ask();
    await untilBlocked(world.ctx.db, tx, [held, asked]);
    return { deletion: held, answer: asked };
  });
  assert.equal((await deletion)[0], 0);
  return answer;
}

test("a code that is redeemed while its user is deleted leaves nothing of the user", async () => {
  const identity = newIdentity();
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, identity);
  const code = (await finish(world.baseUrl, page)).searchParams.get("code") ?? "";
  const { verifier } = page.pkce;
  const { status } = await askDuringDeletion(identity.address, async () =>
    redeem(world.baseUrl, world.client, { code, verifier }),
  );
  assert.equal(status, 400);
  const text = "select count(*)::int as n from organization_user where user_address = $1";
  assert.equal(await rowsOf(text, [identity.address]), 0);
});

test("a session that answers while its user is deleted leaves nothing of the user", async () => {
  const identity = newIdentity();
  const jar = openJar();
  await logIn(world.baseUrl, world.client, identity, { jar });
  const url = authorizationUrl(world.baseUrl, world.client, makePkce(), { prompt: "none" });
  const response = await askDuringDeletion(identity.address, async () => jar.fetch(url));
  const location = new URL(response.headers.get("location") ?? "");
  assert.equal(location.searchParams.get("error"), "login_required");
  const text = "select count(*)::int as n from login where claimed_by = $1";
  assert.equal(await rowsOf(text, [identity.address]), 0);
});

test("a login that is finished while its user is deleted is not found, and leaves nothing of the user", async () => {
  const identity = newIdentity();
  const jar = openJar();
  await logIn(world.baseUrl, world.client, identity, { jar });
  const { loginId, ...page } = await openPage(world.baseUrl, world.client, { jar });
  await approveByQr(world.baseUrl, { loginId, ...page }, identity);
  const finishUrl = `${world.baseUrl}/oauth2/login/${loginId}/finish`;
  const { deletion, answer } = await world.ctx.db.transaction(async (tx) => {
    // Holds the deletion between the end of the session and that of the logins.
    const text = "select from token_family where user_address = $1 for update";
    await tx.query({ name: "", text, values: [identity.address] });
    const deleting = deleteUser(world, identity.address);
    await untilBlocked(world.ctx.db, tx, [deleting]);
    const finishing = jar.fetch(finishUrl, { method: "POST" });
    await untilBlocked(world.ctx.db, tx, [deleting, finishing]);
    return { deletion: deleting, answer: finishing };
  });
  assert.equal((await deletion)[0], 0);
  assert.equal((await answer).status, 404);
  await assertNothingLeft(identity.address);
});

test("who approves a login while being deleted is signed up anew", async () => {
  const identity = newIdentity();
  await logIn(world.baseUrl, world.client, identity);
  const { jar, sameDevice } = await openPage(world.baseUrl, world.client);
  const url = sameDeviceReturn(scan(sameDevice), identity);
  const returned = await askDuringDeletion(identity.address, async () => jar.fetch(url));
  assert.equal(returned.status, 303);
  for (const [table, column] of [
    ["svc_user", "address"],
    ["organization_user", "user_address"],
  ]) {
    const text = `select count(*)::int as n from ${table} where ${column} = $1`;
    assert.equal(await rowsOf(text, [identity.address]), 1, table);
  }
});

test("an approval on its way while its user is deleted leaves nothing of the user", async () => {
  const identity = newIdentity();
  const { jar, sameDevice } = await openPage(world.baseUrl, world.client);
  await logIn(world.baseUrl, world.client, identity);
  const url = sameDeviceReturn(scan(sameDevice), identity);
  const { deletion, answer } = await world.ctx.db.transaction(async (tx) => {
    // An approval's last statement inserts this row, so it waits here for the insert of this transaction.
    const [known] = await world.ctx.db.query<{ organization_id: string }>(sql`
      delete from organization_user where user_address = ${identity.address} returning organization_id`);
    await tx.query(sql`
      insert into organization_user (organization_id, user_address, created_at)
      values (${known?.organization_id}, ${identity.address}, 0)`);
    const approving = jar.fetch(url);
    await untilBlocked(world.ctx.db, tx, [approving]);
    const deleting = deleteUser(world, identity.address);
    await untilBlocked(world.ctx.db, tx, [approving, deleting]);
    return { deletion: deleting, answer: approving };
  });
  assert.equal((await answer).status, 303);
  assert.equal((await deletion)[0], 0);
  await assertNothingLeft(identity.address);
});

test("of two deletions of one user at once, the second says that there is no such user", async () => {
  const identity = newIdentity();
  await logIn(world.baseUrl, world.client, identity);
  const deletions = await world.ctx.db.transaction(async (tx) => {
    const text = "select from token_family where user_address = $1 for update";
    await tx.query({ name: "", text, values: [identity.address] });
    const first = deleteUser(world, identity.address);
    await untilBlocked(world.ctx.db, tx, [first]);
    const second = deleteUser(world, identity.address);
    await untilBlocked(world.ctx.db, tx, [first, second]);
    return { first, second };
  });
  assert.deepEqual([(await deletions.first)[0], (await deletions.second)[0]], [0, 1]);
  const text =
    "select count(*)::int as n from audit_entry where action = 'user.delete' and subject = $1";
  assert.equal(await rowsOf(text, [identity.address]), 1);
});
