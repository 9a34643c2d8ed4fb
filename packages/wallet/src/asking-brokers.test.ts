import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { businessCategory } from "@svc/protocol";
import { business, chainId, serveBusiness } from "../test/fake-business.ts";
import { openFakeBroker, problem } from "../test/fake-broker.ts";
import { now } from "../test/fake-fields.ts";
import { refuses, walletOf } from "../test/test-wallet.ts";

await using broker = await openFakeBroker();
await using other = await openFakeBroker();
const [fake, otherFake] = [serveBusiness(broker), serveBusiness(other)];

/** The first broker on the list opens no session. */
function goAway(): void {
  other.token = "";
  other.answers.set("/w/session/challenge", problem(503, "starting"));
}

const item = {
  id: "01J",
  kind: "signature_request",
  category: businessCategory.signature,
  messageKind: "TEXT",
  business: { address: business, name: "Alpine AG" },
  requester: { name: "Demo Bank", domain: "bank.example" },
  chainId,
  epoch: fake.epoch,
  validUntil: now + 4200,
  expiresAt: now + 600,
  message: "We agree.",
  digest: "0x6db6fbd9b7bd85e1b6a7ab3a05e2a5ab1d3fd6cd3dba3ac4ff5c1d5d1bbf1eb3",
  purpose: "To sign a contract.",
};

async function open() {
  const told: string[] = [];
  const brokers = [other.url, broker.url];
  const wallet = await walletOf("alice", brokers, { tell: (line) => void told.push(line) });
  return { wallet, told };
}

beforeEach(() => {
  for (const each of [broker, other]) each.reset();
  for (const each of [fake, otherFake]) each.reset();
});

await test("a broker that is away holds nothing back that others keep, and the person is told", async () => {
  goAway();
  const { wallet, told } = await open();
  fake.items = [item];
  assert.deepEqual(
    (await wallet.inbox()).map(({ id }) => id),
    ["01J"],
  );
  assert.equal((await wallet.businesses()).length, 1);
  assert.equal((await wallet.logins()).length, 1);
  assert.equal(told.length, 3);
  assert.match(told[0] ?? "", /refuses: .*\(starting\); what it keeps is not shown here$/);
  await wallet.vote("01J", { vote: "reject" });
  assert.equal(fake.votes.length, 1);
  await wallet.vote("01J", { vote: "reject" });
  assert.equal(fake.votes.length, 2, "sent again");
  await wallet.endLogin("one");
  assert.equal((await wallet.chooseBusiness(business)).address, business);
});

await test("what nobody else has is not said to be nowhere while a broker is away", async () => {
  goAway();
  const { wallet } = await open();
  for (const work of [
    async () => wallet.vote("02J", { vote: "approve" }),
    async () => wallet.endLogin("two"),
    async () => wallet.receipt("0190c0de-0000-7000-8000-000000000001"),
    async () => wallet.chooseBusiness(`0x${"99".repeat(20)}`),
    // It might have another one there.
    async () => wallet.chooseBusiness(undefined),
  ])
    await refuses(work(), "broker_refused", /\(starting\)/);
});

await test("while all are away nothing passes for empty", async () => {
  goAway();
  broker.answers.set("/w/session/challenge", problem(503, "starting"));
  broker.token = "";
  const { wallet, told } = await open();
  for (const work of [
    async () => wallet.inbox(),
    async () => wallet.businesses(),
    async () => wallet.logins(),
    async () => wallet.receive(),
  ])
    await refuses(work(), "broker_refused", /\(starting\)/);
  assert.deepEqual(told, []);
});

await test("what a broker showed counts while it is away, and no other puts its own under that id", async () => {
  const { wallet } = await open();
  const shown = { ...item, message: "Another." };
  otherFake.items = [shown];
  await wallet.inbox();
  goAway();
  other.answers.set("/w/inbox?limit=100", problem(503, "starting"));
  await wallet.inbox();
  fake.items = [item];
  await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /not what was shown/);
  other.answers.clear();
  fake.items = [];
  otherFake.items = [{ ...shown, purpose: "Something else." }];
  await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /not what was shown/);
});
