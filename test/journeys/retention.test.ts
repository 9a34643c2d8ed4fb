// What is kept, and for how long (decisions section 8, Retention): a test for each row that login has.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { getBuiltInIssuer, issueCredential } from "../../service/src/credentials/index.ts";
import { purgeLogins } from "../../service/src/login/retention.ts";
import { logIn, openPage } from "../login-flow.ts";
import { newIdentity, openWalletSession } from "../raw-wallet.ts";
import { deleteUser } from "../user-deletion.ts";
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
  await openPage(world.baseUrl, world.client);
  await logIn(world.baseUrl, world.client, newIdentity());
  await world.advance(30 * day - 10);
  await purgeLogins(world.ctx);
  assert.equal(await rowsOf("select count(*)::int as n from login"), 2);
  assert.equal(await rowsOf("select count(*)::int as n from session"), 1);
  await world.advance(20);
  await purgeLogins(world.ctx);
  assert.equal(await rowsOf("select count(*)::int as n from login"), 0);
  assert.equal(await rowsOf("select count(*)::int as n from session"), 0);
});

test("a deleted user leaves nothing but the audit trail, and every token ends", async () => {
  const identity = newIdentity();
  const { tokens } = await logIn(world.baseUrl, world.client, identity);
  const bearer = await openWalletSession(world.baseUrl, identity);
  const issuer = await getBuiltInIssuer(world.ctx, "demo", "live");
  await issueCredential(world.ctx, issuer, {
    user: identity.address,
    document: "CONTACT",
    fields: [{ field: "PHONE", data: "+41791234567" }],
    expiresAt: world.ctx.clock.now() + day,
  });
  const started = await fetch(`${world.baseUrl}/w/emails`, {
    method: "POST",
    headers: { ...bearer, "content-type": "application/json" },
    body: JSON.stringify({ email: "alice@example.com" }),
  });
  assert.equal(started.status, 202);
  const [status, said] = await deleteUser(world, identity.address);
  assert.equal(status, 0, said);
  assert.deepEqual(JSON.parse(said), { deleted: identity.address });
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
