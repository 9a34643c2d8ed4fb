// The shop's pages for companies in a real browser: they follow the requests by themselves, under their own policy.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { openShop, type Shop } from "@svc/shop";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import {
  businessClaims,
  businessName,
  businessSignature,
  chainId,
  clientDomainId,
  type FakeBusiness,
  kybBody,
  kybHeaders,
  newBusiness,
  playBusiness,
  signatureRequestId,
  transactionHash,
} from "../../packages/merchant/test/fake-business.ts";
import {
  clientId,
  clientSecret,
  type FakeIssuer,
  openFakeIssuer,
} from "../../packages/merchant/test/fake-issuer.ts";
import { violationsOf } from "./axe.ts";
import { openBrowser, takePicture } from "./browser.ts";

let browser: Browser & AsyncDisposable;
let issuer: FakeIssuer;
let company: FakeBusiness;
let shop: Shop;
let directory: string;

before(async () => {
  browser = await openBrowser();
  issuer = await openFakeIssuer();
  company = playBusiness(issuer);
});
after(async () => {
  await browser[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "shop-"));
  issuer.idToken = { claims: businessClaims };
  issuer.refusal = undefined;
  shop = await openShop({
    port: 0,
    host: "127.0.0.1",
    issuer: issuer.url,
    clientId,
    clientSecret,
    clockUrl: `${issuer.url}/health/ready`,
    kyb: {
      apiKey: "svc_live_1",
      clientDomainId,
      directory,
      chain: { rpcUrl: `${issuer.url}/rpc`, chainId },
    },
  });
});
afterEach(async () => {
  await shop.close();
  await rm(directory, { recursive: true });
});

const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** A page in a browser of its own. A fault of a script or a breach of a policy fails the test, unless it is `expected`. */
async function openPage(
  options: BrowserContextOptions = {},
  expected = /^$/,
): Promise<Page & AsyncDisposable> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => complaints.push(message.text()));
  await page.goto(shop.url);
  return Object.assign(page, {
    async [Symbol.asyncDispose]() {
      await context.close();
      assert.deepEqual(
        complaints.filter((complaint) => !expected.test(complaint)),
        [],
      );
    },
  });
}

const press = async (page: Page, name: string) => page.getByRole("button", { name }).click();

async function logIn(page: Page): Promise<void> {
  await page.getByRole("link", { name: "For companies" }).click();
  await press(page, "Log in for my company");
  await page.getByRole("heading", { name: businessName }).waitFor();
}

async function deliver(body: string): Promise<void> {
  const headers = kybHeaders(body, { t: issuer.now });
  const { status } = await fetch(`${shop.url}/webhooks/kyb`, { method: "POST", body, headers });
  assert.equal(status, 200);
}

const release = async (): Promise<void> =>
  deliver(
    kybBody("kyb.data_request.released", issuer, {
      seq: 2,
      attestation: await company.attestation(),
    }),
  );
const sign = async (): Promise<void> =>
  deliver(
    kybBody("kyb.signature_request.signed", issuer, {
      seq: 2,
      of: signatureRequestId,
      data: { signature: businessSignature, transaction_hash: transactionHash },
    }),
  );

test("a company registers and signs, and its page follows by itself", async () => {
  await using page = await openPage();
  await logIn(page);
  await press(page, "Register your company");
  const standing = page.getByRole("status");
  await standing.getByText("Waiting for the members of your company.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Register your company" }).count(), 0);
  await release();
  await standing.getByText("Your company is registered.").waitFor();
  await page.getByRole("cell", { name: "Bob Beispiel" }).waitFor();
  await press(page, "Sign our terms");
  await standing.getByText("Waiting for the members of your company.").waitFor();
  await sign();
  await standing.getByText("Your company signed.").waitFor();
  await page.getByText(transactionHash).waitFor();
});

test("a page goes on following when the shop had too much to do, was away, or was not heard", async () => {
  await using page = await openPage({}, /status of (?:429|503)/);
  await page.clock.install();
  const refuseOnce = async (path: string, status: number) =>
    page.route(path, async (route) => route.fulfill({ status }), { times: 1 });
  const refused = async (status: number) =>
    page.waitForResponse((response) => response.status() === status);
  await page.route("**/company/changes?*", async () => undefined, { times: 1 });
  await refuseOnce("**/company/changes?*", 503);
  const [question, drawing] = [refused(503), refused(429)];
  await logIn(page);
  await question;
  const swallowed = page.waitForRequest("**/company/changes?*");
  await page.clock.runFor(5_000);
  await swallowed;
  const given = page.waitForEvent("requestfailed");
  await page.clock.runFor(40_000);
  await given;
  await page.clock.runFor(5_000);
  await refuseOnce("**/company", 429);
  await release();
  await drawing;
  await page.clock.runFor(5_000);
  await page.getByRole("cell", { name: "Bob Beispiel" }).waitFor();
});

test("a page whose browser acts for another company by now is about that company as a whole", async () => {
  await using page = await openPage();
  const otherTab = await page.context().newPage();
  await otherTab.goto(`${shop.url}/company`);
  await logIn(page);
  const other = { ...businessClaims.ext.business, id: newBusiness, name: "Talgrund AG" };
  issuer.idToken = { claims: { ext: { ...businessClaims.ext, business: other } } };
  await press(otherTab, "Log in for my company");
  await otherTab.getByRole("heading", { name: "Talgrund AG" }).waitFor();
  // The first tab still waits for a change of the first company.
  await release();
  await page.getByRole("heading", { name: "Talgrund AG" }).waitFor();
  assert.equal(await page.getByText(businessName).count(), 0);
});

test("a company that did not log in can try again at once", async () => {
  await using page = await openPage({ bypassCSP: true }, /status of 403/);
  issuer.refusal = "access_denied";
  await page.getByRole("link", { name: "For companies" }).click();
  await press(page, "Log in for my company");
  await page.getByRole("heading", { name: "Your company did not log in" }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  issuer.refusal = undefined;
  await press(page, "Try again");
  await page.getByRole("heading", { name: businessName }).waitFor();
});

test("without scripts a link shows the present state", async () => {
  await using page = await openPage({ javaScriptEnabled: false });
  await logIn(page);
  await press(page, "Register your company");
  await release();
  await page.getByRole("link", { name: "Show the present state" }).click();
  await page.getByRole("cell", { name: "CHE-123.456.788" }).waitFor();
});

for (const [name, options] of [
  ["desktop", {}],
  ["phone, dark", { ...phone, colorScheme: "dark" }],
] as const satisfies readonly (readonly [string, BrowserContextOptions])[])
  test(`every state of the pages is accessible and fits: ${name}`, async () => {
    await using page = await openPage({ bypassCSP: true, ...options });
    const check = async (state: string): Promise<void> => {
      // Wait for its style sheet.
      await page.waitForLoadState();
      assert.deepEqual(await violationsOf(page), [], state);
      const fits = await page.evaluate("document.documentElement.scrollWidth <= innerWidth");
      assert.equal(fits, true, state);
      await takePicture(page, `shop-company-${state}-${name.replace(", ", "-")}`);
    };
    await page.getByRole("link", { name: "For companies" }).click();
    await check("guest");
    await page.goto(shop.url);
    await logIn(page);
    await check("new");
    await press(page, "Register your company");
    await check("waiting");
    await release();
    await page.getByRole("table").waitFor();
    await press(page, "Sign our terms");
    await sign();
    await page.getByText(transactionHash).waitFor();
    await check("done");
    await page.goto(shop.url);
    await check("home");
    await deliver(await company.movedBody());
    const inNewWallet = { ...businessClaims.ext.business, id: newBusiness };
    issuer.idToken = { claims: { ext: { ...businessClaims.ext, business: inNewWallet } } };
    await page.context().clearCookies();
    await page.goto(shop.url);
    await logIn(page);
    await check("moved");
    await press(page, "This is our company");
    await page.getByRole("cell", { name: "Bob Beispiel" }).waitFor();
  });

test("a company's long name wraps on 320 pixels", async () => {
  const name = "Donaudampfschifffahrtsgesellschaft".repeat(2);
  issuer.idToken = {
    claims: { ext: { ...businessClaims.ext, business: { ...businessClaims.ext.business, name } } },
  };
  await using page = await openPage({ viewport: { width: 320, height: 640 } });
  const width = async () => page.evaluate("document.documentElement.scrollWidth");
  await page.goto(`${shop.url}/company`);
  await press(page, "Log in for my company");
  await page.getByRole("heading", { name }).waitFor();
  await page.waitForLoadState();
  assert.equal(await width(), 320);
  await page.goto(shop.url);
  assert.equal(await width(), 320);
});

test("the table of what a company released breaks no word of it on 320 pixels", async () => {
  await using page = await openPage({ viewport: { width: 320, height: 640 } });
  await release();
  await logIn(page);
  await page.waitForLoadState();
  const words = await page.evaluate<{ word: string; lines: number }[]>(
    `[...document.querySelectorAll("td")].flatMap(({ firstChild: text }) =>
      [...text.data.matchAll(/[^\\s-]+-?/g)].map(({ 0: word, index }) => {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        return { word, lines: range.getClientRects().length };
      }))`,
  );
  assert.ok(words.some(({ word }) => word === "Beispiel"));
  assert.deepEqual(
    words.filter(({ lines }) => lines > 1),
    [],
  );
  assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 320);
});
