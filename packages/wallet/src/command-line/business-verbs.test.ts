import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import {
  businessCategory,
  businessFieldNames,
  encodeCharter,
  type Charter,
  type Hex32,
} from "@svc/protocol";
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
import { shownText } from "../shown-text.ts";

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
    assert.match(
      err,
      /02J is of the kind data_request, not invitation: decide on it with vote 02J\n$/,
    );
  };
  await isRefused();
  valueOf(await wallet("inbox"));
  await isRefused();
  assert.deepEqual(fake.votes, []);
  // Nor is anything approved again that was voted on before.
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
  // Without the id nothing says which invitation is meant.
  for (const named of [[], [founded]]) {
    const { status, err } = await wallet("business", "accept", ...named);
    assert.equal(status, 1);
    assert.match(
      err,
      /accepted one before, accept that again by its id, which is in the history\n$/,
    );
  }
});

await test("an invitation is found by the address of its business in every spelling", async () => {
  for (const spelled of [founded, founded.slice(2), `0x${founded.slice(2).toUpperCase()}`]) {
    fake.items = [invitation];
    assert.equal(valueOf(await wallet("business", "accept", spelled))["address"], founded);
  }
});

/** Invitations to found the same business twice differ by their salts. */
const invited = (id: string, digits: string) => {
  const chosen = `0x${digits.repeat(32)}` as const;
  const address = addressOfBusiness({ factory, charter: encodeCharter(charter), salt: chosen });
  return { ...invitation, id, salt: chosen, business: { address, name: "Alpine AG" } };
};

await test("of several invitations none is accepted that is not named", async () => {
  fake.items = [invited("00J", "1a"), invited("01J", "1b")];
  const { status, out, err } = await wallet("business", "accept");
  assert.deepEqual([status, out, fake.votes], [1, "", []]);
  assert.match(err, /several invitations wait: name one; see wallet inbox\n$/);
  assert.equal(valueOf(await wallet("business", "accept", "01J"))["status"], "open");
});

await test("the inbox prints what waits as one JSON value, and what others wrote as it can be shown", async () => {
  const requester = { name: "Bank\u202E AG", domain: "bank.example" };
  const optional = ["BUSINESS_LEI"];
  const asked = { ...dataRequest, optional, requester, purpose: "To open\u0007\nan account." };
  const unreadable = { ...dataRequest, id: "04J", requestId: "04J", required: "all" };
  fake.items = [{ ...asked, business: { address: business, name: "Alpine\u202E" } }, unreadable];
  const [vote, other] = valueOf(await wallet("inbox"))["votes"] as Record<string, unknown>[];
  // What cannot be read is listed too, and hides nothing else.
  const unknown = { business: null, requester: null, purpose: null, expiresAt: null };
  assert.partialDeepStrictEqual(other, { id: "04J", kind: "data_request", ...unknown });
  assert.match(String(other?.["refusal"]), /./);
  const { words, ...members } = vote ?? {};
  assert.match(String(words), /\n/);
  assert.deepEqual(members, {
    id: "02J",
    kind: "data_request",
    broker: broker.url,
    business: { address: business, name: "Alpine<U+202E>" },
    requester: { name: "Bank<U+202E> AG", domain: "bank.example" },
    purpose: "To open<U+0007>\nan account.",
    fields: ["BUSINESS_LEGAL_NAME", "BUSINESS_LEI"],
    optional,
    fixedOptional: null,
    expiresAt: now + 600,
    concerns: [],
  });
});

await test("accepting an invitation approves what the inbox showed of it, and leaves all else as it was shown", async () => {
  fake.items = [invitation, dataRequest];
  valueOf(await wallet("inbox"));
  const isRefused = async (...words: readonly string[]): Promise<void> => {
    const { status, err } = await wallet(...words);
    assert.match(err, /not what was shown: look at the inbox again/);
    assert.equal(status, 1);
  };
  fake.items = [invitation, { ...dataRequest, purpose: "To sell it on." }];
  assert.equal(valueOf(await wallet("business", "accept", "01J"))["status"], "open");
  await isRefused("vote", "02J", "--approve");

  fake.items = [{ ...invitation, business: { ...invitation.business, name: "Alpine Holding" } }];
  valueOf(await wallet("inbox"));
  fake.items = [invitation];
  for (const named of [["01J"], [founded], []]) await isRefused("business", "accept", ...named);
  assert.equal(fake.votes.length, 1);
  valueOf(await wallet("inbox"));
  assert.equal(valueOf(await wallet("business", "accept"))["status"], "open");
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

await test("a member sees whom its business takes no requests of, and what a broker says of that in no form", async () => {
  const requester = { name: "Shop\u202E AG", domain: "shop.example" };
  const item = { requester, requestId: "02J", blockedAt: 1_700_000_000 };
  fake.blocked = [item, { ...item, requester: { name: "Bank" } }, { ...item, requestId: 2 }, null];
  const { address, items } = valueOf(await wallet("business", "blocks"));
  assert.equal(address, business);
  const { requestId, blockedAt } = item;
  assert.deepEqual(items, [
    { name: shownText(requester.name), domain: "shop.example", requestId, blockedAt },
    { name: "Bank", domain: null, requestId, blockedAt },
  ]);
  assert.ok(!JSON.stringify(items).includes("\u202E"));
});

await test("a member sees what its business released, and what a broker says of that in no form", async () => {
  const requester = { name: "Bank\u202E AG", domain: "bank.example" };
  const texts = { requestId: "02J", purpose: "To open\u0007", fields: ["BUSINESS_LEGAL_NAME"] };
  const item = { requester, ...texts, releasedAt: 1_700_000_000 };
  fake.released = [item, { ...item, fields: [1] }, { ...item, fields: "x" }, { requester }, 7];
  const { address, items } = valueOf(await wallet("business", "releases"));
  assert.equal(address, business);
  const { requester: asked, ...rest } = item;
  const { domain } = asked;
  const said = { purpose: shownText(texts.purpose), name: shownText(asked.name), domain };
  assert.deepEqual(items, [{ ...rest, ...said }]);
});

await test("a page of the longest releases is read: 100 of 40 fields, each for a purpose of 280 characters", async () => {
  const longest = businessFieldNames.toSorted((a, b) => b.length - a.length).slice(0, 40);
  const purpose = "\u{1f3e6}".repeat(280);
  const requester = { name: "\u9280".repeat(200), domain: `${"bank.".repeat(48)}example.com` };
  const release = { requester, purpose, fields: longest, releasedAt: 1_700_000_000 };
  fake.released = Array.from({ length: 100 }, (_, at) => ({ ...release, requestId: `${at}J` }));
  const { items } = valueOf(await wallet("business", "releases"));
  assert.equal((items as unknown[]).length, 100);
});

await test("whoever proposed something takes it back by its id", async () => {
  const said = valueOf(await wallet("business", "retract", "03J"));
  assert.deepEqual(said, { proposalId: "03J", status: "retracted" });
  assert.deepEqual(fake.retracted, ["03J"]);
});

await test("the same plan is the same business until somebody was told of it", async () => {
  const told = fake.address;
  const founder = { address: addressOf("alice"), isVoting: true };
  fake.address = ({ salt: drawn, rules }) =>
    addressOfBusiness({
      factory,
      salt: drawn as Hex32,
      charter: encodeCharter({ rules, members: [founder] } as unknown as Charter),
    });
  const args = ["business", "create", "--name", "Alpine AG", "--as", "alice"];
  for (const isCut of [true, true, false, false]) await callWallet(args, directory, { isCut });
  const salts = fake.founded.map((each) => each["salt"]);
  assert.deepEqual(
    salts.map((each) => salts.indexOf(each)),
    [0, 0, 0, 3],
  );
  fake.address = told;
});

await test("a founder ends its founding by the address", async () => {
  const said = valueOf(await wallet("business", "abandon", business));
  assert.deepEqual([said, fake.abandoned], [{ address: business, status: "lapsed" }, 1]);
  const { status, err } = await wallet("business", "abandon", "Alpine");
  assert.deepEqual([status, fake.abandoned], [1, 1]);
  assert.match(err, /<business> must be an address/);
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
    const named = `the member carol is ${stranger}, but the carol of this wallet is ${carol.address}`;
    assert.ok(err.includes(`${named}: write the address`), err);
  }
});

await test("who is meant is never guessed: a name of nobody or of several, no name, no address", async () => {
  const carl = `0x${"ca".repeat(20)}`;
  const members = [
    { address: addressOf("alice"), name: "Eve", votingRights: true },
    { address: addressOf("bob"), name: "Eve", votingRights: true },
    { address: carl, name: "Carl", votingRights: false },
  ];
  const { rules } = charter;
  const listed = { address: business, name: "Alpine AG", status: "active", rules, members };
  broker.answers.set("/w/businesses", { status: 200, body: { items: [listed] } });
  for (const [pattern, verb, ...how] of [
    [/several members are called Eve; see/, "remove", "Eve"],
    [/this wallet knows nobody called Mallory: write Mallory=0x/, "remove", "Mallory"],
    [/Eve=0x12 has no valid address/, "rules", "--member", "Eve=0x12"],
    [/a member must be written as <name> or/, "rules", "--member", `=0x${"33".repeat(20)}`],
    [/0x3{40} is not a member/, "rules", "--drop", `0x${"33".repeat(20)}`],
    [/no change is given/, "rules"],
    [
      /--rule must be <name>=MAJORITY\|UNANIMOUS, not governance=NOBODY/,
      "rules",
      "--rule",
      "governance=NOBODY",
    ],
    [/--rule must be .*, not signing=MAJORITY/, "rules", "--rule", "signing=MAJORITY"],
    [
      /--business must be an address/,
      "rules",
      "--business",
      "Alpine",
      "--rule",
      "governance=MAJORITY",
    ],
    [/<hash> must be 0x and 64 hex digits/, "withdraw", "0x12"],
  ] as const) {
    const { status, out, err } = await wallet("business", verb, ...how);
    assert.deepEqual([status, out], [1, ""], how.join(" "));
    assert.match(err, pattern);
  }
  // A name that the broker alone has is that of its member.
  const { words } = valueOf(await wallet("business", "rules", "--drop", "Carl", "--show"));
  assert.match(String(words), new RegExp(`No longer a member: .*${carl}`));
  assert.deepEqual([fake.proposed, fake.votes], [[], []]);
});

await test("a vote is either for or against: with neither and with both nothing is voted", async () => {
  fake.items = [dataRequest];
  valueOf(await wallet("inbox"));
  for (const how of [[], ["--approve", "--reject"]]) {
    const { status, out, err } = await wallet("vote", "02J", ...how);
    assert.deepEqual([status, out], [1, ""]);
    assert.match(err, /either --approve or --reject; see wallet vote --help\n$/);
  }
  assert.deepEqual(fake.votes, []);
});

const successor = `0x${"5c".repeat(20)}`;
const moving = [
  `The members of "Alpine AG" (${business}) are asked to decide.`,
  `The business goes on in the wallet ${successor}, for good; this one decides nothing more.`,
  "Approvals stand in public on the chain, with the addresses of who approved.",
].join("\n");

await test("what a proposal does is said in words, before it is put to anybody by --show", async () => {
  const shown = valueOf(await wallet("business", "move", successor, "--show"));
  assert.deepEqual(shown, { operation: "moveTo", words: moving });
  assert.deepEqual([fake.proposed, fake.votes], [[], []]);
  const proposed = valueOf(await wallet("business", "move", successor));
  const said = { proposalId: "p", operation: "moveTo", status: "open", words: moving };
  assert.deepEqual(proposed, said);
  assert.deepEqual([fake.proposed.length, fake.votes.length], [1, 1]);
});

await test("what a proposal of other rules and members does is said against what the chain has", async () => {
  const stranger = `0x${"5e".repeat(20)}`;
  const changes = ["--rule", "data_requests=UNANIMOUS", "--member", `Eve=${stranger}`];
  const bob = addressOf("bob");
  const { words } = valueOf(await wallet("business", "rules", ...changes, "--drop", bob, "--show"));
  for (const line of [
    `New: "Eve" (${stranger}), with a vote.`,
    `No longer a member: ${bob}.`,
    "Changed: Releases of data, so far more than half of the voting members.",
  ])
    assert.ok(String(words).split("\n").includes(line), `${line} in\n${String(words)}`);
  const removal = valueOf(await wallet("business", "remove", bob, "--show"));
  assert.match(String(removal["words"]), new RegExp(`${bob}\\)? seems lost and is removed`));
});

await test("a change is not proposed to members that the chain does not have, whoever tells them", async () => {
  const eve = { address: `0x${"ee".repeat(20)}`, isVoting: true } as const;
  fake.told = { ...charter, members: [...charter.members, eve] };
  for (const how of [[], ["--show"]]) {
    const rule = ["--rule", "data_requests=UNANIMOUS"];
    const { status, err } = await wallet("business", "rules", ...rule, ...how);
    assert.equal(status, 1);
    assert.match(err, /reports other members or rules of 0x[0-9a-f]{40} than the chain does/);
  }
  assert.deepEqual(fake.proposed, []);
});
