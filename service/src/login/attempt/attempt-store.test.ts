// The guards in the statements themselves: between what a step has read and what it writes lies another process, or the
// time that a signature takes.
import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { after, test } from "node:test";
import type { Address } from "@svc/protocol";
import { untilBlocked } from "../../../../test/lock-waits.ts";
import { type Queryable, sql } from "../../platform/database/db.ts";
import { findSessionBySecret } from "../session/session-store.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { addClient, openTestLogin, redirectUri, user } from "../test-login.ts";
import { deleteUser } from "../user-deletion.ts";
import {
  approveAttempt,
  approveUnclaimed,
  type Claim,
  claimAttempt,
  type Finish,
  finishAttempt,
  findAttempt,
  insertAttempt,
} from "./attempt-store.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());
const { db, clients } = login.ctx;
const client = await addClient(login);
const { organizationId } = (await clients.find(client.id)) ?? assert.fail();

const begun = login.clock.now();
const end = begun + 120;
const other: Address = `0x${"11".repeat(20)}`;
const browserSha256 = sha256("browser");

async function open(clientId = client.id): Promise<string> {
  const id = randomBytes(16).toString("base64url");
  await insertAttempt(db, {
    id,
    clientId,
    request: { redirectUri, scope: "openid", wantsRefresh: false, audience: [], prompt: [] },
    browserSha256,
    browserNetwork: "",
    createdAt: begun,
    expiresAt: end,
    restarts: 0,
  });
  return id;
}

const claim: Claim = {
  channel: "qr",
  sessionText: "session",
  connection: "https://id.example/w/l/1",
  claimedBy: user,
  claimSha256: "claim",
  digits: "07",
  requestObject: "object",
  acr: "urn:svc:acr:qr",
  isStatic: false,
};

const claimAt = async (id: string, now: number, changed: Partial<Claim> = {}): Promise<boolean> =>
  claimAttempt(db, id, { claim: { ...claim, ...changed }, now });

const approveAt = async (id: string, now: number, changed = {}): Promise<boolean> =>
  approveAttempt(db, id, {
    user,
    organizationId,
    claimSha256: claim.claimSha256,
    now,
    expiresAtLeast: end,
    ...changed,
  });

const approveUnclaimedAt = async (id: string, now: number, by: string = user): Promise<boolean> =>
  approveUnclaimed(db, id, { ...claim, user: by, organizationId, now, expiresAtLeast: end });

const finishOf = (id: string, now: number): Finish => ({
  now,
  browserSha256,
  channel: "qr",
  codeSha256: sha256(id),
  codeExpiresAt: now + 60,
  sessionId: randomUUID(),
  sessionSecretSha256: sha256(randomUUID()),
  presentedSecretSha256: null,
  sessionIdleSeconds: 1000,
  sessionAbsoluteSeconds: 1000,
});

const finishAt = async (id: string, now: number, changed: Partial<Finish> = {}) =>
  finishAttempt(db, id, { ...finishOf(id, now), ...changed });

async function findSessionId(secretSha256: Buffer): Promise<string | null> {
  return (await findSessionBySecret(db, secretSha256))?.id ?? null;
}

test("a login is claimed once, and until its last second", async () => {
  const id = await open();
  assert.equal(await claimAt(id, end), false);
  assert.equal(await claimAt(id, begun, { isStatic: true }), false, "the page shows another code");
  assert.equal(await claimAt(id, end - 1), true);
  assert.equal(await claimAt(id, end - 1, { claimedBy: other }), false);
  assert.equal((await findAttempt(db, id))?.claimedBy, user);
});

test("only the wallet that claimed a login approves it, once, and until its last second", async () => {
  const id = await open();
  assert.equal(await approveAt(id, begun), false, "nobody has claimed it");
  await claimAt(id, begun);
  assert.equal(await approveAt(id, begun, { user: other }), false);
  assert.equal(await approveAt(id, begun, { claimSha256: "another" }), false);
  assert.equal(await approveAt(id, end), false);
  assert.equal(await approveUnclaimedAt(id, begun), false, "an answer without a claim");
  assert.equal(await approveAt(id, end - 1), true);
  assert.equal(await approveAt(id, end - 1), false);
});

test("a login that nobody claimed is approved once, for the first wallet that answers, and until its last second", async () => {
  const id = await open();
  assert.equal(await approveUnclaimedAt(id, end), false);
  assert.equal(await approveUnclaimedAt(id, end - 1), true);
  assert.equal(await approveUnclaimedAt(id, end - 1, other), false);
  assert.equal((await findAttempt(db, id))?.claimedBy, user);
});

test("an approved login is finished once, by its browser on its channel, and until its last second", async () => {
  const id = await open();
  assert.equal(await finishAt(id, begun), null);
  await claimAt(id, begun);
  assert.equal(await finishAt(id, begun), null, "nobody has approved it");
  await approveAt(id, begun);
  assert.equal(await finishAt(id, begun, { browserSha256: sha256("another") }), null);
  assert.equal(await finishAt(id, begun, { channel: "app-link" }), null);
  assert.equal(await finishAt(id, end), null);
  assert.equal((await finishAt(id, end - 1))?.redirectUri, redirectUri);
  assert.equal(await finishAt(id, end - 1), null);
});

/** Finishes a login of this identity at that moment. */
async function logInAt(now: number, by: string, changed: Partial<Finish>) {
  const id = await open();
  await approveUnclaimedAt(id, begun, by);
  const secretSha256 = sha256(id);
  await finishAt(id, now, { ...changed, sessionSecretSha256: secretSha256 });
  return { secretSha256, sessionId: await findSessionId(secretSha256) };
}

test("a user who logs in again continues the browser's session under a new secret, to its last second, and nobody else's session", async () => {
  const cases: [seconds: number, by: string, isKept: boolean, changed: Partial<Finish>][] = [
    [99, user, true, { sessionIdleSeconds: 100 }],
    [100, user, false, { sessionIdleSeconds: 100 }],
    [99, user, true, { sessionAbsoluteSeconds: 100 }],
    [100, user, false, { sessionAbsoluteSeconds: 100 }],
    [1, other, false, {}],
  ];
  for (const [seconds, by, isKept, changed] of cases) {
    const first = await logInAt(begun, user, {});
    const presentedSecretSha256 = first.secretSha256;
    const next = await logInAt(begun + seconds, by, { ...changed, presentedSecretSha256 });
    const name = JSON.stringify([seconds, by, changed]);
    assert.equal(next.sessionId === first.sessionId, isKept, name);
    assert.equal((await findSessionId(first.secretSha256)) === null, isKept, name);
  }
});

test("no login is finished for a client that was disabled, or lost the address, since it was approved", async () => {
  const changes = [
    async (clientId: string) =>
      db.query(sql`update oauth_client set disabled_at = ${begun} where id = ${clientId}`),
    async (clientId: string) =>
      db.query(
        sql`update oauth_client set redirect_uris = '{https://shop.example/elsewhere}' where id = ${clientId}`,
      ),
  ];
  for (const change of changes) {
    const { id: clientId } = await addClient(login);
    const id = await open(clientId);
    await approveUnclaimedAt(id, begun);
    await change(clientId);
    assert.equal(await finishAt(id, begun), null, String(change));
  }
});

test("a user is deleted with the login that is approved at that moment", async () => {
  const person: Address = `0x${"22".repeat(20)}`;
  const approveIn = async (tx: Queryable, id: string): Promise<boolean> =>
    approveUnclaimed(tx, id, {
      ...claim,
      user: person,
      organizationId,
      now: begun,
      expiresAtLeast: end,
    });
  // For an unknown user, the insertion of the sign-up waits.
  assert.equal(await approveIn(db, await open()), true);
  const id = await open();
  const deletion: { done: Promise<unknown> | null } = { done: null };
  await db.transaction(async (tx) => {
    assert.equal(await approveIn(tx, id), true);
    deletion.done = db.transaction(async (its) =>
      deleteUser(its, person, { now: begun, withdraw: async () => undefined }),
    );
    await untilBlocked(db, tx, [deletion.done]);
  });
  assert.equal(await deletion.done, true);
  assert.equal(await findAttempt(db, id), null);
});

/** Rows of `login` and entries of its index that were read, also by earlier transactions of the connection. */
async function countLoginsRead(tx: Queryable): Promise<number> {
  const [row] = await tx.query<{ read: number }>(sql`
    select pg_stat_get_xact_tuples_returned('login'::regclass)
      + pg_stat_get_xact_tuples_returned('login_pkey'::regclass) as read`);
  return row?.read ?? NaN;
}

test("finishing a login reads no other login, even if the database was analysed when a purge had left none", async () => {
  const fill = async (): Promise<void> =>
    void (await db.query(sql`
      insert into login (id, client_id, request, status, browser_sha256, browser_network, created_at, expires_at)
      select gen_random_uuid()::text, ${client.id}, '{}', 'waiting', ${browserSha256}, '', 0, 0
      from generate_series(1, 2000)`));
  await fill();
  await db.query(sql`delete from login`);
  await db.query(sql`vacuum (analyze) login`);
  await fill();
  const id = await open();
  await claimAt(id, begun);
  await approveAt(id, begun);
  await db.transaction(async (tx) => {
    const before = await countLoginsRead(tx);
    assert.ok((await finishAttempt(tx, id, finishOf(id, begun))) !== null);
    assert.ok((await countLoginsRead(tx)) - before <= 4);
  });
});
