// A person shows the shop date of birth and e-mail address, keeps the city, and the shop proves it by the chain alone.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openKyc, verifyProof } from "@svc/merchant";
import { checkRequestObject, parseLink } from "@svc/protocol";
import { openShop, type Shop } from "@svc/shop";
import { buyPackage } from "../../service/src/accounts/index.ts";
import { getBuiltInIssuer, revokeCredential } from "../../service/src/credentials/index.ts";
import { openJar } from "../cookie-jar.ts";
import {
  approve,
  decline,
  type KycWorld,
  openKycWorld,
  openRequest,
  type Person,
  personalValues,
} from "../kyc-world.ts";
import { approveByQr, finish, hooksOf, type OpenPage } from "../login-flow.ts";
import { freePort } from "../world.ts";

let world: KycWorld;
let shop: Shop;
let directory: string;
let issuers: string[];

before(async () => {
  world = await openKycWorld();
  directory = await mkdtemp(join(tmpdir(), "shop-"));
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const { id, secret = "" } = await world.addClient({
    redirectUris: [`${url}/callback`],
    postLogoutRedirectUris: [`${url}/`],
  });
  const { kycPackage, signingKey } = await buyPackage(
    world.ctx,
    {
      clientDomainId: world.clientDomainId,
      name: "Age and e-mail",
      fields: null,
      transfers: 100,
      priceRappen: 0n,
    },
    "test",
  );
  issuers = [(await getBuiltInIssuer(world.ctx, "demo", "live")).address];
  shop = await openShop({
    port,
    host: "127.0.0.1",
    issuer: world.baseUrl,
    clientId: id,
    clientSecret: secret,
    clockUrl: `${world.baseUrl}/health/ready`,
    kyc: {
      apiKey: world.apiKey,
      sourceKey: kycPackage.sourceKey,
      signingKeys: [signingKey],
      directory,
      anchors: { ...chainAnchors(), operator: world.ctx.chain.operator, issuers },
    },
  });
});
after(async () => {
  await world[Symbol.asyncDispose]();
  await shop.close();
  await rm(directory, { recursive: true });
});

function chainAnchors() {
  const { chainId, contracts } = world.ctx.chain;
  return { rpcUrl: `${world.baseUrl}/w/chain`, chainId, ...contracts };
}

const locationOf = (response: Response) => response.headers.get("location") ?? "";

async function logIn(person: Person): Promise<OpenPage["jar"]> {
  const jar = openJar();
  const start = await jar.fetch(`${shop.url}/login`, { method: "POST" });
  const html = await (await jar.fetch(locationOf(start))).text();
  const page = Object.assign(hooksOf(html), { jar, html, pkce: { verifier: "", challenge: "" } });
  await approveByQr(world.baseUrl, page, person);
  await jar.fetch((await finish(world.baseUrl, page)).href);
  return jar;
}

/** A browser on the shop's page of verified fields. */
function openVerification(jar: OpenPage["jar"]) {
  const page = async (): Promise<string> => (await jar.fetch(`${shop.url}/verify`)).text();
  return {
    page,
    press: async (path: string) => {
      const answer = await jar.fetch(`${shop.url}${path}`, { method: "POST" });
      assert.match(locationOf(answer), /^\/verify(?:#|$)/, await answer.text());
      return page();
    },
    /** Follows the page as its script does, until it shows this. */
    async until(shown: RegExp): Promise<string> {
      for (let changes = 0; changes < 20; changes += 1) {
        const text = await page();
        if (shown.test(text)) return text;
        const [, version = ""] = /data-version="(\d+)"/.exec(text) ?? [];
        await jar.fetch(`${shop.url}/verify/changes?version=${version}`);
      }
      return assert.fail(`the page never showed ${shown}: ${await page()}`);
    },
  };
}

const linkOf = (text: string): string =>
  (/class="button" href="(svc:[^"]+)"/.exec(text)?.[1] ?? "").replaceAll("&#38;", "&");

test("a person shows age and e-mail, keeps the city, and the shop proves it by the chain alone", async () => {
  const person = await world.verify();
  const browser = openVerification(await logIn(person));
  const asked = await browser.press("/verify");
  assert.match(asked, /src="data:image\/png;base64,iVBOR/);
  // Although the shop names a page to return to, the wallet sees the requester that the broker vouches for.
  const link = parseLink(linkOf(asked));
  assert.ok(!("refused" in link));
  const { claims } = await openRequest(linkOf(asked));
  const context = { link, brokers: [world.baseUrl], now: world.ctx.clock.now() };
  assert.deepEqual(checkRequestObject(claims, context), claims);
  assert.equal((await approve(person, linkOf(asked))).status, 200);

  const text = await browser.until(/Done: everything is recorded/);
  const statuses = [...text.matchAll(/data-status="(\w+)"/g)].map(([, status]) => status);
  const all = ["PENDING", "INITIATING", "INITIATED", "CONFIRMING", "CONFIRMED"];
  assert.deepEqual(statuses, all);
  assert.ok(text.includes(personalValues.IDCARD_DOB));
  assert.ok(text.includes(personalValues.EMAIL));
  assert.ok(!text.includes(personalValues.ADDRESS_CITY));

  const checked = await browser.press("/verify/check");
  assert.match(checked, /Date of birth: still holds/);
  assert.match(checked, /E-mail address: still holds/);

  const proved = await browser.press("/verify/receipt");
  const facts = [...proved.matchAll(/data-fact="(\w+)"/g)].map(([, fact]) => fact);
  const of = ["attested", "live"];
  assert.deepEqual(facts, ["consent", "values", ...of, ...of, "initiated", "confirmed"]);
});

test("a person who declines is told so, and gets a new code when asked again", async () => {
  const person = await world.verify();
  const browser = openVerification(await logIn(person));
  const asked = await browser.press("/verify");
  assert.equal((await decline(person, linkOf(asked))).status, 200);
  await browser.until(/You declined\. We learned nothing new/);
  const again = await browser.press("/verify");
  assert.equal((await approve(person, linkOf(again))).status, 200);
  await browser.until(/Done: everything is recorded/);
});

test("a field that is revoked later is told to the shop, and found by checking again", async () => {
  const person = await world.verify();
  const browser = openVerification(await logIn(person));
  await approve(person, linkOf(await browser.press("/verify")));
  await browser.until(/Done: everything is recorded/);
  const issuer = await getBuiltInIssuer(world.ctx, "demo", "live");
  const email = person.held.find(({ field }) => field === "EMAIL");
  await revokeCredential(world.ctx, issuer, email?.credentialId ?? "");
  await browser.until(/data-field="EMAIL"[\s\S]*?called invalid since/);
  const checked = await browser.press("/verify/check");
  assert.match(checked, /E-mail address: no longer \(REVOKED\)/);
  assert.match(checked, /Date of birth: still holds/);
});

test("a proof of a delivered field is verified by a node of the chain alone", async () => {
  const person = await world.verify();
  const browser = openVerification(await logIn(person));
  await approve(person, linkOf(await browser.press("/verify")));
  await browser.until(/Done: everything is recorded/);
  const kyc = openKyc({ issuer: world.baseUrl, apiKey: world.apiKey });
  const [proof] = await kyc.proof({ user: person.address, items: ["IDCARD_DOB"] });
  const held = person.held.find(({ field }) => field === "IDCARD_DOB");
  assert.ok(held !== undefined);
  const expected = { user: person.address, field: "IDCARD_DOB", value: held };
  const anchors = { ...chainAnchors(), issuers, now: world.ctx.clock.now() };
  const { proved } = await verifyProof(proof, expected, anchors);
  assert.deepEqual(
    proved.map(({ fact }) => fact),
    ["attested", "value", "live"],
  );
  const other = { ...expected, user: world.person.address };
  await assert.rejects(verifyProof(proof, other, anchors), { code: "proof_refused" });
});
