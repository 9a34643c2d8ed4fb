// A member of a business in front of a browser, while the others find the login in their wallets.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { after, before, test } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { businessPart, businessScope } from "../business-login.ts";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";
import { authorizationUrl, type LoginClient, makePkce } from "../login-flow.ts";
import { approvalOf, post, scan } from "../raw-wallet.ts";
import { freePort } from "../world.ts";
import { violationsOf } from "./axe.ts";
import { openBrowser, takePicture } from "./browser.ts";
import { claimOnPage, readDigits, readQr } from "./qr-page.ts";

let world: KybWorld;
let browser: Browser;
let client: LoginClient;
let shop: Server;
const closing = new AsyncDisposableStack();
before(async () => {
  world = closing.use(await openKybWorld());
  browser = closing.use(await openBrowser());
  const port = await freePort();
  shop = createServer((_, response) => {
    response.setHeader("content-type", "text/html").end("<title>shop</title>");
  }).listen(port, "127.0.0.1");
  await once(shop, "listening");
  closing.defer(() => void shop.close());
  client = await world.addClient({
    name: "Corner Coffee",
    redirectUris: [`http://localhost:${port}/callback`],
  });
});
after(async () => {
  shop.closeAllConnections();
  await closing.disposeAsync();
});

const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** The QR page in a browser of its own. A fault of a script or a breach of a policy fails the test. */
async function openLoginPage(
  options: BrowserContextOptions = {},
): Promise<Page & AsyncDisposable & { loginId: string }> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => faults.push(message.text()));
  await page.goto(authorizationUrl(world.baseUrl, client, makePkce(), { scope: businessScope }));
  const loginId = scan(await readQr(page)).session.split(".")[0] ?? "";
  return Object.assign(page, {
    loginId,
    async [Symbol.asyncDispose]() {
      await context.close();
      assert.deepEqual(faults, []);
    },
  });
}

/** The acting member claims and approves by wallet; `readNumber` gets the digits from the page. */
async function act(page: Page, name: string, readNumber = readDigits): Promise<void> {
  const claimed = await claimOnPage(page, world.person(name));
  const body = approvalOf(claimed, await readNumber(page));
  const business = await businessPart(world, claimed, { name });
  const response = await post(claimed.connection, { ...body, business });
  assert.deepEqual(await response.json(), { status: "waiting" });
}

const waitingTitle = "Waiting for other members of the business";

test("the page waits for the other members without a name, and goes on by itself", async () => {
  await using page = await openLoginPage({ bypassCSP: true });
  await act(page, "alice");
  await page.getByRole("heading", { name: waitingTitle }).waitFor();
  assert.match(await page.locator("[data-left]").innerText(), /Time left: 1[45]:\d\d/);
  assert.equal(await page.locator("[data-code], [data-qr], [data-identity]").count(), 0);
  const shown = await page.locator("main").innerText();
  for (const name of [...world.business.members, "Muster AG", "0x"])
    assert.ok(!shown.includes(name), name);
  assert.deepEqual(await violationsOf(page), []);
  await takePicture(page, "business-login-waiting");
  await world.voteAs("bob", page.loginId);
  await page.waitForURL(/\/callback\?code=/);
});

test("the page that is loaded again still waits, on a phone too", async () => {
  await using page = await openLoginPage({ ...phone, bypassCSP: true, colorScheme: "dark" });
  await act(page, "alice");
  await page.getByRole("heading", { name: waitingTitle }).waitFor();
  await page.goto(`${world.baseUrl}/oauth2/login/${page.loginId}`);
  await page.getByRole("heading", { name: waitingTitle }).waitFor();
  assert.deepEqual(await violationsOf(page), []);
  await takePicture(page, "business-login-waiting-phone-dark");
  await world.voteAs("carol", page.loginId);
  await page.waitForURL(/\/callback\?code=/);
});

test("members who refuse send the browser back at once", async () => {
  await using page = await openLoginPage();
  await act(page, "bob");
  for (const name of ["alice", "carol"]) await world.voteAs(name, page.loginId, { vote: "reject" });
  await page.waitForURL(/\/callback\?error=access_denied/);
});

test("whoever gives up goes back, and nobody is asked any more", async () => {
  await using page = await openLoginPage();
  await act(page, "carol");
  await page.getByRole("button", { name: "Back to Corner Coffee" }).click();
  await page.waitForURL(/\/callback\?error=access_denied/);
  const items = await world.inboxOf("bob");
  assert.ok(items.every(({ id }) => id !== page.loginId));
});

test("without scripts the person asks with a button, and goes on with it", async () => {
  await using page = await openLoginPage({ javaScriptEnabled: false });
  await page.getByRole("button", { name: "Show code" }).click();
  await act(page, "alice", async () => {
    await page.getByRole("button", { name: "Continue" }).click();
    return readDigits(page);
  });
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: waitingTitle }).waitFor();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: waitingTitle }).waitFor();
  await takePicture(page, "business-login-waiting-no-javascript");
  await world.voteAs("bob", page.loginId);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(/\/callback\?code=/);
});
