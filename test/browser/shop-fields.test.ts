// The shop's page of verified fields in a real browser: it follows the order by itself, under its own policy.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { openShop, type Shop } from "@svc/shop";
import type { Browser, BrowserContextOptions, Page, Request } from "playwright-core";
import {
  clientId,
  clientSecret,
  openFakeIssuer,
  type FakeIssuer,
} from "../../packages/merchant/test/fake-issuer.ts";
import {
  dataBody,
  invalidatedBody,
  referenceKey,
  signedHeaders,
  signingKey,
  statusBody,
} from "../../packages/merchant/test/signed-webhook.ts";
import { qrPng } from "../../service/src/platform/qr/qr-png.ts";
import { violationsOf } from "./axe.ts";
import { openBrowser } from "./browser.ts";
import { setHidden } from "./qr-page.ts";

const link = "svc:request/0x00000000000000000000000000000000000a11ce?conn=https%3A%2F%2Fid.example";
const contract = `0x${"1".repeat(40)}`;

let browser: Browser & AsyncDisposable;
let issuer: FakeIssuer;
let shop: Shop;
let directory: string;

before(async () => {
  browser = await openBrowser();
  issuer = await openFakeIssuer();
});
after(async () => {
  await browser[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "shop-"));
  issuer.kyc.set("GET /api/v1/blockchain/verified", () => ({ verifiedItems: ["EMAIL"] }));
  issuer.kyc.set("POST /api/v2/kyc/qrcode", ({ body }) => ({
    qrcode: qrPng(link).toString("base64"),
    link,
    expiration: body["expiration"],
    referenceKey,
  }));
  issuer.kyc.set("POST /api/v1/blockchain/valid", () => ({
    valids: ["EMAIL"],
    unValids: ["IDCARD_DOB"],
    reasons: { IDCARD_DOB: "EXPIRED" },
  }));
  shop = await openShop({
    port: 0,
    host: "127.0.0.1",
    issuer: issuer.url,
    clientId,
    clientSecret,
    clockUrl: `${issuer.url}/health/ready`,
    kyc: {
      apiKey: "svc_live_1",
      sourceKey: "sk_1",
      signingKeys: [signingKey],
      directory,
      anchors: {
        rpcUrl: issuer.url,
        chainId: 1,
        registry: contract,
        settlement: contract,
        operator: contract,
        issuers: [contract],
      },
    },
  });
});
afterEach(async () => {
  await shop.close();
  await rm(directory, { recursive: true });
});

async function deliver(body: string): Promise<void> {
  const headers = signedHeaders(body, { t: issuer.now });
  const { status } = await fetch(`${shop.url}/webhooks/kyc`, { method: "POST", body, headers });
  assert.equal(status, 200);
}

const triples = [
  { field: "EMAIL", data: "alice@example.com", pepper: `0x${"01".repeat(32)}` },
  { field: "IDCARD_DOB", data: "1990-02-28", pepper: `0x${"02".repeat(32)}` },
];
const press = async (page: Page, name: string) => page.getByRole("button", { name }).click();

async function ask(page: Page): Promise<void> {
  await page.goto(shop.url);
  await press(page, "Log in");
  await press(page, "Verify my age and e-mail");
  await page.getByRole("img", { name: /QR code of this request/ }).waitFor();
}

test("the page follows the order by itself, under the shop's own policy", async () => {
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(message.text()));
  let loads = 0;
  page.on("load", () => (loads += 1));
  await ask(page);
  await page.waitForLoadState();
  const loaded = loads;
  assert.equal(await page.getByRole("link", { name: "Show the present state" }).count(), 0);
  const shown = await page.evaluate("document.querySelector('img').naturalWidth");
  assert.ok(Number(shown) > 100, `the code is a picture of ${String(shown)} pixels`);
  const target = page.getByRole("link", { name: "Open my wallet on this device" });
  assert.equal(await target.getAttribute("href"), link);

  await deliver(statusBody(1, "PENDING"));
  await target.focus();
  await deliver(statusBody(2, "INITIATING"));
  await page.getByRole("status").getByText("You approved").waitFor();
  await page.getByRole("img").waitFor({ state: "detached" });
  assert.equal(await page.locator(":focus").innerText(), "Your age and e-mail");
  await deliver(statusBody(4, "CONFIRMING"));
  await deliver(dataBody(5, triples));
  await page.getByText("alice@example.com").waitFor();
  await deliver(statusBody(6, "CONFIRMED"));
  await page.getByRole("status").getByText("Done").waitFor();
  assert.equal(loads, loaded, "nothing was loaded anew");

  await press(page, "Check again");
  await page.getByText("Date of birth: no longer (EXPIRED)").waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a page that its shop does not answer says so, and no more of it once the shop is back", async () => {
  const page = await browser.newPage();
  await page.clock.install();
  await ask(page);
  const standing = page.getByRole("status");
  for (const [sequence, status] of [503, 404].entries()) {
    await page.route("**/verify/changes?*", async (route) => route.fulfill({ status }));
    await deliver(statusBody(sequence + 1, "PENDING"));
    await standing.getByText("No connection. Trying again…").waitFor();
    await page.unroute("**/verify/changes?*");
    await page.clock.runFor(5_000);
    await standing.getByText("Waiting for your wallet.").waitFor();
  }
  await page.close();
});

test("a page whose person the shop no longer knows, as after a restart, asks them to log in", async () => {
  const page = await browser.newPage({ bypassCSP: true });
  await ask(page);
  await page.context().clearCookies();
  await deliver(statusBody(1, "PENDING"));
  await page.getByText("Log in again to see where your request stands.").waitFor();
  await assertSound(page);
  await press(page, "Log in");
  await page.getByRole("button", { name: "Verify my age and e-mail" }).waitFor();
  await page.close();
});

const isQuestion = (request: Request): boolean => request.url().includes("/verify/changes");

test("a page out of view holds no connection, and catches up when it is seen again", async () => {
  const page = await browser.newPage();
  const asked = page.waitForRequest(isQuestion);
  await ask(page);
  await asked;
  const given = page.waitForEvent("requestfailed", isQuestion);
  await setHidden(page, true);
  await given;
  await deliver(statusBody(2, "INITIATING"));
  const standing = page.getByRole("status");
  assert.equal(await standing.innerText(), "Waiting for your wallet.");
  await setHidden(page, false);
  await standing.getByText("You approved").waitFor();
  await page.close();
});

test("whoever checks again on a phone sees what came of it, however long the page is", async () => {
  const page = await browser.newPage({ viewport: { width: 360, height: 640 } });
  await ask(page);
  await deliver(statusBody(1, "PENDING"));
  await deliver(dataBody(5, triples));
  await deliver(statusBody(6, "CONFIRMED"));
  await press(page, "Check again");
  const outcome = page.getByText("Date of birth: no longer (EXPIRED)");
  await outcome.waitFor();
  await page.waitForLoadState();
  const { y = Number.NaN } = (await outcome.boundingBox()) ?? {};
  assert.ok(y > 0 && y < 620, `at ${y}`);
  await page.close();
});

for (const javaScriptEnabled of [false, true])
  test(`without scripts a link shows the present state${javaScriptEnabled ? ", also where only ours did not come" : ""}`, async () => {
    const context = await browser.newContext({ javaScriptEnabled });
    await context.route("**/verify.js", async (route) => route.abort());
    const page = await context.newPage();
    await ask(page);
    await deliver(statusBody(2, "INITIATING"));
    await page.getByRole("link", { name: "Show the present state" }).click();
    await page.getByText("You approved").waitFor();
    await context.close();
  });

const looks: Record<string, BrowserContextOptions> = {
  "on a desk": {},
  "on a phone": { viewport: { width: 320, height: 640 } },
};
for (const [look, options] of Object.entries(looks)) {
  test(`axe finds nothing on the page of verified fields, and nothing sticks out, light or dark, ${look}`, async () => {
    // The page's content security policy would block axe, which is an injected script.
    const page = await browser.newPage({ ...options, bypassCSP: true });
    await ask(page);
    await assertSound(page);
    await deliver(statusBody(1, "PENDING"));
    await deliver(dataBody(5, triples));
    await deliver(statusBody(6, "CONFIRMED"));
    await page.getByText("as received").first().waitFor();
    assert.deepEqual(await brokenWords(page, "td + td"), []);
    await deliver(invalidatedBody(7, ["EMAIL"]));
    await page.getByText("called invalid since").waitFor();
    await press(page, "Check again");
    await page.getByText("E-mail address: still holds").waitFor();
    await assertSound(page);
    issuer.kyc.set("GET /api/v1/blockchain/verified", () => ({ unVerifiedItems: ["IDCARD_DOB"] }));
    await press(page, "Ask again");
    await page.getByRole("heading", { name: "Something is still missing" }).waitFor();
    await assertSound(page);
    await page.close();
  });
}

/** Words that the layout broke across lines. */
async function brokenWords(page: Page, selector: string): Promise<string[]> {
  return page.evaluate<
    string[]
  >(`[...document.querySelectorAll(${JSON.stringify(selector)})].flatMap((cell) => {
    const text = cell.firstChild;
    return [...(text?.textContent ?? "").matchAll(/[^\\s-]+/g)].flatMap(({ index, 0: word }) => {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      return range.getClientRects().length > 1 ? [word] : [];
    });
  })`);
}

async function assertSound(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violationsOf(page), [], colorScheme);
    assert.ok(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"));
  }
}
