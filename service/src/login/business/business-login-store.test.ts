// As in attempt-store.test.ts: what the statements themselves guard, whatever was read before them.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, test } from "node:test";
import type { Address } from "@svc/protocol";
import { sql } from "../../platform/database/db.ts";
import { claimAttempt, findAttempt, insertAttempt } from "../attempt/attempt-store.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { addClient, openTestLogin, redirectUri } from "../test-login.ts";
import {
  completeGathering,
  failGathering,
  gatherAttempt,
  insertOpenLogin,
} from "./business-login-store.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());
const { db } = login.ctx;
const { id: clientId } = await addClient(login);
const begun = login.clock.now();
const end = begun + 900;
const user: Address = `0x${"11".repeat(20)}`;
const other: Address = `0x${"22".repeat(20)}`;
const business: Address = `0x${"33".repeat(20)}`;
const claimSha256 = "claim";
await db.query(sql`
  insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt, charter, created_at)
  values (${business}, 'live', 'Example', 'active', ${user}, 'invitation', 0, ${sha256("salt")}, '', 0)`);

async function openClaimed(): Promise<string> {
  const id = randomBytes(16).toString("base64url");
  await insertAttempt(db, {
    id,
    clientId,
    request: { redirectUri, scope: "business", wantsRefresh: false, audience: [], prompt: [] },
    browserSha256: sha256(id),
    browserNetwork: "",
    createdAt: begun,
    expiresAt: end,
    restarts: 0,
  });
  const claim = {
    channel: "qr" as const,
    sessionText: "session",
    connection: "https://id.example/w/l/1",
    claimedBy: user,
    claimSha256,
    digits: "07",
    requestObject: "object",
    acr: "urn:svc:acr:qr" as const,
    isStatic: false,
  };
  await claimAttempt(db, id, { claim, now: begun });
  return id;
}

const gatherAt = async (id: string, now: number, changed = {}): Promise<boolean> =>
  gatherAttempt(db, id, { user, claimSha256, business, now, ...changed });

async function completeAt(id: string, now: number): Promise<boolean> {
  const claims = { domain: null, approved_at: now };
  return (await completeGathering(db, id, { claims, now, expiresAtLeast: end })) !== null;
}

const statusOf = async (id: string): Promise<string | undefined> =>
  (await findAttempt(db, id))?.status;

test("only the wallet that claimed a login begins to gather approvals for it, once, and until its last second", async () => {
  const id = await openClaimed();
  assert.equal(await gatherAt(id, begun, { user: other }), false);
  assert.equal(await gatherAt(id, begun, { claimSha256: "another" }), false);
  assert.equal(await gatherAt(id, end), false);
  assert.equal(await gatherAt(id, end - 1), true);
  assert.equal(await gatherAt(id, end - 1), false);
});

test("the members' decision counts once, and only while they are asked, the last second included", async () => {
  const [id, refused] = [await openClaimed(), await openClaimed()];
  assert.equal(await completeAt(id, begun), false, "nobody is asked yet");
  assert.equal(await failGathering(db, refused, "declined"), false, "nobody is asked yet");
  await gatherAt(id, begun);
  await gatherAt(refused, begun);
  assert.equal(await completeAt(id, end + 1), false);
  assert.equal(await completeAt(id, end), true);
  assert.equal(await completeAt(id, end), false);
  assert.equal(await failGathering(db, id, "declined"), false);
  assert.equal(await failGathering(db, refused, "declined"), true);
  assert.equal(await completeAt(refused, begun), false);
  assert.deepEqual([await statusOf(id), await statusOf(refused)], ["approved", "failed"]);
});

test("a member's place for an open login is free once the last second of the one before is over", async () => {
  const [first, second, third] = [await openClaimed(), await openClaimed(), await openClaimed()];
  const open = async (loginId: string, now: number, member = user): Promise<boolean> =>
    insertOpenLogin(db, { loginId, member, business, requester: "", expiresAt: end, now });
  assert.equal(await open(first, begun), true);
  assert.equal(await open(second, end), false);
  assert.equal(await open(third, end, other), true, "another member's place");
  assert.equal(await open(second, end + 1), true);
});
