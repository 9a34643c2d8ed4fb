// What lies sealed once members, an issuer and a merchant have dealt with each other, and whether each value is where it
// belongs: an operator's look at all of it finds what does not open in its own row.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { openDataWorld } from "../kyb-data-world.ts";
import { openReceiver } from "../kyb-receiver.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import { runVerb } from "../operator-verbs.ts";

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
