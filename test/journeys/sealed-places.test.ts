// What lies sealed once members, an issuer and a merchant have dealt with each other, and whether each value is where it
// belongs: an operator's look at all of it finds what does not open in its own row. A release whose values do not open
// ends, the merchant is told, and the money is free.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { openDataWorld, requestsPath } from "../kyb-data-world.ts";
import { openReceiver } from "../kyb-receiver.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import { runVerb } from "../operator-verbs.ts";
import type { KybContext } from "../../service/src/kyb/kyb-context.ts";
import { createDeferred } from "../../service/src/platform/deferred.ts";
import { releaseApproved } from "../../service/src/kyb/release/releases.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { createSeal } from "../../service/src/platform/cryptography/seal.ts";
import { untilBlocked } from "../lock-waits.ts";
import { checkMoney } from "../kyb-money-checks.ts";

await using world = await openDataWorld();
await using receiver = await openReceiver();
const { address: business, members } = world.business;

async function run<Said = Record<string, unknown>>(words: readonly string[]): Promise<Said> {
  const [status, said] = await runVerb(world, words);
  assert.equal(status, 0, said);
  return JSON.parse(said) as Said;
}

/** @returns how many values each column has */
async function lookAtAll(): Promise<Map<string, number>> {
  const columns = await run<{ table: string; column: string; checked: number }[]>([
    "key",
    "rewrap",
  ]);
  return new Map(columns.map(({ table, column, checked }) => [`${table}.${column}`, checked]));
}

async function takeEvents(): Promise<void> {
  receiver.setStatus(200, "thanks");
  const { body } = await world.call("PUT", "/api/v1/kyb/webhook-endpoint", {
    body: { url: receiver.url },
  });
  receiver.trust(body["secret"]);
}

async function askForSignature(path: string, about: Record<string, unknown>): Promise<void> {
  const headers = { "idempotency-key": randomBytes(8).toString("hex") };
  const body = { ...someText, ...about };
  assert.equal((await world.call("POST", path, { headers, body })).status, 201);
}

async function releaseData(): Promise<void> {
  const { body } = await world.ask();
  const id = String(body["requestId"]);
  for (const name of ["alice", "bob"]) await world.voteAs(name, id, { optional: [] });
  await world.waitFor(id, "released");
  const released = (await world.eventsOf(id)).at(-1);
  await receiver.arrivalOf(String(released?.event_id));
}

async function proposeMember(): Promise<void> {
  const roster = [...members, "dora"].map((name) => ({
    address: world.person(name).address,
    name,
    votingRights: true,
  }));
  await world.govern("alice", { operation: "changeCharter", members: roster }, { voters: [] });
}

async function prepareSandbox(): Promise<void> {
  const { organizationId } = world;
  const site = ["--domain", "localhost:4001", "--environment", "sandbox"];
  const { id } = await run(["domain", "create", "--organization", organizationId, ...site]);
  const buy = ["package", "buy", "--domain", String(id), "--name", "Age", "--chf", "0"];
  const bought = await run([...buy, "--field", "IDCARD_DOB", "--transfers", "5"]);
  await run(["package", "next-key", String(bought["id"])]);
  await run(["simulate", "identity", "--domain", String(id)]);
}

await test("whatever is sealed of businesses, of what was asked of them, and of sandboxes opens in its own row", async () => {
  await takeEvents();
  await askForSignature(signaturesPath, { businessWalletAddress: business });
  await askForSignature(`${signaturesPath}/offers`, {});
  await proposeMember();
  await releaseData();
  await prepareSandbox();
  const found = await world.until("an answer of the receiver is kept", async () => {
    const counts = await lookAtAll();
    return counts.get("webhook_attempt.answer_sealed") === 0 ? null : counts;
  });
  const sealed = [
    "attestation_key.private_sealed",
    "business_member.name_sealed",
    "business_proposal.names_sealed",
    "company_field.value_sealed",
    "data_release.attestation_sealed",
    "kyb_endpoint_secret.secret_sealed",
    "kyb_idempotency.answer_sealed",
    "kyb_offer.request_sealed",
    "kyc_package.next_signing_key_sealed",
    "kyc_package.signing_key_sealed",
    "signature_request.document_sealed",
    "signing_key.private_sealed",
    "synthetic_identity.held_sealed",
    "synthetic_identity.key_sealed",
    "webhook_event.body_sealed",
  ];
  for (const column of sealed) assert.ok((found.get(column) ?? 0) > 0, `${column} holds something`);
});

const { db } = world.ctx;
const terms = { fields: ["BUSINESS_LEGAL_NAME"], optionalFields: [] };

async function frozenChf(): Promise<unknown> {
  const { body } = await world.call("GET", "/api/v1/kyb/billing/account");
  return body["frozenChf"];
}

async function statusOf(id: string): Promise<unknown> {
  const { body } = await world.call("GET", `${requestsPath}/${id}`);
  return body["status"];
}

async function askAndApprove(): Promise<string> {
  const { status, body } = await world.ask(terms);
  assert.equal(status, 201, JSON.stringify(body));
  const id = String(body["requestId"]);
  assert.equal(await frozenChf(), 1);
  for (const name of ["alice", "bob"]) await world.voteAs(name, id, { optional: [] });
  return id;
}

async function checkFailed(id: string): Promise<void> {
  const { reason } = await world.waitFor(id, "failed");
  assert.equal(reason, "unavailable");
  const events = await world.eventsOf(id);
  assert.deepEqual(
    events.map(({ event }) => event),
    ["kyb.data_request.pending_approval", "kyb.data_request.failed"],
  );
  assert.equal(await frozenChf(), 0);
  await checkMoney(world.ctx);
}

/** Overwrites the value that the requests here ask for. */
async function writeValue(change: (sealed: Buffer, id: string) => Buffer): Promise<void> {
  const [row] = await db.query<{ id: string; sealed: Buffer }>(
    sql`select id, value_sealed as sealed from company_field where name = 'BUSINESS_LEGAL_NAME'`,
  );
  assert.ok(row);
  const changed = change(row.sealed, row.id);
  await db.query(sql`update company_field set value_sealed = ${changed} where id = ${row.id}`);
}

await test("an approved request whose value was changed in the database fails, is announced once, and frees its money", async () => {
  let before = Buffer.alloc(0);
  await writeValue((sealed) => {
    before = Buffer.from(sealed);
    return Buffer.concat([sealed.subarray(0, -1), Buffer.from([~(sealed.at(-1) ?? 0)])]);
  });
  await checkFailed(await askAndApprove());
  await writeValue(() => before);
  const id = await askAndApprove();
  await world.waitFor(id, "released");
});

/** Seals the value with a master key that nobody has here. @returns what it was */
async function loseKey(): Promise<Buffer> {
  let before = Buffer.alloc(0);
  await writeValue((sealed, id) => {
    before = Buffer.from(sealed);
    const place = { table: "company_field", id, column: "value_sealed" };
    return createSeal(["7c".repeat(32)]).seal(Buffer.from("lost"), place);
  });
  return before;
}

/** Tries to release everything, whatever could not be opened a moment ago. */
const tryAll = async (): Promise<void> =>
  releaseApproved(world.ctx as unknown as KybContext, createDeferred(world.ctx.clock));

await test("an approved request whose value nobody can open ends as expired when its approvals do, and not before", async () => {
  const before = await loseKey();
  const id = await askAndApprove();
  await world.advance(25 * 3600 - 60);
  await world.until("it is tried once more", async () =>
    tryAll().then(
      () => null,
      (error: unknown) => String(error).includes(id),
    ),
  );
  assert.equal(await statusOf(id), "pending_approval");
  assert.equal(await frozenChf(), 1);
  await world.advance(120);
  const { reason } = await world.waitFor(id, "refused");
  assert.equal(reason, "expired");
  assert.equal(await frozenChf(), 0);
  await checkMoney(world.ctx);
  await writeValue(() => before);
});

/** Tries to release what was approved, until it is released or its approvals are void, which the world's own job finds. */
async function tryRelease(id: string): Promise<void> {
  await world.until("it is released or void", async () => {
    // Without that job's rules nobody can be asked anew.
    await tryAll().catch(() => undefined);
    const approved = sql`select from data_request
      where id = ${id} and approved_at is not null and status = 'pending_approval'`;
    return (await db.query(approved)).length === 0 ? true : null;
  });
}

await test("a release waits for a change of members that is under way, and then their approvals are void", async () => {
  const before = await loseKey();
  const id = await askAndApprove();
  const { address } = world.business;
  const { tried } = await db.transaction(async (tx) => {
    await tx.query(sql`update business set epoch = epoch + 1 where address = ${address}`);
    await writeValue(() => before);
    const trying = tryRelease(id);
    await untilBlocked(db, tx, [trying]);
    return { tried: trying };
  });
  // Until then the process looks at nothing that it could not open.
  await world.advance(60);
  await tried;
  assert.equal(await statusOf(id), "pending_approval");
  await world.call("POST", `${requestsPath}/${id}/cancel`, { body: {} });
  assert.equal(await statusOf(id), "cancelled");
  // As the chain has it.
  await db.query(sql`update business set epoch = 0 where address = ${address}`);
});

await test("approvals of members who are no more release nothing: those who are members then decide", async () => {
  const before = await loseKey();
  const id = await askAndApprove();
  const stay = ["alice", "carol"];
  const roster = world.rosterOf(stay);
  const act = {
    operation: "changeCharter",
    members: roster,
    rules: { data_requests: "UNANIMOUS" },
  };
  const { epoch: past } = await world.businessOf("alice");
  await world.govern("alice", act, { voters: stay });
  // Until the chain has it, the approvals are those of members.
  await world.until("the roster has changed", async () => {
    const { epoch } = await world.businessOf("alice");
    return epoch === past ? null : true;
  });
  await writeValue(() => before);
  // Until then the process looks at nothing that it could not open.
  await world.advance(60);
  await world.until("the others are asked", async () => {
    const asked = (await world.inboxOf("carol")).some((item) => item.id === id);
    return asked ? true : null;
  });
  const asked = sql`select from data_request where id = ${id} and approved_at is null`;
  assert.equal((await world.ctx.db.query(asked)).length, 1);
  assert.equal(await statusOf(id), "pending_approval");
  for (const [at, name] of stay.entries()) {
    const { body } = await world.voteAs(name, id, { optional: [] });
    assert.equal(body["status"], ["open", "approved"][at]);
  }
  await world.waitFor(id, "released");
  await checkMoney(world.ctx);
});
