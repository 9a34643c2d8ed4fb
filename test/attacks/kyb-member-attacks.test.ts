// What a hostile member, anybody with a wallet, or a thief with a wallet's session token but not its key
// can try on businesses.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Address, approvalDigest, type Hex32, sessionDigest, signDigest } from "@svc/protocol";
import { getBuiltInIssuer, issueCredential } from "../../service/src/credentials/index.ts";
import { lockBallot } from "../../service/src/kyb/ballot/ballot-store.ts";
import { openSignatureWorld, type SignatureWorld } from "../kyb-signature-world.ts";
import { type Answer, type InboxItem, reasonOf } from "../kyb-world.ts";
import { logIn, openPage, statusOf } from "../login-flow.ts";
import { approvalOf, claim, openWalletSession, post, scan } from "../raw-wallet.ts";

let world: SignatureWorld;
before(async () => {
  // Rate limits exempt loopback: as a trusted proxy, the test names other addresses.
  world = await openSignatureWorld({ environment: { TRUSTED_PROXIES: "127.0.0.0/8,::1" } });
});
after(async () => world[Symbol.asyncDispose]());

const order = BigInt("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");

interface Approving {
  readonly item: InboxItem;
  readonly signer: string;
  readonly changed?: Partial<Parameters<typeof approvalDigest>[0]>;
}

function signatureOf({ item, signer, changed = {} }: Approving): string {
  const approval = {
    chainId: world.ctx.chain.chainId,
    business: item.business.address,
    category: 1 as const,
    hash: item["digest"] as Hex32,
    epoch: Number(item["epoch"]),
    validUntil: Number(item["validUntil"]),
    ...changed,
  };
  return signDigest(approvalDigest(approval), world.person(signer).privateKey);
}

/** The same signature with the high `s`, which recovers to the same signer but which the chain refuses. */
function malleated(signature: string): string {
  const s = order - BigInt(`0x${signature.slice(66, 130)}`);
  const v = signature.endsWith("1b") ? "1c" : "1b";
  return `${signature.slice(0, 66)}${s.toString(16).padStart(64, "0")}${v}`;
}

const withV = (signature: string, v: string): string => `${signature.slice(0, 130)}${v}`;

test("who is no member waits for no lock of members, and so learns by no answer's time when they vote", async () => {
  const { address } = world.business;
  const id = await world.begin();
  const removal = { operation: "startRemoval", member: world.person("bob").address };
  const path = `/w/businesses/${address}/proposals`;
  const { body } = await world.walletCall("alice", "POST", path, { body: removal });
  const proposal = String(body["proposalId"]);
  const own = await world.found({ members: ["mallory"] });
  const signature = signDigest(new Uint8Array(32).fill(1), world.person("mallory").privateKey);
  const vote = { vote: "reject", signature };
  const tries: readonly (readonly [string, object, string])[] = [
    [`/w/votes/${id}`, vote, "ballot_not_found"],
    [`/w/votes/${proposal}`, vote, "ballot_not_found"],
    [`${path}/${proposal}/retract`, {}, "business_not_found"],
    [`/w/businesses/${own.address}/proposals/${proposal}/retract`, {}, "ballot_not_found"],
    [`/w/businesses/${address}/keep`, { signature }, "business_not_found"],
    [`/w/businesses/${address}/abandon`, {}, "business_not_found"],
  ];
  // The locks that a vote holds until it is stored: mallory has to be answered meanwhile.
  await world.ctx.db.transaction(async (tx) => {
    for (const each of [id, proposal]) assert.ok(await lockBallot(tx, each));
    for (const [url, sent, reason] of tries) {
      const answer = await world.walletCall("mallory", "POST", url, { body: sent });
      assert.deepEqual([answer.status, answer.body.error?.reason], [404, reason], url);
    }
  });
});

test("no vote counts but that of a voter, once, over what is asked and as the chain takes it", async () => {
  const id = await world.begin();
  const other = await world.begin({ message: "Something else." });
  const item = await world.findVote("alice", id);
  const good = signatureOf({ item, signer: "alice" });
  const elsewhere = signatureOf({
    item: await world.findVote("alice", other),
    signer: "alice",
  });
  const sent = { vote: "approve", epoch: item["epoch"], validUntil: item["validUntil"] };
  const later = Number(item["validUntil"]) + 1;
  const approving = (changed: Approving["changed"], signer = "alice"): string =>
    signatureOf({ item, signer, ...(changed === undefined ? {} : { changed }) });
  const tries: [string, Record<string, unknown>, string][] = [
    ["malleated", { signature: malleated(good) }, "signature_wrong"],
    ["v 0", { signature: withV(good, "00") }, "signature_wrong"],
    ["v 1", { signature: withV(good, "01") }, "signature_wrong"],
    ["v 29", { signature: withV(good, "1d") }, "signature_wrong"],
    ["no v", { signature: good.slice(0, 130) }, "invalid_request"],
    ["of another question", { signature: elsewhere }, "signature_wrong"],
    ["of another", { signature: approving({}, "bob") }, "signature_wrong"],
    ["of another category", { signature: approving({ category: 2 }) }, "signature_wrong"],
    [
      "of another time",
      { validUntil: later, signature: approving({ validUntil: later }) },
      "ballot_changed",
    ],
    ["of the next epoch", { epoch: 1, signature: approving({ epoch: 1 }) }, "ballot_changed"],
    ["of too large an epoch", { epoch: 2 ** 53, signature: good }, "ballot_changed"],
  ];
  for (const [what, changed, reason] of tries) {
    const body = { ...sent, ...changed };
    const answer = await world.walletCall("alice", "POST", `/w/votes/${id}`, { body });
    assert.equal(answer.body.error?.reason, reason, what);
  }
  const refusal = { vote: "reject", signature: good };
  const refused = await world.walletCall("alice", "POST", `/w/votes/${id}`, { body: refusal });
  assert.equal(refused.body.error?.reason, "signature_wrong");
  assert.doesNotMatch(refused.body.error.message, /login/);
  for (const name of ["mallory", "bob"]) {
    const body = { ...sent, signature: good };
    const answer = await world.walletCall(name, "POST", `/w/votes/${id}`, { body });
    assert.ok(answer.status >= 400 && answer.status < 500, `${name}: ${answer.status}`);
  }
  const upper = { ...sent, signature: `0x${good.slice(2).toUpperCase()}` };
  for (let times = 0; times < 3; times += 1) {
    const answer = await world.walletCall("alice", "POST", `/w/votes/${id}`, { body: upper });
    assert.deepEqual([answer.status, answer.body["status"]], [200, "open"]);
  }
  assert.equal((await world.voteAs("bob", id)).body["status"], "approved");
  await world.reach(id, "signed");
});

test("a member who votes many times at once counts once", async () => {
  const id = await world.begin();
  const item = await world.findVote("alice", id);
  const votes = await Promise.all(
    Array.from({ length: 20 }, async () => world.voteAs("alice", id, { item })),
  );
  for (const { body } of votes) assert.equal(body["status"], "open", JSON.stringify(body));
});

const from = (address: string) => ({ "x-forwarded-for": address });

test("one network has the service pay for sixty transactions in an hour, and no more", async () => {
  const found = async (address: string): Promise<number> => {
    const body = {
      name: "Muster AG",
      members: [{ address: world.person("alice").address, name: "alice", votingRights: true }],
      salt: `0x${"11".repeat(32)}`,
      deadline: 1,
      signature: "0x",
    };
    const headers = from(address);
    return (await world.walletCall("alice", "POST", "/w/businesses", { body, headers })).status;
  };
  const statuses = new Set<number>();
  for (let times = 0; times < 60; times += 1) statuses.add(await found(`2001:db8::${times}`));
  assert.deepEqual(statuses, new Set([400]));
  assert.equal(await found("2001:db8::ff"), 429);
  assert.equal(await found("2001:db8:0:1::ff"), 400);
  const proposed = await world.walletCall(
    "alice",
    "POST",
    `/w/businesses/${world.business.address}/proposals`,
    {
      body: { operation: "withdraw", hash: `0x${"11".repeat(32)}` },
      headers: from("2001:db8::fe"),
    },
  );
  assert.equal(proposed.status, 429);
});

const nobody: Address = `0x${"ab".repeat(20)}`;

test("an offer is claimed by its token alone, and for a business of one's own", async () => {
  const made = await world.call("POST", "/api/v1/kyb/signature-requests/offers", {
    headers: { "idempotency-key": "one" },
    body: { messageKind: "TEXT", message: "Terms", purpose: "To agree on the terms" },
  });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const link = new URL(String(made.body["link"]));
  const conn = new URL(link.searchParams.get("conn") ?? "");
  const { pathname } = conn;
  const take = async (name: string, path: string, business: Address, svcID?: string) =>
    world.walletCall(name, "POST", `${path}/claim`, {
      body: { svcID: svcID ?? world.person(name).address, business },
    });
  const { address } = world.business;
  const [head = "", mac = ""] = pathname.split(".");
  const flipped = `${head}.${mac.startsWith("A") ? "B" : "A"}${mac.slice(1)}`;
  for (const path of [flipped, head, `${pathname}A`, `${head}.`, pathname.toLowerCase()])
    assert.equal((await take("alice", path, address)).status, 404, path);
  const alice = world.person("alice").address;
  assert.equal((await take("mallory", pathname, address)).status, 403);
  assert.equal((await take("mallory", pathname, address, alice)).status, 403);
  assert.equal((await take("alice", pathname, nobody)).status, 403);
  const both = await Promise.all([
    take("alice", pathname, address),
    take("bob", pathname, address),
    world.call("POST", `/api/v1/kyb/offers/${String(made.body["offerId"])}/cancel`, { body: {} }),
  ]);
  const ids = new Set(both.slice(0, 2).flatMap(({ body }) => body["requestId"] ?? []));
  const isCancelled = both[2]?.status === 200;
  assert.equal(ids.size, isCancelled ? 0 : 1, JSON.stringify(both.map(({ body }) => body)));
});

test("no number of invitations hides an honest one, or stands before a vote", async () => {
  const { address } = await world.found({ members: ["kim"] });
  for (const spammer of ["s1", "s2", "s3"])
    for (let number = 0; number < 17; number += 1)
      await world.askFounding({ members: [spammer, "kim"], name: `Spam ${number}` });
  const honest = await world.askFounding({ members: ["partner", "kim"], name: "Honest AG" });
  assert.equal(honest.status, 201);
  const vote = await world.begin({ businessWalletAddress: address });
  for (const limit of [1, 7, 52, 53, 100]) {
    const seen: unknown[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined;) {
      const path = `/w/inbox?limit=${limit}&cursor=${encodeURIComponent(cursor)}`;
      const { body } = await world.walletCall("kim", "GET", path);
      const items = body["items"] as InboxItem[];
      assert.ok(items.length > 0 && items.length <= limit);
      seen.push(...items.map(({ id }) => id));
      cursor = body["nextCursor"] as string | undefined;
    }
    assert.equal(seen[0], vote);
    assert.equal(seen.at(-1), honest.body["invitationId"]);
    assert.equal(new Set(seen).size, 53);
    assert.equal(seen.length, 53);
  }
});

/** A document of the maximal length, made unique by its number. */
const longDocument = (number: number) => ({
  messageKind: "TYPED_DATA",
  purpose: "To agree on the terms",
  typedData: {
    domain: { name: "Shop" },
    types: { Terms: [{ name: "text", type: "string" }] },
    primaryType: "Terms",
    message: { text: `${number}`.padEnd(65_000, " of the terms") },
  },
});

test("a page of an inbox holds about a megabyte, however long the documents are that wait there", async () => {
  const asked: unknown[] = [];
  for (let count = 0; count < 4; count += 1) {
    const { address: businessWalletAddress } = await world.found({ members: ["lea"] });
    for (let number = 0; number < 5; number += 1)
      asked.push(
        await world.begin({ businessWalletAddress, message: undefined, ...longDocument(number) }),
      );
  }
  const seen: unknown[] = [];
  const pages: boolean[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined;) {
    const path = `/w/inbox?cursor=${encodeURIComponent(cursor)}`;
    const { body } = await world.walletCall("lea", "GET", path);
    pages.push(JSON.stringify(body).length < 1.1 * 1024 * 1024);
    seen.push(...(body["items"] as InboxItem[]).map(({ id }) => id));
    cursor = body["nextCursor"] as string | undefined;
  }
  assert.deepEqual(seen, asked);
  assert.deepEqual(pages, [true, true]);
});

test("an inbox of many invitations takes no more of the database than one of a single invitation", async () => {
  await world.askFounding({ members: ["s0", "mia"], name: "Spam" });
  for (let number = 0; number < 16; number += 1)
    await world.askFounding({ members: ["s0", "max"], name: `Spam ${number}` });
  // Background jobs add statements of their own now and then; the fewest of many looks are the inbox alone.
  const fewest = { mia: Infinity, max: Infinity };
  for (let look = 0; look < 20 || (look < 400 && fewest.mia !== fewest.max); look += 1)
    for (const name of ["mia", "max"] as const) {
      const calledBefore = world.ctx.db.callsTotal;
      await world.walletCall(name, "GET", "/w/inbox");
      fewest[name] = Math.min(fewest[name], world.ctx.db.callsTotal - calledBefore);
    }
  assert.equal(fewest.max, fewest.mia);
});

test("no number of invitations hides a business from its members", async () => {
  for (let spammer = 0; spammer < 5; spammer += 1)
    for (let number = 0; number < 20; number += 1)
      await world.askFounding({ members: [`s${spammer}`, "max"], name: `Spam ${number}` });
  await world.advance(1);
  const { address } = await world.found({ members: ["max"], name: "Honest AG" });
  assert.equal((await world.businessOf("max", address))["name"], "Honest AG");
});

const wrong = [422, "signature_wrong"];

test("whoever has a wallet's session but not its key cannot vote, found, log in or open another session", async () => {
  const [alice, thief] = [world.person("alice"), world.person("mallory")];
  const headers = await openWalletSession(world.baseUrl, alice);
  const id = await world.begin();
  assert.deepEqual(reasonOf(await world.voteAs("alice", id, { signer: thief })), wrong);
  const signature = signDigest(new Uint8Array(32).fill(1), thief.privateKey);
  const founding = { members: ["alice", "bob"], changed: { signature } };
  assert.deepEqual(reasonOf(await world.askFounding(founding)), wrong);

  const asked = await (await post(`${world.baseUrl}/w/session/challenge`, {}, headers)).json();
  const challenge = asked as Parameters<typeof sessionDigest>[0];
  const session = {
    svcID: alice.address,
    challenge: challenge.challenge,
    deadline: challenge.deadline,
    signature: signDigest(sessionDigest(challenge), thief.privateKey),
  };
  assert.equal((await post(`${world.baseUrl}/w/session`, session, headers)).status, 422);

  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), alice);
  const approval = { ...claimed, identity: { ...thief, address: alice.address } };
  const { digits } = await statusOf(world.baseUrl, page);
  const answer = await post(claimed.connection, approvalOf(approval, String(digits)), headers);
  assert.equal(answer.status, 422, await answer.text());
});

test("whoever has a wallet's session can read what lies at the service, and values until they are collected, and end what is there", async () => {
  const alice = world.person("alice");
  const { ctx, baseUrl, client } = world;
  await logIn(baseUrl, client, alice);
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  const expiresAt = ctx.clock.now() + 400 * 86_400;
  const issue = async (data: string): Promise<string> => {
    const fields = [{ field: "PHONE", data }];
    const given = { user: alice.address, document: "CONTACT", fields, expiresAt };
    return (await issueCredential(ctx, issuer, given)).id;
  };
  const [collected, waiting] = [await issue("+41791111111"), await issue("+41792222222")];
  const call = async (method: "GET" | "POST", path: string): Promise<Answer> =>
    world.walletCall("alice", method, path, method === "GET" ? {} : { body: {} });
  await call("POST", `/w/credentials/${collected}/collected`);

  const shown = JSON.stringify((await call("GET", "/w/credentials")).body);
  assert.ok(shown.includes("+41792222222"), shown);
  assert.ok(!shown.includes("+41791111111"), shown);
  const logins = (await call("GET", "/w/logins")).body["items"] as { id: string }[];
  const ends = [
    ...logins.map(({ id }) => `/w/logins/${id}/end`),
    `/w/credentials/${collected}/withdraw`,
    `/w/credentials/${waiting}/withdraw`,
  ];
  assert.equal(ends.length, 3);
  for (const path of ends) assert.equal((await call("POST", path)).status, 200, path);
});
