// Members of a business, each with the wallet's own command line: they found it, decide what others ask, and change it.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { type Hex, parseAddress } from "@svc/protocol";
import { findBusiness } from "../../service/src/kyb/business/business-store.ts";
import { setBusinessVerified } from "../../service/src/kyb/index.ts";
import { readerOf } from "../chain-reader.ts";
import { openBusinessPage, takeTokens } from "../business-login.ts";
import { openCommandLineWallet, runWithCode } from "../command-line-wallet.ts";
import { openDataWorld } from "../kyb-data-world.ts";
import type { Answer } from "../kyb-world.ts";
import { type OpenPage, statusOf } from "../login-flow.ts";
import { runVerb } from "../operator-verbs.ts";

type Value = Record<string, unknown>;

await using world = await openDataWorld();
const names = ["alice", "bob", "carol"] as const;
const identities = Object.fromEntries(names.map((name) => [name, world.person(name)]));
await using wallet = await openCommandLineWallet(world.baseUrl, identities);

async function run(name: string, ...args: string[]): Promise<Value> {
  const { status, value, line } = await wallet.run(name, ...args);
  assert.deepEqual({ status, line }, { status: 0, line: "" }, args.join(" "));
  return value ?? {};
}

async function inbox(name: string): Promise<Value[]> {
  return (await run(name, "inbox"))["votes"] as Value[];
}

async function listed(name: string, address: unknown): Promise<Value | null> {
  const items = (await run(name, "business", "list"))["items"] as Value[];
  return items.find((each) => each["address"] === address) ?? null;
}

/** Alice begins the removal of a member, and another one approves it. */
async function beginRemoval(lost: string, voter: string): Promise<void> {
  await run("alice", "business", "remove", lost, ...forBusiness);
  const proposed = (await inbox(voter)).find(({ kind }) => kind === "governance");
  await run(voter, "vote", String(proposed?.["id"]), "--approve");
  await world.until("the removal is under way", async () => {
    const found = await listed(lost, world.business.address);
    return found?.["removal"] ?? null;
  });
}

async function untilKept(lost: string): Promise<void> {
  await world.until("the removal has ended", async () => {
    const found = await listed(lost, world.business.address);
    return found?.["removal"] === null ? true : null;
  });
}

async function refusalOf(name: string, ...args: string[]): Promise<string> {
  const { status, value, line } = await wallet.run(name, ...args);
  assert.deepEqual([status, value, line.split("\n").length], [1, null, 2], line);
  return line;
}

/** A create by the merchant, with an Idempotency-Key of its own. */
async function create(path: string, body: Value): Promise<Answer> {
  const headers = { "idempotency-key": randomUUID() };
  return world.call("POST", path, { headers, body });
}

/** Claims the page's login, with a fresh code where the first has expired. */
async function claimPage(name: string, page: OpenPage) {
  return runWithCode(
    async () => page.qr,
    async (link) => wallet.run(name, "approve", link),
  );
}

async function findVote(name: string, id: string): Promise<Value> {
  const vote = (await inbox(name)).find((each) => each["id"] === id);
  assert.ok(vote, `${id} waits for ${name}`);
  return vote;
}

const signaturesPath = "/api/v1/kyb/signature-requests";
/** The founders are members of two businesses, so a command has to name one. */
const forBusiness = ["--business", world.business.address];

/** The business that the command line founds. */
let address = "";

await test("three people found a business by command line", async () => {
  const made = await run(
    "alice",
    ..."business create --name Alpine --member bob --member carol --rule data_requests=MAJORITY".split(
      " ",
    ),
  );
  address = String(made["address"]);
  assert.equal(made["status"], "inviting");
  assert.match(
    String(made["words"]),
    /invited to found the business "Alpine"\.\n[^]*Releases of data: more than half[^]*Member: "bob"[^]*accepts in a wallet of their own within 7 days/,
  );
  assert.notEqual(parseAddress(address), null);
  const invitation = (await inbox("bob")).find((vote) => vote["kind"] === "invitation");
  assert.equal(invitation?.["id"], made["invitationId"]);
  assert.deepEqual([invitation?.["requester"], invitation?.["purpose"]], [null, null]);
  assert.match(String(invitation?.["words"]), /found the business "Alpine"/);
  const accepted = await run("bob", "business", "accept", String(made["invitationId"]));
  const again = await run("bob", "business", "accept", String(made["invitationId"]));
  assert.equal(again["status"], accepted["status"]);
  assert.deepEqual([accepted["status"], accepted["address"]], ["open", address]);
  const last = await run("carol", "business", "accept");
  assert.equal(last["status"], "approved");
  await world.until("it is active", async () => {
    const found = await listed("alice", address);
    return found?.["status"] === "active" ? found : null;
  });
  await setBusinessVerified(world.ctx, { address, isVerified: true }, "test");
});

await test("a change takes the votes of its members, the proposer's among them", async () => {
  const proposed = await run(
    "alice",
    ...`business rules --rule data_requests=UNANIMOUS --business ${address}`.split(" "),
  );
  assert.equal(proposed["status"], "open");
  const id = String(proposed["proposalId"]);
  const vote = (await inbox("bob")).find((each) => each["id"] === id);
  assert.deepEqual([vote?.["kind"], vote?.["operation"]], ["governance", "changeCharter(bytes)"]);
  assert.equal((await run("bob", "vote", id, "--approve"))["status"], "approved");
  // Repeating the same vote changes nothing.
  assert.equal((await run("bob", "vote", id, "--approve"))["status"], "approved");
  await world.until("the rule holds", async () => {
    const found = await listed("bob", address);
    const rules = found?.["rules"] as Value | undefined;
    return rules?.["data_requests"] === "UNANIMOUS" ? true : null;
  });
  await world.until("the list says that it is done", async () => {
    const proposals = (await listed("bob", address))?.["proposals"] as readonly Value[];
    const { operation, status } = proposals.find((each) => each["id"] === id) ?? {};
    return operation === "changeCharter" && status === "executed" ? true : null;
  });
});

await test("a removal is proposed to the others, and its member keeps its place", async () => {
  const named = ["--business", address];
  const proposed = await run("alice", "business", "remove", "carol", ...named);
  const id = String(proposed["proposalId"]);
  assert.equal(
    (await inbox("carol")).some((each) => each["id"] === id),
    false,
  );
  await run("bob", "vote", id, "--approve");
  await world.until("the removal is under way", async () => {
    const found = await listed("carol", address);
    return found?.["removal"] ?? null;
  });
  assert.equal((await wallet.run("bob", "business", "keep", ...named)).status, 1);
  assert.deepEqual(await run("carol", "business", "keep", ...named), { address, ended: "removal" });
});

await test("a move that the operator announced ends when a member keeps its place", async () => {
  const named = ["--business", address];
  const next = await world.found({ members: ["alice"], name: "Muster Neu AG" });
  const words = ["business", "move", address, "--to", next.address];
  const [status, said] = await runVerb(world, words);
  assert.equal(status, 0, said);
  assert.deepEqual(await run("bob", "business", "keep", ...named), { address, ended: "move" });
  assert.match(await refusalOf("bob", "business", "keep", ...named), /no removal .* and no move/);
});

await test("members release data, without the optional field that the first of them withholds", async () => {
  const asked = await world.ask();
  const id = String(asked.body["requestId"]);
  const vote = await findVote("bob", id);
  assert.deepEqual(
    [vote["kind"], vote["fields"], vote["purpose"], (vote["business"] as Value)["address"]],
    [
      "data_request",
      ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_NAME", "BUSINESS_DIRECTOR_COUNT"],
      "To open an account for the company",
      world.business.address,
    ],
  );
  const withheld = "BUSINESS_DIRECTOR_COUNT";
  const approve = ["vote", id, "--approve"];
  assert.match(
    await refusalOf("bob", ...approve, "--without", "BUSINESS_LEGAL_NAME"),
    /not among the optional fields/,
  );
  assert.equal((await run("bob", ...approve, "--without", withheld))["status"], "open");
  assert.deepEqual((await findVote("carol", id))["fixedOptional"], []);
  assert.equal((await run("carol", ...approve))["status"], "approved");
  await world.waitFor(id, "released");
  const { data } =
    (await world.eventsOf(id)).find(({ event }) => event.endsWith(".released")) ?? {};
  assert.deepEqual(data?.["fields"], ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_NAME"]);
});

await test("members refuse a request, and the merchant hears that alone", async () => {
  const asked = await world.ask();
  const id = String(asked.body["requestId"]);
  assert.equal((await run("bob", "vote", id, "--reject"))["status"], "open");
  assert.equal((await run("carol", "vote", id, "--reject"))["status"], "refused");
  assert.equal(
    (await inbox("alice")).some((each) => each["id"] === id),
    false,
  );
  await world.advance(31);
  const { status, reason } = await world.waitFor(id, "refused");
  assert.deepEqual([status, reason], ["refused", "declined"]);
});

await test("a vote of a member who seems lost ends its removal", async () => {
  await beginRemoval("carol", "bob");
  const id = String((await world.ask()).body["requestId"]);
  assert.equal((await run("carol", "vote", id, "--approve"))["removal"], "ended");
  await untilKept("carol");
  await run("alice", "vote", id, "--approve");
  await world.waitFor(id, "released");
});

/** What the business signed last. */
let signedDigest = "";

await test("members sign a text and a document, by the digests that they compute", async () => {
  const businessWalletAddress = world.business.address;
  const purpose = "The terms of the account";
  const message = "We accept the terms of 1 January.\nAll of them.";
  const types = { Terms: [{ name: "version", type: "uint256" }] };
  const { chainId } = world.ctx.chain;
  const domain = { name: "Bank", chainId };
  const typedData = { domain, types, primaryType: "Terms", message: { version: 3 } };
  for (const document of [
    { messageKind: "TEXT", message },
    { messageKind: "TYPED_DATA", typedData },
  ]) {
    const asked = await create(signaturesPath, { businessWalletAddress, purpose, ...document });
    assert.equal(asked.status, 201, JSON.stringify(asked.body));
    const id = String(asked.body["requestId"]);
    const vote = await findVote("alice", id);
    assert.deepEqual(
      [vote["message"], vote["typedData"], vote["digest"]],
      [
        "message" in document ? message : undefined,
        "typedData" in document ? typedData : undefined,
        asked.body["digest"],
      ],
    );
    await run("alice", "vote", id, "--approve");
    assert.equal((await run("bob", "vote", id, "--approve"))["status"], "approved");
    const signed = await world.until("it is signed", async () => {
      const answer = await world.call("GET", `${signaturesPath}/${id}/signature`);
      return answer.status === 200 ? answer.body : null;
    });
    assert.equal(signed["digest"], asked.body["digest"]);
    signedDigest = String(signed["digest"]);
  }
});

await test("members take a signature back, by the digest that each of them is shown", async () => {
  const hash = signedDigest as Hex;
  const isValid = async (): Promise<boolean> =>
    readerOf(world.ctx.chain).verifyHash({
      address: world.business.address,
      hash,
      signature: `0x01${hash.slice(2)}`,
    });
  const nonceOf = async (): Promise<number> =>
    (await findBusiness(world.ctx.db, world.business.address))?.nonce ?? 0;
  const before = await nonceOf();
  assert.ok(await isValid());
  const other = await refusalOf("alice", "business", "withdraw", "0x12", ...forBusiness);
  assert.match(other, /0x and 64 hex digits/);
  const proposed = await run(
    "alice",
    "business",
    "withdraw",
    hash.toUpperCase().replace("0X", "0x"),
    ...forBusiness,
  );
  const id = String(proposed["proposalId"]);
  const vote = await findVote("bob", id);
  assert.match(String(vote["words"]), new RegExp(`takes back the signature of ${hash}`));
  assert.equal((await run("bob", "vote", id, "--approve"))["status"], "approved");
  await world.until("it is taken back", async () => ((await isValid()) ? null : true));
  // The chain changes before the service knows; acts proposed in between would carry the old nonce.
  await world.until("the service has followed", async () =>
    (await nonceOf()) > before ? true : null,
  );
});

await test("a text that looks like a hash takes a second confirmation", async () => {
  const body = {
    businessWalletAddress: world.business.address,
    purpose: "Something to be sure of",
    messageKind: "TEXT",
    message: "ab".repeat(32),
  };
  const id = String((await create(signaturesPath, body)).body["requestId"]);
  assert.deepEqual((await findVote("bob", id))["concerns"], ["blind-hash"]);
  assert.match(await refusalOf("bob", "vote", id, "--approve"), /--accept blind-hash/);
  const accepted = await run("bob", "vote", id, "--approve", "--accept", "blind-hash");
  assert.equal(accepted["status"], "open");
});

await test("a member takes offers by their links for the business that it names", async () => {
  const purpose = "To become a customer";
  const offers = [
    await create("/api/v1/kyb/data-requests/offers", { fields: ["BUSINESS_LEGAL_NAME"], purpose }),
    await create(`${signaturesPath}/offers`, { messageKind: "TEXT", message: "Yes.", purpose }),
  ];
  for (const { status, body } of offers) {
    assert.equal(status, 201, JSON.stringify(body));
    const link = String(body["link"]);
    const shown = await run("alice", "show", link);
    assert.match(String(shown["words"]), /offers that a business of yours may/);
    assert.match(await refusalOf("alice", "approve", link), /--business/);
    const taken = await run("alice", "approve", link, ...forBusiness);
    const { requestId } = taken["answer"] as { requestId: string };
    const again = await run("alice", "approve", link, ...forBusiness);
    assert.deepEqual(again["answer"], taken["answer"], "as if the first answer had been lost");
    assert.equal((await findVote("carol", requestId))["purpose"], purpose);
    await run("alice", "vote", requestId, "--approve");
    assert.equal((await run("carol", "vote", requestId, "--approve"))["status"], "approved");
    const offer = await world.call("GET", `/api/v1/kyb/offers/${String(body["offerId"])}`);
    assert.equal(offer.body["status"], "CLAIMED");
  }
});

await test("a member logs in for a business, and the vote of another completes it", async () => {
  const page = await openBusinessPage(world);
  const { link, value } = await claimPage("alice", page);
  assert.deepEqual(value, { status: "code_required" });
  const { digits } = await statusOf(world.baseUrl, page);
  const approved = await run("alice", "approve", link, "--code", String(digits), ...forBusiness);
  assert.deepEqual(approved["answer"], { status: "waiting" });
  const vote = await findVote("bob", page.loginId);
  assert.deepEqual(
    [vote["kind"], vote["actingMember"], vote["purpose"]],
    ["business_login", world.person("alice").address, null],
  );
  assert.equal((await run("bob", "vote", page.loginId, "--approve"))["status"], "approved");
  const { access_token: token } = await takeTokens(world, page);
  const { ext } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as {
    ext: { business: { id: string } };
  };
  assert.equal(ext.business.id, world.business.address);
});

await test("history tells of votes without values, and wrong use is one line", async () => {
  const items = (await run("bob", "history"))["items"] as Value[];
  assert.deepEqual([...new Set(items.map((each) => each["action"]))], ["vote"]);
  for (const args of [
    ["vote", "nothing"],
    ["vote", "nothing", "--approve"],
    ["business", "rules", "--business", address],
    ["business", "rules", "--rule", "data=ALL"],
    ["business", "create", "--member", "dave", "--name", "X"],
  ])
    await refusalOf("bob", ...args);
});

await test("a member who seems lost and logs in for the business is not removed", async () => {
  await beginRemoval("bob", "carol");
  const page = await openBusinessPage(world);
  const { link } = await claimPage("bob", page);
  const { digits } = await statusOf(world.baseUrl, page);
  const approved = await run("bob", "approve", link, "--code", String(digits), ...forBusiness);
  assert.deepEqual(approved["answer"], { status: "waiting" });
  await untilKept("bob");
});
