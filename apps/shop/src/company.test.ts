import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import {
  business,
  businessClaims,
  businessName,
  businessSignature,
  chainId,
  clientDomainId,
  kybBody,
  kybHeaders,
  newBusiness,
  playBusiness,
  requestId,
  signatureRequestId,
  transactionHash,
  type FakeBusiness,
} from "../../../packages/merchant/test/fake-business.ts";
import {
  clientId,
  clientSecret,
  KycRefusal,
  openFakeIssuer,
  type FakeIssuer,
} from "../../../packages/merchant/test/fake-issuer.ts";
import { freePort } from "../../../test/world.ts";
import { locationOf, logInto } from "../test/shop-browser.ts";
import { openShop, type Shop } from "./index.ts";

let fake: FakeIssuer;
let company: FakeBusiness;
let directory: string;
let shop: Shop;
const faults: unknown[] = [];

before(async () => {
  fake = await openFakeIssuer();
});
after(async () => fake[Symbol.asyncDispose]());
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "shop-"));
  faults.length = 0;
  fake.kyc.clear();
  fake.refusal = undefined;
  fake.areAccessTokensOver = false;
  fake.tokenRefusal = undefined;
  fake.idToken = { claims: businessClaims };
  company = playBusiness(fake);
  shop = await open();
});
afterEach(async () => {
  await shop.close();
  await rm(directory, { recursive: true });
});

async function open({ port = 0, takesCompanies = true } = {}): Promise<Shop> {
  const kyb = {
    apiKey: "svc_live_1_secret",
    clientDomainId,
    directory,
    chain: { rpcUrl: `${fake.url}/rpc`, chainId },
  };
  return openShop({
    port,
    host: "127.0.0.1",
    issuer: fake.url,
    clientId,
    clientSecret,
    clockUrl: `${fake.url}/health/ready`,
    sessionSecret: "the same after a restart",
    ...(takesCompanies && { kyb }),
    onFault: (error) => faults.push(error),
  });
}

const logIn = async (button = "/company/login") => logInto(shop, button);

async function deliver(body: string, t = fake.now, secret?: string): Promise<number> {
  const headers = kybHeaders(body, { t, ...(secret !== undefined && { secret }) });
  return (await fetch(`${shop.url}/webhooks/kyb`, { method: "POST", body, headers })).status;
}

const pending = (): string => kybBody("kyb.data_request.pending_approval", fake, { seq: 1 });
const released = async (): Promise<string> =>
  kybBody("kyb.data_request.released", fake, {
    seq: 2,
    attestation: await company.attestation(),
  });
const signed = (): string =>
  kybBody("kyb.signature_request.signed", fake, {
    seq: 2,
    of: signatureRequestId,
    data: { signature: businessSignature, transaction_hash: transactionHash },
  });
const codes = (): string[] => faults.map((fault) => (fault as { code: string }).code);
const stateOf = (page: string, section: string): string =>
  new RegExp(`id="${section}" data-status="(\\w+)"`).exec(page)?.[1] ?? "";

const versionOf = (page: string): number => Number(/data-version="(\d+)"/.exec(page)?.[1]);

test("a company logs in with a scope of its own, and arrives at its page", async () => {
  const guest = await fetch(`${shop.url}/company`);
  assert.match(await guest.text(), /<title>Coffee for[\s\S]*action="\/company\/login"/);
  const member = await logIn();
  assert.equal(member.scope, "openid offline_access business");
  assert.equal(locationOf(member.arrived), "/company");
  const page = await member.page();
  assert.ok(page.includes(businessName) && page.includes(business));
  assert.match(page, /whose record is verified/);
  assert.match(await (await member.visit("/")).text(), new RegExp(`Welcome, ${businessName}`));
});

test("a company that did not log in is told so, and may try again as a company", async () => {
  fake.refusal = "access_denied";
  const { arrived } = await logIn();
  assert.equal(arrived.status, 403);
  const page = await arrived.text();
  assert.match(page, /Your company did not log in[\s\S]*action="\/company\/login"/);
  const person = await logIn("/login");
  assert.match(await person.arrived.text(), /You declined the login[\s\S]*action="\/login"/);
});

test("a member stays one when the hour of the tokens is over, and is a guest once it has left the company", async () => {
  const member = await logIn();
  fake.areAccessTokensOver = true;
  assert.ok((await member.page()).includes(business));
  fake.refreshTokens.clear();
  assert.equal((await member.visit("/company/changes?version=0")).status, 403);
  assert.match(await member.page(), /action="\/company\/login"/);
  assert.doesNotMatch(await (await member.visit("/")).text(), new RegExp(businessName));
  assert.equal(locationOf(await member.press("/company/register")), "/company");
  assert.equal(company.asked.length, 0);
});

test("of two pages that find the hour over, the slower one uses no refresh token that the other has used", async () => {
  const member = await logIn();
  fake.areAccessTokensOver = true;
  const [asked, renewed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  fake.beforeNextUserinfo = async () => {
    asked.resolve();
    await renewed.promise;
  };
  const slow = member.page();
  await asked.promise;
  assert.ok((await member.page()).includes(business));
  renewed.resolve();
  assert.ok((await slow).includes(business));
  assert.ok((await member.page()).includes(business), "the session goes on");
});

test("while the broker has too much to do a member stays one, and its tokens stay unspent", async () => {
  const member = await logIn();
  const held = [...fake.refreshTokens];
  fake.tokenRefusal = { status: 429, error: "temporarily_unavailable" };
  const busy = await member.visit("/company");
  assert.equal(busy.status, 503);
  const text = await busy.text();
  assert.match(text, /<a class="button" href="\/company">Try again</);
  assert.doesNotMatch(text, /action="\/login"/, "a login would be that of a person alone");
  const refused = await member.press(`/company/continue?from=${business}`);
  assert.ok((await refused.text()).includes(`action="/company/continue?from=${business}"`));
  fake.tokenRefusal = undefined;
  assert.deepEqual([...fake.refreshTokens], held);
  assert.ok((await member.page()).includes(business));
});

test("a company registers: it is asked, and its values are shown once they are verified", async () => {
  const member = await logIn();
  assert.equal(stateOf(await member.page(), "registration"), "none");
  assert.equal(locationOf(await member.press("/company/register")), "/company");
  assert.deepEqual(company.asked, [
    {
      businessWalletAddress: business,
      fields: ["BUSINESS_LEGAL_NAME", "BUSINESS_REGISTRATION_NUMBER", "BUSINESS_DIRECTOR_NAME"],
      purpose: "To open an account for your company",
    },
  ]);
  assert.equal(stateOf(await member.page(), "registration"), "pending_approval");
  assert.equal(await deliver(pending()), 200);
  assert.equal(await deliver(await released()), 200);
  const page = await member.page();
  assert.equal(stateOf(page, "registration"), "released");
  for (const shown of ["CHE-123.456.788", "Alice Example", "Bob Beispiel", "Register AG"])
    assert.ok(page.includes(shown), shown);
});

test("the page is for whoever acts for the company, and for nobody else", async () => {
  await deliver(await released());
  for (const claims of [
    {},
    {
      ext: {
        ...businessClaims.ext,
        business: { ...businessClaims.ext.business, id: `0x${"9".repeat(40)}` },
      },
    },
  ]) {
    fake.idToken = { claims };
    const other = await logIn();
    assert.doesNotMatch(await other.page(), /CHE-123|Alice Example/);
  }
  fake.idToken = {};
  const person = await logIn("/login");
  assert.equal((await person.visit("/company/changes?version=0")).status, 403);
  await person.press("/company/register");
  await person.press("/company/terms");
  assert.deepEqual(company.asked, []);
});

test("events that come late, twice or in any order lead to the same page", async () => {
  const member = await logIn();
  const story = [pending(), await released()];
  for (const at of [1, 0, 1, 0, 0]) assert.equal(await deliver(story[at] ?? ""), 200);
  const page = await member.page();
  assert.equal(stateOf(page, "registration"), "released");
  assert.match(page, /CHE-123/);
});

test("an event of an earlier request comes too late for a later one", async () => {
  const earlier = {
    data: `${requestId.slice(0, -1)}9`,
    signature: signatureRequestId.replace("S", "R"),
  };
  const member = await logIn();
  assert.equal(
    await deliver(kybBody("kyb.data_request.refused", fake, { seq: 2, of: earlier.data })),
    200,
  );
  assert.equal(stateOf(await member.page(), "registration"), "refused");
  for (const body of [await released(), signed()]) assert.equal(await deliver(body), 200);
  const attestation = await company.attestation({
    jti: "01JE9",
    stream_id: earlier.data,
    seq: 3,
    fields: [],
  });
  for (const late of [
    kybBody("kyb.data_request.released", fake, {
      seq: 3,
      of: earlier.data,
      id: "01JE9",
      attestation,
    }),
    kybBody("kyb.signature_request.expired", fake, { seq: 2, of: earlier.signature }),
  ])
    assert.equal(await deliver(late), 200);
  const page = await member.page();
  assert.equal(stateOf(page, "registration"), "released");
  assert.match(page, /CHE-123/);
  assert.equal(stateOf(page, "terms"), "signed");
  assert.ok(page.includes(transactionHash));
});

test("what was released is kept also where it is told of after the next request, which may release nothing", async () => {
  const member = await logIn();
  const of = `${requestId.slice(0, -1)}Z`;
  const told = [
    kybBody("kyb.data_request.pending_approval", fake, { seq: 1, of }),
    await released(),
    kybBody("kyb.data_request.refused", fake, { seq: 2, of }),
  ];
  for (const body of told) assert.equal(await deliver(body), 200);
  const page = await member.page();
  assert.equal(stateOf(page, "registration"), "refused");
  assert.match(page, /CHE-123/);
});

test("a release whose attestation is not genuine, or not for this shop, is not believed", async () => {
  const { fields } = JSON.parse(
    Buffer.from((await company.attestation()).split(".")[1] ?? "", "base64url").toString(),
  ) as { fields: object[] };
  const [first, ...others] = fields;
  for (const attestation of [
    await company.attestation({ aud: "another client domain" }),
    await company.attestation({ iss: "https://evil.example/kyb" }),
    await company.attestation({ exp: fake.now - 60 }),
    await company.attestation({ fields: [{ ...first, value: "Another AG" }, ...others] }),
    `${await company.attestation()}x`,
  ]) {
    const body = kybBody("kyb.data_request.released", fake, { seq: 2, attestation });
    assert.equal(await deliver(body), 400);
  }
  assert.deepEqual(new Set(codes()), new Set(["attestation_refused"]));
  const member = await logIn();
  assert.doesNotMatch(await member.page(), /CHE-123|Another AG/);
});

test("nothing is released or signed by the word of a webhook alone", async () => {
  const member = await logIn();
  assert.equal(await deliver(kybBody("kyb.data_request.released", fake, { seq: 2 })), 400);
  assert.deepEqual(codes(), ["attestation_refused"]);
  for (const [event, status, of] of [
    ["kyb.data_request.cancelled", "released", requestId],
    ["kyb.signature_request.cancelled", "signed", signatureRequestId],
  ] as const)
    assert.equal(await deliver(kybBody(event, fake, { seq: 2, of, data: { status } })), 200);
  const page = await member.page();
  assert.equal(stateOf(page, "registration"), "cancelled");
  assert.equal(stateOf(page, "terms"), "cancelled");
});

test("a webhook under another secret or of another time gets a 400 and changes nothing", async () => {
  const body = pending();
  assert.equal(await deliver(body, fake.now, "cd".repeat(32)), 400);
  assert.equal(await deliver(body, fake.now - 301), 400);
  const unsigned = await fetch(`${shop.url}/webhooks/kyb`, { method: "POST", body });
  assert.equal(unsigned.status, 400);
  assert.deepEqual(codes(), ["webhook_refused", "webhook_refused", "webhook_refused"]);
  assert.deepEqual(await readdir(join(directory, "companies")), []);
  assert.equal(await deliver(kybBody("kyb.endpoint.test", fake, { seq: 1 })), 200);
});

test("a company signs the terms, and the shop believes the chain alone", async () => {
  const member = await logIn();
  await member.press("/company/terms");
  await member.press("/company/terms");
  assert.equal(company.asked.length, 1, "an open request is not made again");
  assert.match(String(company.asked[0]?.["message"]), /^Terms of Corner Coffee/);
  company.isSigned = false;
  assert.equal(await deliver(signed()), 400);
  assert.deepEqual(codes(), ["signature_refused"]);
  assert.equal(stateOf(await member.page(), "terms"), "pending_approval");
  company.isSigned = true;
  assert.equal(await deliver(signed()), 200);
  const page = await member.page();
  assert.equal(stateOf(page, "terms"), "signed");
  assert.ok(page.includes(transactionHash));
  await member.press("/company/terms");
  assert.equal(company.asked.length, 1, "nor is one that was signed");
});

const actingFor = (id: string) => ({
  ext: { ...businessClaims.ext, business: { ...businessClaims.ext.business, id } },
});

test("a button of a page about another company, as in a second tab, asks nobody", async () => {
  const first = await (await logIn()).page();
  fake.idToken = { claims: actingFor(newBusiness) };
  const other = await logIn();
  for (const name of ["register", "terms"]) {
    const action = new RegExp(`action="(/company/${name}[^"]*)"`);
    assert.equal(locationOf(await other.press(action.exec(first)?.[1] ?? "")), "/company");
    assert.equal(company.asked.length, 0);
    await other.press(action.exec(await other.page())?.[1] ?? "");
    assert.equal(company.asked.splice(0).length, 1, "that of its own page does");
  }
});

test("a company goes on in its new wallet with what it released, once that wallet's own company says so", async () => {
  await deliver(await released());
  await deliver(signed());
  const body = await company.movedBody();
  const forged = JSON.parse(body) as { data: object };
  const elsewhere = { ...forged.data, new_business_wallet_address: `0x${"9".repeat(40)}` };
  for (const refused of [
    JSON.stringify({ ...forged, data: elsewhere }),
    JSON.stringify({ ...forged, attestation: await company.attestation() }),
    await company.movedBody({ aud: "another client domain" }),
  ])
    assert.equal(await deliver(refused), 400);
  assert.deepEqual(new Set(codes()), new Set(["attestation_refused"]));
  fake.idToken = { claims: actingFor(newBusiness) };
  const member = await logIn();
  const press = async () => member.press(`/company/continue?from=${business}`);
  await press();
  assert.doesNotMatch(await member.page(), /CHE-123|data-moved/);
  for (let times = 0; times < 2; times += 1) assert.equal(await deliver(body), 200);
  const asked = await member.page();
  assert.ok(asked.includes(`data-moved="${business}"`));
  assert.equal(stateOf(asked, "registration"), "none");
  assert.doesNotMatch(asked, /CHE-123/);
  for (const from of ["", "?from=", `?from=0x${"9".repeat(40)}`, `?from=${newBusiness}`])
    await member.press(`/company/continue${from}`);
  assert.doesNotMatch(await member.page(), /CHE-123/, "it goes on from the wallet that was named");
  assert.equal(locationOf(await press()), "/company");
  const page = await member.page();
  assert.equal(stateOf(page, "registration"), "released");
  assert.match(page, /CHE-123/);
  assert.doesNotMatch(page, /data-moved/);
  assert.equal(stateOf(page, "terms"), "none", "what was signed is the old wallet's alone");
});

test("a company that another one names when it moves keeps its own page, and nobody else is asked", async () => {
  await deliver(await released());
  await deliver(await company.movedBody());
  fake.idToken = { claims: actingFor(`0x${"9".repeat(40)}`) };
  const other = await logIn();
  await other.press(`/company/continue?from=${business}`);
  assert.doesNotMatch(await other.page(), /CHE-123|data-moved/);
  fake.idToken = { claims: actingFor(newBusiness) };
  const named = await logIn();
  await named.press("/company/register");
  assert.equal(stateOf(await named.page(), "registration"), "pending_approval");
  assert.doesNotMatch(await named.page(), /CHE-123/);
});

test("moves lead on in whatever order they are told, and also through wallets that the shop never met", async () => {
  const last = `0x${"3".repeat(40)}`;
  const data = {
    business_wallet_address: newBusiness,
    new_business_wallet_address: last,
    changed_at: fake.now - 1,
  };
  const onward = JSON.parse(await company.movedBody({ sub: newBusiness, ...data })) as object;
  assert.equal(await deliver(JSON.stringify({ ...onward, data })), 200);
  await deliver(await company.movedBody());
  await deliver(await released());
  fake.idToken = { claims: actingFor(last) };
  const member = await logIn();
  await member.press(`/company/continue?from=${business}`);
  assert.match(await member.page(), /CHE-123/);
});

test("while the chain is away the service is told to come again", async () => {
  fake.kyc.delete("POST /rpc");
  assert.equal(await deliver(signed()), 503);
});

test("an answer that comes after the events of its request, or of a later one, changes nothing", async () => {
  for (const told of [requestId, `${requestId.slice(0, -1)}Z`]) {
    company.beforeAnswer = async () =>
      deliver(kybBody("kyb.data_request.refused", fake, { seq: 2, of: told }));
    const member = await logIn();
    assert.equal((await member.press("/company/register")).status, 303);
    assert.equal(stateOf(await member.page(), "registration"), "refused", told);
  }
});

test("members who refuse may be asked again, and those who ran out of time are not said to have declined", async () => {
  for (const [seq, reason, said] of [
    [2, "declined", "Your company declined."],
    [3, "expired", "The time was over."],
  ] as const) {
    const member = await logIn();
    await deliver(kybBody("kyb.data_request.refused", fake, { seq, data: { reason } }));
    const page = await member.page();
    assert.ok(page.includes(said), said);
    assert.match(page, /action="\/company\/register\?/);
  }
});

test("a request that is open already leads to its state, another refusal to a page with a way on", async () => {
  const member = await logIn();
  company.refusal = new KycRefusal(409, "request_already_open");
  assert.equal(locationOf(await member.press("/company/register")), "/company");
  company.refusal = new KycRefusal(402, "insufficient_credit");
  const refused = await member.press("/company/register");
  assert.equal(refused.status, 502);
  assert.match(await refused.text(), /action="\/company\/register"/);
});

test("the endpoint is registered once, and again at another address; what is known stays", async () => {
  await deliver(await released());
  assert.equal((await stat(join(directory, "endpoint.json"))).mode & 0o777, 0o600);
  const urls = [`${shop.url}/webhooks/kyb`];
  const port = await freePort();
  for (const next of [port, port, 0]) {
    await shop.close();
    shop = await open({ port: next });
    urls.push(`${shop.url}/webhooks/kyb`);
  }
  assert.deepEqual(company.endpoints, [...new Set(urls)]);
  assert.match(await (await logIn()).page(), /CHE-123/);
});

test("a page that waits is answered at the next change of its own company", async () => {
  const member = await logIn();
  const version = versionOf(await member.page());
  const waiting = member.visit(`/company/changes?version=${version}`);
  await deliver(pending());
  const changed = await waiting;
  assert.equal(changed.status, 204);
  assert.equal(changed.headers.get("x-version"), String(version + 1));
});

test("a page that waits in a new wallet is answered when the old one says that it goes on there", async () => {
  await deliver(await released());
  fake.idToken = { claims: actingFor(newBusiness) };
  const member = await logIn();
  const version = versionOf(await member.page());
  const waiting = member.visit(`/company/changes?version=${version}`);
  await deliver(await company.movedBody());
  assert.equal((await waiting).headers.get("x-version"), String(version + 1));
  assert.match(await member.page(), /Did your company move\?/);
});

test("no other site can press a button here, and a shop without companies has no such pages", async () => {
  const member = await logIn();
  for (const name of ["login", "register", "terms", "continue"])
    assert.equal((await member.press(`/company/${name}`, "https://evil.example")).status, 403);
  assert.deepEqual(company.asked, []);
  const plain = await open({ takesCompanies: false });
  assert.equal((await fetch(`${plain.url}/company`)).status, 404);
  assert.doesNotMatch(await (await fetch(plain.url)).text(), /company/i);
  await plain.close();
});
