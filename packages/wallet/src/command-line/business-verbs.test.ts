import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { businessCategory, encodeCharter } from "@svc/protocol";
import { callWallet, valueOf } from "../../test/call-wallet.ts";
import {
  audience,
  business,
  chainId,
  charter,
  factory,
  serveBusiness,
} from "../../test/fake-business.ts";
import { openFakeBroker, privateKeys } from "../../test/fake-broker.ts";
import { now } from "../../test/fake-fields.ts";
import { addressOf } from "../../test/test-wallet.ts";
import { addressOfBusiness } from "../business-wallet.ts";

await using broker = await openFakeBroker();
const fake = serveBusiness(broker);
let directory = "";
using cleanup = new DisposableStack();

const wallet = async (...args: readonly string[]) =>
  callWallet([...args, "--as", "alice"], directory);

beforeEach(() => {
  broker.reset();
  fake.reset();
  broker.answers.set("/health/ready", { status: 200, body: { status: "ok", now } });
  const made = mkdtempSync(join(tmpdir(), "svc-wallet-business-"));
  cleanup.defer(() => rmSync(made, { recursive: true, force: true }));
  const identities = { alice: { address: addressOf("alice"), privateKey: privateKeys.alice } };
  writeFileSync(join(made, "demo.json"), JSON.stringify({ baseUrl: broker.url, identities }));
  directory = made;
});

const salt = `0x${"5a".repeat(32)}` as const;
const founded = addressOfBusiness({ factory, charter: encodeCharter(charter), salt });
const common = { chainId, expiresAt: now + 600, requester: null };

const invitation = {
  ...common,
  id: "01J",
  kind: "invitation",
  business: { address: founded, name: "Alpine AG" },
  factory,
  salt,
  deadline: now + 600,
  charter: {
    rules: charter.rules,
    members: charter.members.map(({ address, isVoting }) => ({
      address,
      name: "Somebody",
      votingRights: isVoting,
    })),
  },
};

const dataRequest = {
  ...common,
  id: "02J",
  requestId: "02J",
  kind: "data_request",
  business: { address: business, name: "Alpine AG" },
  category: businessCategory.data,
  epoch: fake.epoch,
  validUntil: now + 4200,
  audience,
  required: ["BUSINESS_LEGAL_NAME"],
  optional: [],
  purpose: "To open an account.",
  deadline: now + 600,
};

await test("accepting an invitation approves nothing else, whatever id it is given", async () => {
  fake.items = [invitation, dataRequest];
  const isRefused = async (): Promise<void> => {
    const { status, out, err } = await wallet("business", "accept", "02J");
    assert.deepEqual([status, out], [1, ""]);
    assert.match(err, /02J is no invitation but a data_request: vote 02J decides on it\n$/);
  };
  await isRefused();
  valueOf(await wallet("inbox"));
  await isRefused();
  assert.deepEqual(fake.votes, []);
  // Neither is what was voted on before approved again.
  valueOf(await wallet("vote", "02J", "--approve"));
  await isRefused();
  assert.equal(fake.votes.length, 1);
});

await test("an invitation that was accepted is accepted again by its id", async () => {
  fake.items = [invitation];
  const [first, again] = [
    valueOf(await wallet("business", "accept", "01J")),
    valueOf(await wallet("business", "accept", "01J")),
  ];
  assert.deepEqual([first["status"], again["status"]], ["open", "open"]);
  assert.deepEqual(fake.votes[0], fake.votes[1]);
});

await test("an invitation is found by the address of its business in every spelling", async () => {
  for (const spelled of [founded, founded.slice(2), `0x${founded.slice(2).toUpperCase()}`]) {
    fake.items = [invitation];
    assert.equal(valueOf(await wallet("business", "accept", spelled))["address"], founded);
  }
});

await test("a member has its business take no more requests of whoever made one, and takes that back", async () => {
  const said = valueOf(await wallet("business", "block", "02J"));
  assert.deepEqual(said, { address: business, requestId: "02J", isBlocked: true });
  valueOf(await wallet("business", "block", "02J", "--undo", "--business", business));
  assert.deepEqual(fake.blocks, [
    { requestId: "02J", isBlocked: true },
    { requestId: "02J", isBlocked: false },
  ]);
});

await test("whoever proposed something takes it back by its id", async () => {
  const said = valueOf(await wallet("business", "retract", "03J"));
  assert.deepEqual(said, { proposalId: "03J", status: "retracted" });
  assert.deepEqual(fake.retracted, ["03J"]);
});

await test("a refusal is one line, and says in it what could not be looked at", async () => {
  const away = "http://localhost:1";
  assert.equal((await callWallet(["broker", "add", away, "--yes"], directory)).status, 0);
  const { status, out, err } = await wallet("business", "accept");
  assert.deepEqual([status, out], [1, ""]);
  assert.match(
    err,
    /^wallet business accept: refused \(not_found\): there is no such .*; localhost:1 .* what it keeps is not shown here\n$/,
  );
  fake.items = [invitation];
  const accepted = await wallet("business", "accept");
  assert.equal(accepted.status, 0);
  assert.match(accepted.err, /^wallet business accept: localhost:1 [^\n]*\n$/);
});

await test("a member's name is no other's than the one whom this wallet knows by it", async () => {
  const carol = { address: addressOf("bob"), privateKey: privateKeys.bob };
  const path = join(directory, "demo.json");
  const demo = JSON.parse(readFileSync(path, "utf8")) as { identities: object };
  const identities = { ...demo.identities, carol };
  writeFileSync(path, JSON.stringify({ ...demo, identities }));
  const stranger = `0x${"ca".repeat(20)}`;
  const members = [
    { address: addressOf("alice"), name: "Alice", votingRights: true },
    { address: stranger, name: "carol", votingRights: true },
  ];
  const { rules } = charter;
  const listed = { address: business, name: "Alpine AG", status: "active", rules, members };
  broker.answers.set("/w/businesses", { status: 200, body: { items: [listed] } });
  for (const [verb, ...how] of [
    ["remove", "carol"],
    ["rules", "--drop", "carol"],
    ["rules", "--observer", "carol"],
  ] as const) {
    const { status, err } = await wallet("business", verb, ...how);
    assert.equal(status, 1);
    const named = `the member carol is ${stranger}, and here carol is ${carol.address}`;
    assert.ok(err.includes(`${named}: write the address`), err);
  }
});
