import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";

import {
  clientId,
  clientSecret,
  KycRefusal,
  openFakeIssuer,
  type FakeIssuer,
} from "../../../packages/merchant/test/fake-issuer.ts";
import {
  bodyOf,
  dataBody,
  invalidatedBody,
  signedHeaders,
  signingKey,
  statusBody,
} from "../../../packages/merchant/test/signed-webhook.ts";
import { startAnvil, type Anvil } from "../../../test/anvil.ts";
import {
  infos,
  issuer,
  openSettledChain,
  referenceKey,
  settleOrder,
  user,
  type SettledChain,
  type SettledOrder,
} from "../../../test/settled-order.ts";
import { locationOf, openShopBrowser } from "../test/shop-browser.ts";
import { openShop, type Shop } from "./index.ts";

const apiKey = "svc_live_1_secret";
/** One pixel. */
const qrcode =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const link = `svc:request/${user}?conn=https%3A%2F%2Fid.example%2Fw%2Fo%2Ft`;

let anvil: Anvil;
let chain: SettledChain;
let order: SettledOrder;
let fake: FakeIssuer;
let directory: string;
let shop: Shop;
const faults: unknown[] = [];
const requests: Record<string, unknown>[] = [];

before(async () => {
  anvil = await startAnvil();
  chain = await openSettledChain(anvil);
  const expiresAt = (await chain.now()) + 86_400;
  order = await settleOrder(chain, { chainId: anvil.chainId, expiresAt });
  fake = await openFakeIssuer();
});
after(async () => {
  await fake[Symbol.asyncDispose]();
  await anvil[Symbol.asyncDispose]();
});

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "shop-"));
  faults.length = 0;
  requests.length = 0;
  fake.now = await chain.now();
  fake.idToken = { claims: { sub: `svcid:${user}` } };
  answerAll();
  shop = await open();
});
afterEach(async () => {
  await shop.close();
  await rm(directory, { recursive: true });
});

async function open(): Promise<Shop> {
  const { registry, settlement, operator } = chain;
  return openShop({
    port: 0,
    host: "127.0.0.1",
    issuer: fake.url,
    clientId,
    clientSecret,
    clockUrl: `${fake.url}/health/ready`,
    sessionSecret: "the same after a restart",
    kyc: {
      apiKey,
      sourceKey: "sk_1",
      signingKeys: [signingKey],
      directory: join(directory, "orders"),
      anchors: {
        rpcUrl: anvil.url,
        chainId: anvil.chainId,
        registry,
        settlement,
        operator,
        issuers: [issuer],
      },
    },
    onFault: (error) => faults.push(error),
  });
}

/** The service as it answers while everything goes well. */
function answerAll(): void {
  fake.kyc.clear();
  fake.kyc.set("GET /api/v1/blockchain/verified", ({ query }) => ({
    verifiedItems: query.getAll("items"),
  }));
  fake.kyc.set("POST /api/v2/kyc/qrcode", ({ body }) => {
    requests.push(body);
    return { qrcode, link, expiration: body["expiration"], referenceKey };
  });
  fake.kyc.set("GET /api/v2/kyc/status", () => ({ status: "FAILED", createdAt: fake.now }));
  fake.kyc.set("GET /api/v2/kyc/receipt", () => order.receipt);
  fake.kyc.set("POST /api/v1/blockchain/valid", ({ body }) => {
    requests.push(body);
    return { valids: ["EMAIL"], unValids: ["IDCARD_DOB"], reasons: { IDCARD_DOB: "EXPIRED" } };
  });
}

/** A person who has logged in. */
async function logIn() {
  const { visit, press } = openShopBrowser(shop);
  const start = locationOf(await press("/login"));
  await visit(locationOf(await fetch(start, { redirect: "manual" })));
  return {
    visit,
    press,
    page: async () => (await visit("/verify")).text(),
  };
}

async function deliver(body: string, t = fake.now, key = signingKey): Promise<number> {
  const headers = signedHeaders(body, { t, key });
  const response = await fetch(`${shop.url}/webhooks/kyc`, { method: "POST", body, headers });
  return response.status;
}

const own = { user, referenceKey };
const story = [
  statusBody(1, "PENDING", own),
  statusBody(2, "INITIATING", own),
  statusBody(3, "INITIATED", own),
  statusBody(4, "CONFIRMING", own),
  dataBody(5, infos, own),
  statusBody(6, "CONFIRMED", own),
];
const statusesOf = (page: string): string[] =>
  [...page.matchAll(/<li data-status="(\w+)">/g)].map(([, status = ""]) => status);

test("a person asks for a code and gets the QR, the link for the phone and the state", async () => {
  const person = await logIn();
  assert.match(await (await person.visit("/")).text(), /Verify my age and e-mail/);
  const asked = await person.press("/verify");
  assert.equal(asked.status, 303);
  assert.equal(locationOf(asked), "/verify");
  const { expiration } = requests[0] ?? {};
  // Ten minutes, by a clock that has gone on since the shop was opened.
  const lateSeconds = Number(expiration) - (fake.now + 600);
  assert.ok(lateSeconds >= 0 && lateSeconds < 60, `${lateSeconds}`);
  assert.deepEqual(requests, [
    {
      user,
      sourceKey: "sk_1",
      callback: `${shop.url}/webhooks/kyc`,
      expiration,
      fields: ["IDCARD_DOB", "EMAIL"],
      optionalFields: ["ADDRESS_CITY"],
      purpose: "To sell you coffee liqueur, and to send the receipt",
      returnUrl: `${shop.url}/verify`,
    },
  ]);
  const response = await person.visit("/verify");
  const text = await response.text();
  assert.ok(text.includes(`src="data:image/png;base64,${qrcode}"`));
  assert.ok(text.includes(`href="${link}"`));
  assert.match(text, /<p role="status" id="standing">\s*Waiting for your wallet/);
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'none'; script-src 'self'; connect-src 'self'; /);
  assert.match(policy, /img-src 'self' data:;/);
  assert.doesNotMatch(text, /<script(?! src="\/verify\.js" defer><\/script>)|style=| on\w+=/);
});

test("the page shows every status and the values, to the person alone", async () => {
  const person = await logIn();
  await person.press("/verify");
  for (const body of story) assert.equal(await deliver(body), 200);
  const text = await person.page();
  assert.deepEqual(statusesOf(text), [
    "PENDING",
    "INITIATING",
    "INITIATED",
    "CONFIRMING",
    "CONFIRMED",
  ]);
  assert.match(text, /Done: everything is recorded/);
  assert.match(text, /alice@example\.com/);
  assert.match(text, /1990-02-28 \(3\d: old enough\)/);
  assert.doesNotMatch(text, /data:image/);

  fake.idToken = { claims: { sub: `svcid:0x${"b".repeat(40)}` } };
  const other = await logIn();
  // The version is random: its digits may be those of the year.
  assert.doesNotMatch(withoutVersion(await other.page()), /alice@|1990/);
  const guest = await (await fetch(`${shop.url}/verify`)).text();
  assert.match(guest, /Log in again to see where your request stands/);
  assert.doesNotMatch(guest, /id="order"/);
  assert.equal((await fetch(`${shop.url}/verify/changes?version=0`)).status, 403);
});

test("events that come late, twice or in any order lead to the same page", async () => {
  const person = await logIn();
  for (const body of story) await deliver(body);
  const expected = await person.page();
  await shop.close();
  await rm(join(directory, "orders"), { recursive: true });
  shop = await open();
  const again = await logIn();
  for (const at of [4, 5, 0, 0, 3, 1, 4, 2, 5]) {
    assert.equal(await deliver(story[at] ?? ""), 200);
  }
  assert.equal(withoutVersion(await again.page()), withoutVersion(expected));
});

const withoutVersion = (text: string) => text.replace(/data-version="\d+"/, "");

test("what was answered with 200 is still there after a restart, in a file for the shop alone", async () => {
  for (const body of story) await deliver(body);
  const folder = join(directory, "orders");
  assert.deepEqual(await readdir(folder), [`${referenceKey}.json`]);
  assert.equal((await stat(folder)).mode & 0o777, 0o700);
  assert.equal((await stat(join(folder, `${referenceKey}.json`))).mode & 0o777, 0o600);
  await shop.close();
  shop = await open();
  const person = await logIn();
  assert.match(await person.page(), /alice@example\.com/);
  // The event is still known by its id.
  const written = await readFile(join(folder, `${referenceKey}.json`), "utf8");
  assert.equal(await deliver(story[4] ?? ""), 200);
  assert.equal(await readFile(join(folder, `${referenceKey}.json`), "utf8"), written);
});

test("after a restart a person who has not answered yet is not told that nothing is open", async () => {
  await deliver(story[0] ?? "");
  await shop.close();
  shop = await open();
  const text = await (await logIn()).page();
  assert.match(text, /An earlier request may still be open[\s\S]*>Ask again</);
});

test("a webhook that is not genuine gets a 400 and changes nothing", async (t) => {
  // The machine's clock is stopped, because the shop adds the seconds that pass on it to the broker's time.
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const [body = ""] = story;
  assert.equal(await deliver(body, fake.now, "other"), 400);
  assert.equal(await deliver(body, fake.now - 301), 400);
  assert.equal(await deliver(body, fake.now + 301), 400);
  const unsigned = await fetch(`${shop.url}/webhooks/kyc`, { method: "POST", body });
  assert.equal(unsigned.status, 400);
  assert.deepEqual(await readdir(join(directory, "orders")), []);
  assert.deepEqual(
    faults.map((fault) => (fault as { code: string }).code),
    ["webhook_refused", "webhook_refused", "webhook_refused", "webhook_refused"],
  );
  assert.equal(await deliver(body, fake.now - 300), 200);
});

test("an event of a kind that the shop does not know is answered with 200", async () => {
  const body = bodyOf({ event: "order.archived", sequence: 1, data: {} });
  assert.equal(await deliver(body), 200);
  assert.deepEqual(await readdir(join(directory, "orders")), []);
});

test("when the orders cannot be written the service is told to come again", async () => {
  await rm(join(directory, "orders"), { recursive: true });
  assert.equal(await deliver(story[0] ?? ""), 500);
  const person = await logIn();
  assert.deepEqual(statusesOf(await person.page()), []);
});

test("what the wallet does not hold is named, and nobody is asked", async () => {
  fake.kyc.set("GET /api/v1/blockchain/verified", () => ({
    verifiedItems: ["EMAIL"],
    unVerifiedItems: ["IDCARD_DOB"],
  }));
  const person = await logIn();
  const response = await person.press("/verify");
  assert.match(await response.text(), /<title>Something is still missing -[\s\S]*Date of birth/);
  assert.equal(requests.length, 0);
});

test("a request that is under way leads to its state", async () => {
  fake.kyc.set("POST /api/v2/kyc/qrcode", () => {
    throw new KycRefusal(422, "order_ongoing");
  });
  const person = await logIn();
  await deliver(story[1] ?? "");
  assert.equal(locationOf(await person.press("/verify")), "/verify");
  const text = await person.page();
  assert.match(text, /You approved/);
  assert.doesNotMatch(text, /Ask again|data:image/);
});

test("a service that refuses or fails leads to a page with a way on", async () => {
  const person = await logIn();
  for (const [status, expected] of [
    [402, 502],
    [404, 502],
    [429, 503],
    [500, 503],
    [401, 500],
  ] as const) {
    fake.kyc.set("POST /api/v2/kyc/qrcode", () => {
      throw new KycRefusal(status, "some_reason");
    });
    const response = await person.press("/verify");
    assert.equal(response.status, expected);
    assert.match(await response.text(), /Try again[\s\S]*Back to the shop/);
  }
});

test("after a decline the person is told so and may ask again, at once with a code", async () => {
  const person = await logIn();
  await person.press("/verify");
  await deliver(story[0] ?? "");
  await deliver(statusBody(2, "FAILED", { ...own, failureReason: "USER_DECLINED" }));
  assert.match(await person.page(), /You declined\. We learned nothing new/);
  await person.press("/verify");
  assert.match(await person.page(), /data:image[\s\S]*Good until/);
  await deliver(statusBody(3, "PENDING", { ...own, attempt: 2 }));
  const text = await person.page();
  assert.match(text, /data:image/);
  assert.deepEqual(statusesOf(text), ["PENDING"]);
});

test("a person who declines before the answer with the code comes is told so, and not to scan it", async () => {
  const person = await logIn();
  await deliver(story[0] ?? "");
  fake.kyc.set("POST /api/v2/kyc/qrcode", async ({ body }) => {
    await deliver(statusBody(2, "FAILED", { ...own, failureReason: "USER_DECLINED" }));
    return { qrcode, link, expiration: body["expiration"], referenceKey };
  });
  await person.press("/verify");
  const text = await person.page();
  assert.match(text, /You declined/);
  assert.doesNotMatch(text, /data:image/);
});

test("Check again tells which values still hold", async () => {
  const person = await logIn();
  assert.equal(locationOf(await person.press("/verify/check")), "/verify");
  assert.equal(requests.length, 0, "nothing is stored yet");
  for (const body of story) await deliver(body);
  await person.press("/verify/check");
  assert.deepEqual(requests, [
    {
      user,
      infos: infos.map(({ field, data, pepper }) => ({ field, data, pepper: pepper.slice(2) })),
    },
  ]);
  const text = await person.page();
  assert.match(text, /E-mail address: still holds/);
  assert.match(text, /Date of birth: no longer \(EXPIRED\)/);
});

test("a value that was called invalid is shown as such, until it comes again", async () => {
  const person = await logIn();
  for (const body of story) await deliver(body);
  await deliver(invalidatedBody(7, ["EMAIL"], own));
  assert.match(await person.page(), /data-field="EMAIL"[\s\S]*?called invalid since/);
  await deliver(dataBody(12, infos, { ...own, attempt: 2 }));
  assert.doesNotMatch(await person.page(), /called invalid since/);
});

test("a person who was deleted and comes back shares anew, though their order's numbers begin at 1 again", async () => {
  const person = await logIn();
  for (const body of story) await deliver(body);
  await deliver(invalidatedBody(7, ["EMAIL", "IDCARD_DOB"], own));
  await person.press("/verify");
  assert.match(await person.page(), /alice@example\.com/, "what the service still knows is kept");
  fake.kyc.set("GET /api/v2/kyc/status", () => {
    throw new KycRefusal(404, "order_not_found");
  });
  await person.press("/verify");
  assert.doesNotMatch(await person.page(), /alice@example\.com/);
  const [email, ...others] = infos;
  const renewed = [{ ...email, data: "alice@later.example" }, ...others];
  const later = story.with(4, dataBody(5, renewed as typeof infos, own));
  for (const body of later) assert.equal(await deliver(body.replaceAll("evt_01J", "evt_01K")), 200);
  const text = await person.page();
  assert.match(text, /Done[\s\S]*alice@later\.example/);
  assert.doesNotMatch(text, /called invalid since/);
});

test("the receipt is verified against the chain, fact by fact", async () => {
  const person = await logIn();
  for (const body of story) await deliver(body);
  await person.press("/verify/receipt");
  const text = await person.page();
  const facts = [...text.matchAll(/data-fact="(\w+)"/g)].map(([, fact]) => fact);
  assert.deepEqual(facts, [
    "consent",
    "values",
    "attested",
    "live",
    "attested",
    "live",
    "initiated",
    "confirmed",
  ]);
  assert.ok(text.includes(order.receipt.initiate.transactionHash));
});

test("the receipt is that of the values, not of a later attempt that handed nothing over", async () => {
  const person = await logIn();
  for (const body of story) await deliver(body);
  await deliver(statusBody(7, "INITIATED", { ...own, attempt: 2 }));
  await deliver(statusBody(8, "FAILED", { ...own, attempt: 2, failureReason: "FIELD_REVOKED" }));
  // Without `attempt` the service gives the receipt of the newest one that is anchored.
  fake.kyc.set("GET /api/v2/kyc/receipt", ({ query }) =>
    query.get("attempt") === "1" ? order.receipt : { ...order.receipt, attempt: 2 },
  );
  const response = await person.press("/verify/receipt");
  assert.equal(response.status, 303);
  assert.match(await person.page(), /data-fact="values"/);
});

test("a receipt that the chain does not confirm is not shown as one", async () => {
  const person = await logIn();
  for (const body of story) await deliver(body);
  const { initiate } = order.receipt;
  const transactionHash = order.receipt.confirm?.transactionHash;
  fake.kyc.set("GET /api/v2/kyc/receipt", () => ({
    ...order.receipt,
    initiate: { ...initiate, transactionHash },
  }));
  const response = await person.press("/verify/receipt");
  assert.equal(response.status, 502);
  assert.match(await response.text(), /The receipt proves nothing/);
  assert.doesNotMatch(await person.page(), /data-fact/);
});

test("a page that waits is answered at the next change, and only for its own person", async () => {
  const person = await logIn();
  const version = Number(/data-version="(\d+)"/.exec(await person.page())?.[1]);
  const waiting = person.visit(`/verify/changes?version=${version}`);
  await deliver(
    statusBody(1, "PENDING", { user: `0x${"b".repeat(40)}`, referenceKey: "ef".repeat(32) }),
  );
  await deliver(story[0] ?? "");
  const changed = await waiting;
  assert.equal(changed.status, 204);
  assert.equal(changed.headers.get("x-version"), String(version + 1));
  const late = await person.visit(`/verify/changes?version=${version}`);
  assert.equal(late.headers.get("x-version"), String(version + 1));
});

test("no other site can press a button here, and the webhook needs no origin", async () => {
  const person = await logIn();
  for (const action of ["/verify", "/verify/check", "/verify/receipt"])
    assert.equal((await person.press(action, "https://evil.example")).status, 403);
  assert.equal(requests.length, 0);
});

test("a button of a page about another person, as in a second tab, asks nobody", async () => {
  const person = await logIn();
  for (const body of story) await deliver(body);
  const other = `0x${"b".repeat(40)}`;
  for (const action of ["/verify", "/verify/check", "/verify/receipt"]) {
    assert.ok(!(await person.page()).includes(`action="${action}"`), action);
    assert.equal(locationOf(await person.press(`${action}?for=${other}`)), "/verify");
  }
  assert.deepEqual(requests, []);
  assert.doesNotMatch(await person.page(), /id="(?:validity|receipt)"/);
  await person.press(`/verify/check?for=${user}`);
  assert.equal(requests.length, 1);
});

test("a shop that was not told how does not ask", async () => {
  const plain = await openShop({
    port: 0,
    host: "127.0.0.1",
    issuer: fake.url,
    clientId,
    clientSecret,
  });
  for (const path of ["/verify", "/verify/changes"])
    assert.equal((await fetch(plain.url + path)).status, 404);
  const [body = ""] = story;
  const posted = await fetch(`${plain.url}/webhooks/kyc`, { method: "POST", body });
  assert.equal(posted.status, 404);
  await plain.close();
});
