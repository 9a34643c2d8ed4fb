import assert from "node:assert/strict";
import { test } from "node:test";
import { business, factory, serveBusiness } from "../../test/fake-business.ts";
import { openFakeBroker, signJws } from "../../test/fake-broker.ts";
import { now } from "../../test/fake-fields.ts";
import { accepting, addressOf, refuses, walletOf } from "../../test/test-wallet.ts";
import type { Wallet } from "../index.ts";

await using broker = await openFakeBroker();
const fake = serveBusiness(broker);
const alice = addressOf("alice");

async function fresh(): Promise<Wallet> {
  broker.reset();
  fake.reset();
  return walletOf("alice", [broker.url]);
}

function serveOffer(action: "request" | "sign", required: string[]): string {
  const conn = `${broker.url}/w/f/token`;
  const from = `0x${"ab".repeat(20)}`;
  const claims = {
    iss: broker.url,
    aud: "svc-wallet",
    action,
    id: "01O",
    client_name: "Demo Bank",
    domain: "bank.example",
    from,
    required,
    optional: [],
    scopes: [],
    purpose: "To open an account.",
    iat: 1_000_000,
    exp: now + 600,
    ...(action === "request" ? { callback_host: "localhost" } : {}),
  };
  const header = { alg: "ES256", typ: "svc-request+jwt", kid: broker.key.kid };
  const object = signJws(broker.key, header, claims);
  broker.answers.set("/w/f/token/open", { status: 200, body: object });
  const given = `conn=${encodeURIComponent(conn)}&dl=${now + 600}&type=callback`;
  if (action === "sign") return `svc:sign?data=0x${"11".repeat(32)}&${given}`;
  return `svc:request?${given}&from=${from}&attr=business&id=01O`;
}

await test("an offer is taken for a business by a claim that signs nothing", async () => {
  for (const action of ["request", "sign"] as const) {
    const wallet = await fresh();
    const link = serveOffer(action, action === "request" ? ["BUSINESS_LEGAL_NAME"] : []);
    const { words, concerns } = await wallet.describe(link);
    assert.match(words.join("\n"), /"Demo Bank" \(bank\.example.*\n.*open an account/);
    assert.deepEqual(concerns, []);
    const outcome = await wallet.approve(link, { business });
    assert.ok(outcome.kind === "delivered");
    assert.deepEqual([outcome.status, outcome.answer["requestId"]], [200, "r"]);
    assert.deepEqual(fake.claims, [{ svcID: alice, business }]);
    await refuses(wallet.decline(link), "unsupported");
  }
});

await test("an offer without a business named is taken for the only one", async () => {
  const wallet = await fresh();
  await wallet.approve(serveOffer("request", ["BUSINESS_LEGAL_NAME"]));
  assert.deepEqual(fake.claims, [{ svcID: alice, business }]);
  const other = wallet.approve(serveOffer("request", ["BUSINESS_LEGAL_NAME"]), {
    business: factory,
  });
  await refuses(other, "not_found");
});

await test("a link that asks for fields of a person is not an offer", async () => {
  const wallet = await fresh();
  const link = serveOffer("request", ["BUSINESS_LEGAL_NAME", "IDCARD_DOB"]);
  const fault = /IDCARD_DOB is not a field of a business/;
  await refuses(wallet.describe(link), "invalid_request", fault);
  await refuses(wallet.approve(link, { business }), "invalid_request", fault);
  assert.deepEqual(fake.claims, []);
});

await test("an offer is taken as it was shown", async () => {
  const wallet = await fresh();
  const link = serveOffer("request", ["BUSINESS_LEGAL_NAME"]);
  await wallet.describe(link);
  serveOffer("request", ["BUSINESS_LEI"]);
  await refuses(wallet.approve(link), "invalid_request", /not what was shown/);
  assert.deepEqual(fake.claims, []);
});

await test("an offer's link in another spelling vouches for nothing, and nothing is signed by it", async () => {
  const wallet = await fresh();
  const offer = new URLSearchParams(serveOffer("sign", []).split("?")[1]).get("conn") ?? "";
  const { host } = new URL(offer);
  for (const conn of [
    offer.replace("/w/f/", "/w/./f/"),
    offer.replace("/w/f/", "/w/x/../f/"),
    offer.replace("/w/f/", "/w/%66/"),
    offer.replace("http:", "HTTP:"),
    offer.replace(host, host.toUpperCase()),
  ]) {
    const link = `svc:sign?data=0x6869&conn=${encodeURIComponent(conn)}`;
    await refuses(wallet.describe(link), "invalid_link", /conn/);
    await refuses(wallet.approve(link, accepting("unknown-requester")), "invalid_link", /conn/);
  }
  assert.deepEqual(fake.claims, []);
});

await test("a broker's object for another address than an offer's vouches for no signature", async () => {
  const wallet = await fresh();
  const offer = serveOffer("sign", []);
  const object = broker.answers.get("/w/f/token/open");
  assert.ok(object !== undefined);
  broker.answers.set("/w/other/open", object);
  const link = offer.replace(encodeURIComponent("/w/f/token"), encodeURIComponent("/w/other"));
  await refuses(wallet.approve(link), "forged_request", /does not name what/);
});
