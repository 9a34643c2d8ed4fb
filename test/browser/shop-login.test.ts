// A person in front of a browser, with a wallet in hand: from the shop to the broker and back.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { shortAddress } from "@svc/protocol";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import {
  type CommandLineWallet,
  openCommandLineWallet,
  runWithCode,
} from "../command-line-wallet.ts";
import {
  approve,
  decline,
  type Identity,
  newIdentity,
  sameDeviceReturn,
  scan,
} from "../raw-wallet.ts";
import { until } from "../patience.ts";
import { openBrowser } from "./browser.ts";
import { readCode } from "./camera.ts";
import { approveOnPage, claimOnPage, readDigits, readQr, readSameDeviceLink } from "./qr-page.ts";
import { openShopWorld, type ShopWorld } from "./shop-world.ts";

let opened: ShopWorld;
let browser: Browser;
let wallet: CommandLineWallet;
const alice = newIdentity();
const bob = newIdentity();

const closing = new AsyncDisposableStack();
before(async () => {
  opened = closing.use(await openShopWorld());
  wallet = closing.use(await openCommandLineWallet(opened.world.baseUrl, { alice, bob }));
  browser = closing.use(await openBrowser());
});
after(async () => closing.disposeAsync());

/** A browser of its own. A fault of a script or a breach of a policy fails the test. */
async function openPerson(
  options: BrowserContextOptions = {},
): Promise<BrowserContext & AsyncDisposable> {
  const context = await browser.newContext(options);
  const faults: string[] = [];
  context.on("weberror", (fault) => faults.push(fault.error().message));
  context.on("console", (message) => faults.push(message.text()));
  return Object.assign(context, {
    async [Symbol.asyncDispose]() {
      await context.close();
      // The pages of a failed login answer 4xx, and the browser says so.
      assert.deepEqual(
        faults.filter((fault) => !/the server responded with a status of 4\d\d/.test(fault)),
        [],
      );
    },
  });
}

const press = async (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name }).click();

/** Opens the shop in a new tab and presses "Log in". */
async function pressLogIn(person: BrowserContext): Promise<Page> {
  const page = await person.newPage();
  await page.goto(opened.shop.url);
  await press(page, "Log in");
  await page.locator("[data-same-device]").waitFor();
  // Wait for its style sheet.
  await page.waitForLoadState();
  assert.match(page.url(), new RegExp(`^${opened.world.baseUrl}/oauth2/auth`));
  return page;
}

async function assertGreeted(page: Page, { address }: Identity): Promise<void> {
  await page.getByRole("heading", { name: /^Hello 0x/ }).waitFor();
  assert.equal(page.url(), `${opened.shop.url}/`);
  assert.ok((await page.locator("main").innerText()).includes(`You are ${address}`));
}

async function assertTurnedAway(page: Page): Promise<void> {
  await page.getByRole("heading", { name: "You declined the login" }).waitFor();
  assert.match(page.url(), new RegExp(`^${opened.shop.url}/callback`));
  await press(page, "Try again");
  await page.locator("[data-qr]").waitFor();
}

test("a person presses Log in, scans, compares two digits, and the shop greets the identity", async () => {
  await using person = await openPerson();
  const page = await pressLogIn(person);
  assert.match(await page.locator("main").innerText(), /Corner Coffee/);
  const { link, ...shown } = await runWithCode(
    async () => readQr(page),
    async (code) => wallet.run("alice", "show", code),
  );
  assert.equal(shown.status, 0, shown.line);
  assert.match(String(shown.value?.["words"]), /Corner Coffee/);
  const digits = await readDigits(page);
  assert.match(digits, /^\d\d$/);
  assert.ok((await page.locator("main").innerText()).includes(shortAddress(alice.address)));
  assert.equal(await page.locator("[data-qr]").count(), 0);
  const approved = await wallet.run("alice", "approve", link, "--code", digits);
  assert.equal(approved.status, 0, approved.line);
  await assertGreeted(page, alice);

  await press(page, "Log out");
  await page.getByRole("button", { name: "Log in" }).waitFor();
  assert.equal(page.url(), `${opened.shop.url}/`);
  await press(page, "Log in");
  await page.locator("[data-qr]").waitFor();
});

test("on a phone the link opens the wallet, and its answer in the same browser ends in the shop", async () => {
  await using person = await openPerson({
    viewport: { width: 390, height: 844 },
    isMobile: true,
    hasTouch: true,
  });
  const page = await pressLogIn(person);
  const approved = await wallet.run("alice", "approve", await readSameDeviceLink(page));
  assert.equal(approved.status, 0, approved.line);
  const back = await person.newPage();
  await back.goto(String(approved.value?.["open"]));
  await assertGreeted(back, alice);
  await page.getByRole("heading", { name: "This login has ended" }).waitFor();
  assert.ok(await page.getByRole("link", { name: "Back to Corner Coffee" }).isVisible());
});

test("the wallet's answer in another browser logs nobody in, and the page that waits says why", async () => {
  await using person = await openPerson();
  const page = await pressLogIn(person);
  await using attacker = await openPerson();
  const elsewhere = await attacker.newPage();
  await elsewhere.goto(sameDeviceReturn(scan(await readSameDeviceLink(page)), alice));
  await elsewhere.getByRole("heading", { name: "This login cannot go on" }).waitFor();
  await page.getByRole("heading", { name: "Another browser" }).waitFor();
  await press(page, "Start again");
  await approveOnPage(page, alice);
  await assertGreeted(page, alice);
});

test("whoever declines in the wallet is back in the shop at once, with a way to try again", async () => {
  await using person = await openPerson();
  const page = await pressLogIn(person);
  const declined = await runWithCode(
    async () => readQr(page),
    async (link) => wallet.run("alice", "decline", link),
  );
  assert.equal(declined.status, 0, declined.line);
  await assertTurnedAway(page);
  await approveOnPage(page, alice);
  await assertGreeted(page, alice);
});

test("whoever changes their mind before scanning goes back to the shop", async () => {
  await using person = await openPerson();
  const page = await pressLogIn(person);
  await page.getByRole("link", { name: "Back to Corner Coffee" }).click();
  await assertTurnedAway(page);
});

test("two tabs are two logins, and the first one does not end the second", async () => {
  await using person = await openPerson();
  const first = await pressLogIn(person);
  const second = await pressLogIn(person);
  const [one, other] = [scan(await readQr(first)), scan(await readQr(second))];
  assert.notEqual(one.connection, other.connection);
  await approveOnPage(second, bob);
  await assertGreeted(second, bob);
  await first.locator("[data-qr]").waitFor();
  await approveOnPage(first, alice);
  await assertGreeted(first, alice);
  // The shop knows one person per browser: the last one.
  await second.reload();
  await assertGreeted(second, alice);
});

test("a wrong number ends the login on the page, and Start again is a new one", async () => {
  await using person = await openPerson();
  const page = await pressLogIn(person);
  const claimed = await claimOnPage(page, alice);
  const wrong = String((Number(await readDigits(page)) + 1) % 100).padStart(2, "0");
  assert.equal((await approve(claimed, wrong)).status, 403);
  await page.getByRole("heading", { name: "That was not the number" }).waitFor();
  assert.ok(await page.getByRole("link", { name: "Back to Corner Coffee" }).isVisible());
  await press(page, "Start again");
  await page.locator("[data-qr]").waitFor();
  assert.notEqual(scan(await readQr(page)).connection, claimed.connection);
  await approveOnPage(page, alice);
  await assertGreeted(page, alice);
});

test("a page that waits draws the codes of the service's time when that is moved", async () => {
  await using person = await openPerson();
  const page = await pressLogIn(person);
  const stepOf = async (): Promise<number> =>
    Number(scan(await readQr(page)).session.split(".")[1]);
  const first = await stepOf();
  await opened.world.advance(60);
  await until("a code of the new time", async () => ((await stepOf()) >= first + 15 ? true : null));
  await approveOnPage(page, alice);
  await assertGreeted(page, alice);
});

test("without JavaScript one button shows a code that stays, and Continue goes on", async () => {
  await using person = await openPerson({ javaScriptEnabled: false });
  const page = await pressLogIn(person);
  assert.ok(await page.locator("[data-qr]").isHidden(), "a code that nobody renews is not shown");
  await press(page, "Show code");
  assert.equal(await readCode(browser, page), await readQr(page));
  const claimed = await claimOnPage(page, alice);
  await press(page, "Continue");
  assert.equal((await approve(claimed, await readDigits(page))).status, 200);
  await press(page, "Continue");
  await assertGreeted(page, alice);
  await press(page, "Log out");
  await page.getByRole("button", { name: "Log in" }).waitFor();
});

test("without JavaScript a new code is a new login, and a declined one leads back to the shop", async () => {
  await using person = await openPerson({ javaScriptEnabled: false });
  const page = await pressLogIn(person);
  await press(page, "Show code");
  await page.locator("[data-qr]").waitFor();
  const first = scan(await readQr(page));
  const { pathname } = new URL(page.url());
  await press(page, "New code");
  await page.waitForURL((url) => url.pathname !== pathname);
  const second = scan(await readQr(page));
  assert.notEqual(second.connection, first.connection);
  await decline(await claimOnPage(page, alice));
  await press(page, "Continue");
  await page.getByRole("heading", { name: "You declined the login" }).waitFor();
  await press(page, "Try again");
  await page.getByRole("button", { name: "Show code" }).waitFor();
});
