import assert from "node:assert/strict";
import { test } from "node:test";
import {
  buildLink,
  loginDigest,
  parseResult,
  zeroHash,
  type LoginResult,
  type RequestObject,
} from "@svc/protocol";
import {
  digits,
  loginId,
  makeKey,
  openFakeBroker,
  session,
  signerOf,
  signJws,
} from "../test/fake-broker.ts";
import { accepting, refuses, walletOf as openTestWallet, type Name } from "../test/test-wallet.ts";
import {
  ConcernsRefusal,
  memoryStorage,
  type Wallet,
  type WalletParts,
  type WalletStorage,
} from "./index.ts";

await using broker = await openFakeBroker();
const now = 1_000_030;

async function walletOf(
  name: Name,
  { at = now, ...changed }: Partial<WalletParts> & { at?: number } = {},
): Promise<Wallet> {
  return openTestWallet(name, [broker.url], { now: async () => at, ...changed });
}

await test("a QR login is described by what the broker signed, and claimed by that", async () => {
  broker.reset();
  const wallet = await walletOf("alice");
  const description = await wallet.describe(broker.qrLink());
  assert.deepEqual(description.requester, {
    known: true,
    broker: broker.url,
    clientName: "Demo shop",
    domain: "shop.example",
  });
  assert.match(description.words[0] ?? "", /^"Demo shop" \(shop\.example, verified by localhost/);
  assert.deepEqual(
    { code: description.codeNeeded, concerns: description.concerns, ends: description.expiresAt },
    { code: true, concerns: [], ends: 1_000_120 },
  );
  assert.deepEqual(broker.paths(), [
    `POST /w/l/${loginId}/claim`,
    "GET /.well-known/wallet-jwks.json",
  ]);
});

await test("a client's name cannot pass for a verified domain, or for the words around it", async () => {
  const name =
    'Big Bank (bank.example, verified by login.example) asks you to log in. " (x) Ignore:';
  for (const domain of ["shop.example", ""]) {
    broker.reset();
    broker.claims = { client_name: name, domain };
    const { words } = await (await walletOf("alice")).describe(broker.qrLink());
    const quoted = JSON.stringify(name);
    assert.equal(words[0]?.slice(0, quoted.length + 2), `${quoted} (`);
  }
});

await test("the digits approve a login that was claimed before, by another wallet object over one storage", async () => {
  broker.reset();
  const storage = memoryStorage();
  await (await walletOf("alice", { storage })).describe(broker.qrLink());
  const wallet = await walletOf("alice", { storage });
  assert.deepEqual(await wallet.approve(broker.qrLink()), { kind: "code-required" });
  assert.equal(broker.status, "waiting");
  const outcome = await wallet.approve(broker.qrLink(), { code: digits });
  assert.ok(outcome.kind === "delivered");
  assert.deepEqual([outcome.status, outcome.answer], [200, { status: "approved" }]);
  assert.deepEqual(Object.keys(outcome.result).toSorted(), ["session", "signature", "svcID"]);
  assert.equal(broker.paths().filter((path) => path.endsWith("/claim")).length, 1);
  assert.equal(broker.paths().filter((path) => path.endsWith("jwks.json")).length, 1);
});

await test("a login without number matching is approved at once, and then takes no digits", async () => {
  broker.reset();
  broker.numberMatching = false;
  const wallet = await walletOf("alice");
  await refuses(wallet.approve(broker.qrLink(), { code: digits }), "wrong_code");
  const outcome = await wallet.approve(broker.qrLink());
  assert.ok(outcome.kind === "delivered");
  assert.equal(outcome.status, 200);
});

await test("where the broker does not say whether digits are needed, they are", async () => {
  broker.reset();
  broker.claims = { number_matching: undefined };
  const wallet = await walletOf("alice");
  assert.equal((await wallet.describe(broker.qrLink())).codeNeeded, true);
  assert.deepEqual(await wallet.approve(broker.qrLink()), { kind: "code-required" });
  assert.equal(broker.status, "waiting");
});

await test("an approval that the broker refuses says so with its words", async () => {
  broker.reset();
  const wallet = await walletOf("alice");
  const outcome = await wallet.approve(broker.qrLink(), { code: "41" });
  assert.ok(outcome.kind === "delivered");
  assert.equal(outcome.status, 403);
  assert.match(outcome.refusal ?? "", /said by the broker: wrong_number \(wrong_number\)$/);
  assert.equal("claimSecret" in outcome.result || "code" in outcome.result, false);
});

await test("an approval whose digits are not two ASCII digits is refused, and nothing is sent", async () => {
  broker.reset();
  for (const code of ["", "4", "421", "4a", "４２"])
    await refuses((await walletOf("alice")).approve(broker.qrLink(), { code }), "wrong_code");
  assert.deepEqual(broker.received, []);
});

await test("whatever the broker does not call near is another network, and needs to be accepted", async () => {
  for (const acr of ["urn:svc:acr:qr", "urn:svc:acr:same-device", undefined]) {
    broker.reset();
    broker.claims = { acr };
    const wallet = await walletOf("alice");
    assert.deepEqual((await wallet.describe(broker.qrLink())).concerns, ["other-network"]);
    await assert.rejects(wallet.approve(broker.qrLink(), { code: digits }), (error) => {
      assert.ok(error instanceof ConcernsRefusal);
      assert.deepEqual(error.concerns, ["other-network"]);
      return true;
    });
    assert.equal(broker.status, "waiting");
    await wallet.approve(broker.qrLink(), { code: digits, ...accepting("other-network") });
    assert.equal(broker.status, "approved");
  }
});

await test("a decline claims first, proves the claim and says who did not start it", async () => {
  broker.reset();
  const wallet = await walletOf("alice");
  const outcome = await wallet.decline(broker.qrLink(), { notStarted: true });
  assert.ok(outcome.kind === "delivered");
  assert.equal(outcome.status, 200);
  assert.equal(broker.status, "declined");
  assert.equal(broker.bodies().at(-1)?.["notStarted"], true);
});

await test("a login that another wallet claimed cannot be claimed", async () => {
  broker.reset();
  await (await walletOf("alice")).describe(broker.qrLink());
  await refuses((await walletOf("bob")).describe(broker.qrLink()), "broker_refused", /already_cl/);
});

await test("two wallets over one storage that claim at once send the same claim", async () => {
  broker.reset();
  const storage = memoryStorage();
  const wallets = await Promise.all([1, 2, 3].map(async () => walletOf("alice", { storage })));
  await Promise.all(wallets.map(async (wallet) => wallet.describe(broker.qrLink())));
  const claims = broker.received.filter(({ path }) => path.endsWith("/claim"));
  assert.equal(new Set(claims.map(({ body }) => body["claim"])).size, 1);
});

await test("a claim whose answer was lost is sent again, and a code that moved on replaces a stale one", async () => {
  broker.reset();
  const storage = memoryStorage();
  const path = `/w/l/${loginId}/claim`;
  broker.answers.set(path, { status: 503, body: "" });
  await refuses((await walletOf("alice", { storage })).describe(broker.qrLink()), "broker_refused");
  broker.answers.clear();
  const stale = broker.qrLink().replace("448000000", "447999999");
  const another = memoryStorage();
  broker.answers.set(path, { status: 503, body: "" });
  await refuses((await walletOf("alice", { storage: another })).describe(stale), "broker_refused");
  broker.answers.clear();
  await (await walletOf("alice", { storage })).describe(broker.qrLink());
  const [first, , third] = broker.received.filter((each) => each.path === path);
  assert.equal(first?.body["claim"], third?.body["claim"]);
  broker.claimed = null;
  await (await walletOf("alice", { storage: another })).describe(broker.qrLink());
});

await test("a link with another login's session does not go on with a claim", async () => {
  broker.reset();
  const storage = memoryStorage();
  await (await walletOf("alice", { storage })).describe(broker.qrLink());
  const other = broker.qrLink().replace(`sess=${loginId}`, "sess=CCCCCCCCCCCCCCCCCCCCCA");
  await refuses((await walletOf("alice", { storage })).approve(other), "invalid_link", /sess/);
});

const forgeries: Record<string, { claims?: object; header?: object; pattern: RegExp }> = {
  "another issuer": { claims: { iss: "https://evil.example" }, pattern: /iss/ },
  "the issuer with a slash": { claims: { iss: "http://localhost/" }, pattern: /iss/ },
  "a session of another login": {
    claims: { sess: session.replaceAll("A", "C") },
    pattern: /sess differs/,
  },
  "no session": { claims: { sess: undefined }, pattern: /sess/ },
  "another audience": { claims: { aud: "someone" }, pattern: /aud/ },
  "another action": { claims: { action: "td", sess: undefined, id: "1" }, pattern: /action/ },
  "a time in the future": { claims: { iat: now + 3600 }, pattern: /iat/ },
  "fields that a login never asks for": { claims: { required: ["EMAIL"] }, pattern: /fields/ },
  "a name that turns the line around": {
    claims: { client_name: "a\u202eb" },
    pattern: /client_name/,
  },
  "another typ": { header: { typ: "JWT" }, pattern: /svc-request/ },
  "alg none": { header: { alg: "none" }, pattern: /ES256/ },
  "alg RS256": { header: { alg: "RS256" }, pattern: /ES256/ },
  "alg HS256": { header: { alg: "HS256" }, pattern: /ES256/ },
  "a key that the broker does not publish": { header: { kid: "unknown" }, pattern: /key/ },
  "a key of its own in the header": { header: { jwk: {} }, pattern: /jwk/ },
};

for (const [name, { claims = {}, header = {}, pattern }] of Object.entries(forgeries)) {
  await test(`a request object with ${name} is refused and nothing is signed`, async () => {
    broker.reset();
    Object.assign(broker, { claims, header });
    const wallet = await walletOf("alice");
    await refuses(wallet.describe(broker.qrLink()), "forged_request", pattern);
    await refuses(wallet.approve(broker.qrLink(), { code: digits }), "forged_request", pattern);
    assert.equal(broker.paths().includes(`POST /w/l/${loginId}`), false);
  });
}

await test("a request object of another key, even under the right kid, is refused", async () => {
  broker.reset();
  const thief = makeKey(broker.key.kid);
  const claims: Partial<RequestObject> = {
    iss: broker.url,
    action: "login",
    sess: session,
    exp: 9e9,
  };
  broker.forged = signJws(thief, { alg: "ES256", typ: "svc-request+jwt", kid: thief.kid }, claims);
  await refuses((await walletOf("alice")).describe(broker.qrLink()), "forged_request", /signature/);
  broker.reset();
  broker.forged = "no.object";
  await refuses((await walletOf("alice")).describe(broker.qrLink()), "forged_request");
});

await test("an expired request object is refused, also when it was claimed in time", async () => {
  broker.reset();
  const storage = memoryStorage();
  await (await walletOf("alice", { storage })).describe(broker.qrLink());
  const late = await walletOf("alice", { storage, at: 1_000_120 });
  await refuses(late.approve(broker.qrLink(), { code: digits }), "expired");
  assert.equal(broker.status, "waiting");
});

await test("a new key of the broker is fetched when an object names it, once", async () => {
  broker.reset();
  const storage = memoryStorage();
  await (await walletOf("alice", { storage })).describe(broker.qrLink());
  broker.claimed = null;
  const next = makeKey("wallet-2");
  broker.published = [broker.key, next];
  const original = broker.key;
  broker.key = next;
  try {
    await (await walletOf("bob", { storage })).describe(broker.qrLink());
  } finally {
    broker.key = original;
  }
  assert.equal(broker.paths().filter((path) => path.endsWith("jwks.json")).length, 2);
});

await test("on the same device the answer is an address to open, signed over the claimed object", async () => {
  broker.reset();
  const wallet = await walletOf("alice");
  assert.equal((await wallet.describe(broker.sameDeviceLink())).codeNeeded, false);
  const outcome = await wallet.approve(broker.sameDeviceLink());
  assert.ok(outcome.kind === "opened");
  const result = parseResult("login", { type: "app-link", url: outcome.url }) as LoginResult;
  assert.deepEqual(
    [result.session, result.claimSecret, result.code],
    [loginId, undefined, undefined],
  );
  assert.equal(broker.paths().at(-1), "GET /.well-known/wallet-jwks.json");
  const declined = await wallet.decline(broker.sameDeviceLink());
  const url = `${broker.url}/w/b/${loginId}?error=access_denied&session=${loginId}`;
  assert.deepEqual(declined, { kind: "opened", url });
  // The broker learns of it only if the browser comes back.
  assert.equal((await wallet.describe(broker.sameDeviceLink())).action, "login");
});

await test("a service that is no broker of the wallet is not contacted before the approval", async () => {
  broker.reset();
  broker.answers.set(`/w/l/${loginId}`, { status: 200, body: "thank you" });
  const wallet = await walletOf("alice", { seededBrokers: [] });
  const description = await wallet.describe(broker.qrLink());
  assert.deepEqual(description.requester, { known: false, host: new URL(broker.url).host });
  await assert.rejects(wallet.approve(broker.qrLink()), ConcernsRefusal);
  assert.deepEqual(broker.received, []);
  const outcome = await wallet.approve(broker.qrLink(), accepting("unknown-requester"));
  assert.ok(outcome.kind === "delivered");
  assert.deepEqual([outcome.status, outcome.answer], [200, {}]);
  assert.deepEqual(broker.paths(), [`POST /w/l/${loginId}`]);
  const { signature, svcID, ...others } = broker.bodies()[0] ?? {};
  assert.deepEqual(others, { session });
  const connection = `${broker.url}/w/l/${loginId}`;
  const message = { session, connection, requester: "", code: "", object: zeroHash };
  assert.equal(signerOf(loginDigest(message), String(signature)), svcID);
});

await test("somebody unknown learns of a refusal no identity, unless that is accepted", async () => {
  broker.reset();
  broker.answers.set(`/w/l/${loginId}`, { status: 204, body: "" });
  const wallet = await walletOf("alice", { seededBrokers: [] });
  await wallet.decline(broker.qrLink());
  assert.deepEqual(broker.bodies()[0], { error: "access_denied", session });
  await wallet.decline(broker.qrLink(), accepting("unknown-requester"));
  assert.deepEqual(Object.keys(broker.bodies()[1] ?? {}), [
    "error",
    "session",
    "svcID",
    "signature",
  ]);
});

await test("a link whose conn is not spelled as a broker spells it is refused, and nobody is asked", async () => {
  const wallet = await walletOf("alice");
  const connections = [
    `${broker.url}/w/f/../l/${loginId}`,
    `${broker.url}/w/./l/${loginId}`,
    `${broker.url}/w/%6c/${loginId}`,
    `${broker.url}/w/l/${loginId}?x=1`,
    `${broker.url.replace("http:", "HTTP:")}/w/l/${loginId}`,
  ];
  for (const connection of connections) {
    broker.reset();
    const link = buildLink({ action: "login", session, connection, returnType: "callback" });
    await refuses(wallet.describe(link), "invalid_link", /spelled/);
    await refuses(wallet.approve(link, { code: digits }), "invalid_link", /spelled/);
    assert.deepEqual(broker.received, [], connection);
  }
});

await test("a link for another identity, of another action or in another way is refused", async () => {
  const wallet = await walletOf("alice");
  const other = broker.qrLink().replace("svc:login", `svc:login/0x${"11".repeat(20)}`);
  await refuses(wallet.describe(other), "other_identity");
  await refuses(wallet.approve(broker.qrLink().replace("callback", "p2p")), "unsupported");
  await refuses(wallet.approve(broker.qrLink().replace("callback", "nfc")), "unsupported", /NFC/);
  await refuses(wallet.approve(broker.qrLink().replace("callback", "qr")), "unsupported");
  const alone = await walletOf("alice", { seededBrokers: [] });
  await refuses(alone.approve("svc:?attr=email&type=qr"), "no_matching_data", /EMAIL/);
  await refuses(wallet.approve("https://shop.example"), "invalid_link");
  await refuses(wallet.describe(`https://wallet.example/l#${other}`), "other_identity");
  await refuses(wallet.approve("https://wallet.example/l#svc:pay?sess=a"), "invalid_link");
  broker.reset();
  broker.claims = { scopes: ["openid", "business"] };
  await refuses(wallet.approve(broker.qrLink(), { code: digits }), "forged_request");
});

await test("redirects, endless answers and plain http to another machine end in a refusal", async () => {
  broker.reset();
  const path = `/w/l/${loginId}/claim`;
  const storage: WalletStorage = memoryStorage();
  const wallet = await walletOf("alice", {
    storage,
    seededBrokers: [broker.url, "https://b.example"],
  });
  broker.answers.set(path, { status: 307, body: "", headers: { location: `${broker.url}/x` } });
  await refuses(wallet.describe(broker.qrLink()), "unreachable", /redirects/);
  broker.answers.set(path, { status: 200, body: "a".repeat(300_000) });
  await refuses(wallet.describe(broker.qrLink()), "forged_request");
  const plain = `svc:sign?data=0x00&conn=${encodeURIComponent("http://shop.example/x")}`;
  await refuses(wallet.approve(plain, accepting("unknown-requester")), "unreachable", /https/);
  await refuses(
    wallet.approve(plain.replace("http%3A", "https%3A").replace("shop.example", "b.example")),
    "unreachable",
  );
});

await test("logins are listed page by page and ended in one session, which is closed", async () => {
  broker.reset();
  broker.logins.push({ id: "two", clientName: "Second", domain: "b.example", at: 4, acr: "x" });
  broker.logins.push({
    id: "\ud800",
    clientName: "No address",
    domain: "c.example",
    at: 3,
    acr: "x",
  });
  const wallet = await walletOf("alice", { at: 3_999_000 });
  const logins = await wallet.logins();
  assert.deepEqual(
    logins.map(({ id, clientName }) => [id, clientName]),
    [
      ["one", "Demo<U+202E>shop"],
      ["two", "Second"],
    ],
  );
  await wallet.endLogin("one");
  await refuses(wallet.endLogin("none"), "not_found");
  await wallet.close();
  // Two calls at the same time share a session, too.
  broker.received.length = 0;
  await Promise.all([wallet.logins(), wallet.logins()]);
  await wallet.close();
  assert.equal(broker.paths().filter((path) => path === "POST /w/session").length, 1);
  assert.equal(broker.paths().at(-1), "DELETE /w/session");
});

await test("a challenge made out to another origin, for no time, too long or in too long an answer is not signed", async () => {
  for (const challenge of [
    { challenge: "c", deadline: 1_000_100, origin: "https://evil.example" },
    { challenge: "c", deadline: 9_000_000, origin: broker.url },
    { challenge: "c", deadline: 1_000_100.5, origin: broker.url },
    { challenge: "c", deadline: -1, origin: broker.url },
    { challenge: "c\u202e", deadline: 1_000_100, origin: broker.url },
    { challenge: "c", deadline: 1_000_100, origin: broker.url, pad: "a".repeat(300_000) },
  ]) {
    broker.reset();
    broker.answers.set("/w/session/challenge", { status: 200, body: challenge });
    await refuses((await walletOf("alice")).logins(), "broker_refused", /challenge/);
    assert.equal(broker.paths().includes("POST /w/session"), false);
  }
});

await test("a login for somebody unknown needs the deliberate yes however its answer travels", async () => {
  broker.reset();
  const wallet = await walletOf("alice");
  for (const type of ["callback", "qr", "p2p", "app-link"]) {
    const link = `svc:login?sess=a&conn=https%3A%2F%2Fshop.example%2Fin&type=${type}`;
    assert.deepEqual((await wallet.describe(link)).concerns, ["unknown-requester"], type);
    await assert.rejects(wallet.approve(link), ConcernsRefusal, type);
  }
  assert.deepEqual((await wallet.describe("svc:login?sess=a")).concerns, []);
});

await test("a session that the broker forgot is opened anew, once", async () => {
  broker.reset();
  broker.deadline = now + 300;
  const wallet = await walletOf("alice");
  const opened = () => broker.paths().filter((path) => path === "POST /w/session").length;
  await wallet.logins();
  broker.token = "token-of-another-session";
  await wallet.logins();
  assert.equal(opened(), 2);
  broker.answers.set("/w/logins/one/end", { status: 401, body: {} });
  await refuses(wallet.endLogin("one"), "broker_refused");
  assert.equal(opened(), 3);
});

await test("a session whose challenge was used on its way is opened by another one, once", async () => {
  broker.reset();
  broker.deadline = now + 300;
  for (const refusals of [1, 2]) {
    let left = refusals;
    const send: typeof fetch = async (url, init) => {
      if (url !== `${broker.url}/w/session` || left === 0) return fetch(url, init);
      left -= 1;
      return new Response("{}", { status: 422 });
    };
    const listed = (await walletOf("alice", { fetch: send })).logins();
    if (refusals === 1) await listed;
    else await refuses(listed, "broker_refused");
    assert.equal(left, 0);
  }
});

await test("by a clock that tells no Unix seconds nothing is signed", async () => {
  const late = "svc:sign?data=0x6869&type=qr&dl=1000000";
  const handOver = `svc:${(await walletOf("alice")).address}?attr=email&type=text`;
  for (const at of [NaN, Infinity, now * 1_000_000, now + 0.5, -1, null as never]) {
    const wallet = await walletOf("alice", { at });
    for (const link of [late, handOver])
      await refuses(wallet.approve(link), "invalid_input", /clock/);
  }
});
