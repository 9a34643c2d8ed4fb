// Every page that a person may meet on the way, as the real service and the real shop write it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { createDomain } from "../../service/src/accounts/index.ts";
import { runWithCode } from "../command-line-wallet.ts";
import { authorizationUrl, makePkce } from "../login-flow.ts";
import {
  approve,
  claim,
  claimedReturn,
  decline,
  newIdentity,
  scan,
  tryClaim,
} from "../raw-wallet.ts";
import { violationsOf } from "./axe.ts";
import { openBrowser } from "./browser.ts";
import { readCode, readPicture } from "./camera.ts";
import { approveOnPage, claimOnPage, readDigits, readQr, readSameDeviceLink } from "./qr-page.ts";
import { openShopWorld, type ShopWorld } from "./shop-world.ts";

let opened: ShopWorld;
let browser: Browser;
const alice = newIdentity();

const closing = new AsyncDisposableStack();
before(async () => {
  opened = closing.use(await openShopWorld());
  browser = closing.use(await openBrowser());
});
after(async () => closing.disposeAsync());

async function openPerson(
  options: BrowserContextOptions = {},
): Promise<BrowserContext & AsyncDisposable> {
  // The pages' content security policy would block axe, which is an injected script.
  const context = await browser.newContext({
    bypassCSP: true,
    reducedMotion: "reduce",
    ...options,
  });
  return Object.assign(context, { [Symbol.asyncDispose]: async () => context.close() });
}

test("the browser draws text with the fonts that came with it", async () => {
  const page = await browser.newPage();
  await page.setContent(
    `<p id="wide">WWWW</p><p id="narrow">iiii</p><style>p{display:inline-block}</style>`,
  );
  const widths = await page.evaluate<[number, number]>(
    `["wide", "narrow"].map((id) => document.getElementById(id).offsetWidth)`,
  );
  assert.ok(widths[0] > 2 * widths[1], `${widths.join(" and ")} pixels`);
  await page.close();
});

const press = async (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name }).click();
const heading = async (page: Page, name: string): Promise<void> =>
  page.getByRole("heading", { name }).waitFor();

/** The page in the state it is in, in both schemes. */
async function assertSound(page: Page, state: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violationsOf(page), [], `${state}, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

const styleOf = async (page: Page, selector: string, property: string): Promise<string> =>
  page.evaluate<string>(`getComputedStyle(document.querySelector("${selector}")).${property}`);

/** The QR page, as the shop's button opens it. */
async function openLogin(person: BrowserContext): Promise<Page> {
  const page = await person.newPage();
  await page.goto(opened.shop.url);
  await press(page, "Log in");
  await page.locator("[data-qr]").waitFor();
  // Wait for its style sheet.
  await page.waitForLoadState();
  return page;
}

/** Waits for the first paint: a key that is pressed earlier is lost. */
async function untilPainted(page: Page): Promise<void> {
  const frame = "new Promise((then) => requestAnimationFrame(then))";
  for (const _ of ["laid out", "painted"]) await page.evaluate(frame);
}

const loginIdOf = (link: string): string => scan(link).session.split(".")[0] ?? "";

test("axe finds nothing while a login waits, is claimed and contested, and after a wrong number", async () => {
  await using person = await openPerson();
  const page = await openLogin(person);
  await assertSound(page, "waiting");
  const claimed = await claimOnPage(page, alice);
  // A second wallet is one whose code is still shown: axe may take longer.
  using _ = opened.world.holdTime();
  const wrong = String((Number(await readDigits(page)) + 1) % 100).padStart(2, "0");
  await assertSound(page, "claimed");
  assert.equal((await tryClaim(claimed, newIdentity())).response.status, 409);
  await page.getByRole("alert").waitFor();
  await assertSound(page, "contested");
  await page.emulateMedia({ forcedColors: "active" });
  assert.equal(await styleOf(page, "[role=alert]", "borderStyle"), "solid");
  await page.emulateMedia({ forcedColors: "none" });
  await approve(claimed, wrong);
  await heading(page, "That was not the number");
  await assertSound(page, "wrong number");
});

test("a state that comes while the keyboard is in the one before is said once, and seen where the focus goes", async () => {
  await using person = await openPerson();
  const page = await openLogin(person);
  await untilPainted(page);
  await page.keyboard.press("Tab");
  assert.equal(await page.locator("a[data-same-device]:focus-visible").count(), 1);
  await claimOnPage(page, alice);
  const digits = await readDigits(page);
  const title = "Enter this number in your wallet";
  assert.equal(await page.title(), `${title} – Log in to Corner Coffee`);
  assert.equal(await page.locator("h2:focus-visible").innerText(), title);
  assert.equal(await styleOf(page, "h2", "outlineStyle"), "solid");
  const said = (await page.getByRole("status").textContent()) ?? "";
  assert.match(said, new RegExp(`^${digits}\\s+Identity:`));
  assert.match(await page.getByRole("timer").innerText(), /^Time left: [12]:\d\d$/);
});

test("on a phone the tab key goes through the page as the eye does", async () => {
  await using person = await openPerson({ viewport: { width: 390, height: 1600 } });
  const page = await openLogin(person);
  const url = `${opened.world.baseUrl}/oauth2/login/${loginIdOf(await readQr(page))}`;
  await person.request.post(`${url}/show-code`);
  await page.goto(url);
  const places: number[] = [];
  for (const _ of ["wallet", "Continue", "New code", "back"]) {
    await page.keyboard.press("Tab");
    places.push((await page.locator(":focus").boundingBox())?.y ?? Number.NaN);
  }
  assert.deepEqual(
    places,
    places.toSorted((one, other) => one - other),
  );
  assert.equal(await page.locator(".back a:focus").count(), 1);
});

test("a code whose script never came gives way to a link that loads the page again", async () => {
  await using person = await openPerson();
  await person.route(/\.js$/, async (route) => route.abort());
  const page = await openLogin(person);
  const again = page.getByRole("link", { name: "Try again" });
  assert.equal(await again.count(), 0);
  const laterOn = "document.getAnimations().forEach((each) => each.finish())";
  await page.evaluate(laterOn);
  await again.waitFor();
  assert.ok(await page.locator("[data-qr]").isHidden());
  await assertSound(page, "no script came");
  await person.unroute(/\.js$/);
  await again.click();
  await page.getByRole("timer").waitFor();
  await page.evaluate(laterOn);
  assert.ok(await page.locator("[data-qr]").isVisible(), "the script renews it");
  assert.equal(await page.locator(".late").count(), 0);
});

test("axe finds nothing where nobody checked the site, and where the approval alone is asked for", async () => {
  const { ctx, organizationId } = opened.world;
  const unproved = await createDomain(
    ctx,
    { organizationId, domain: "books.example.com", environment: "live" },
    "test",
  );
  const client = await opened.world.addClient({
    clientDomainId: unproved.id,
    numberMatching: false,
  });
  await using person = await openPerson({ locale: "de-CH" });
  const page = await person.newPage();
  await page.goto(authorizationUrl(opened.world.baseUrl, client, makePkce()));
  assert.equal(await page.locator("html").getAttribute("lang"), "de");
  await assertSound(page, "unverified");
  await claimOnPage(page, alice);
  await page.locator("[data-identity]").waitFor();
  await heading(page, "Im Wallet bestätigen");
  assert.equal(await page.locator("[data-code]").count(), 0);
  await assertSound(page, "claimed without a number");
});

test("axe finds nothing on a login that a wallet on the same device has, and on one that ended", async () => {
  await using person = await openPerson();
  const over = await openLogin(person);
  const claimed = await claim(scan(await readSameDeviceLink(over)), alice);
  await heading(over, "Confirm in your wallet");
  await assertSound(over, "opened");
  const back = await person.newPage();
  await back.goto(claimedReturn(claimed));
  await heading(over, "This login has ended");
  await assertSound(over, "finished, perhaps in another tab");

  await using other = await openPerson();
  const declined = await openLogin(other);
  const link = await readQr(declined);
  await decline(await claimOnPage(declined, alice));
  await heading(declined, "You declined the login");
  await declined.goto(`${opened.world.baseUrl}/oauth2/login/${loginIdOf(link)}`);
  await heading(declined, "Declined");
  await assertSound(declined, "declined");
});

test("axe finds nothing when the time is up, also when no restart is left", async () => {
  await using person = await openPerson();
  await person.clock.install();
  const page = await openLogin(person);
  for (const round of ["first", "second", "third", "last"]) {
    await page.locator("[data-qr]").waitFor();
    await opened.world.advance(121);
    await page.clock.fastForward(121_000);
    await heading(page, "The time is up");
    assert.equal(await page.locator("[data-qr]").count(), 0);
    if (round === "first") await assertSound(page, "expired");
    if (round !== "last") await press(page, "Start again");
  }
  assert.equal(await page.getByRole("button").count(), 0);
  const back = page.locator("a.button", { hasText: "Back to Corner Coffee" });
  assert.ok(await back.isVisible());
  const backUrl = (await back.getAttribute("href")) ?? "";
  assert.ok(backUrl.startsWith(`${opened.shop.url}/callback?error=access_denied`), backUrl);
  await assertSound(page, "expired for good");
});

test("axe finds nothing on the pages for browsers without scripts", async () => {
  // Scripts stay on because axe needs them; the pages are those that a browser without scripts gets.
  await using person = await openPerson();
  const page = await openLogin(person);
  const url = `${opened.world.baseUrl}/oauth2/login/${loginIdOf(await readQr(page))}`;
  await person.request.post(`${url}/show-code`);
  await page.goto(url);
  await page.getByRole("button", { name: "Continue" }).waitFor();
  await assertSound(page, "one code that stays");
  await claimOnPage(page, alice);
  await readDigits(page);
  await assertSound(page, "claimed, with Continue");
});

test("axe finds nothing on error pages", async () => {
  const { baseUrl, client } = opened.world;
  await using person = await openPerson();
  const page = await person.newPage();
  const unknownClient = authorizationUrl(baseUrl, { ...client, id: "nobody" }, makePkce());
  const foreignAddress = `${baseUrl}/oauth2/sessions/logout?client_id=${client.id}&post_logout_redirect_uri=https%3A%2F%2Fevil.example`;
  for (const [failure, url, title] of [
    ["unknown client", unknownClient, "This login cannot go on"],
    ["foreign login", `${baseUrl}/oauth2/login/${"A".repeat(22)}`, "This login cannot go on"],
    ["foreign logout address", foreignAddress, "This logout cannot go on"],
  ] as const) {
    await page.goto(url);
    await heading(page, title);
    await page.getByText("Details for the site’s developers").click();
    await assertSound(page, failure);
  }
});

test("axe finds nothing on the way out, and its buttons do what they say", async () => {
  const { baseUrl } = opened.world;
  await using person = await openPerson();
  const page = await openLogin(person);
  await approveOnPage(page, alice);
  await page.getByRole("heading", { name: /^Hello/ }).waitFor();
  const logout = `${baseUrl}/oauth2/sessions/logout`;
  await page.goto(`${logout}?client_id=${opened.world.client.id}`);
  await heading(page, "Log out?");
  await assertSound(page, "logout asked by a client");
  await page.goto(logout);
  await heading(page, "Log out?");
  await assertSound(page, "logout asked by nobody");
  await press(page, "Stay logged in");
  await heading(page, "You are still logged in");
  await assertSound(page, "stayed");
  await page.goto(logout);
  await press(page, "Log out");
  await heading(page, "You are logged out");
  await assertSound(page, "logged out");
});

// The shop's other pages are checked in shop.test.ts.
test("axe finds nothing where the shop has nothing", async () => {
  await using person = await openPerson();
  const page = await person.newPage();
  await page.goto(`${opened.shop.url}/nowhere`);
  await heading(page, "There is nothing here");
  await assertSound(page, "nothing there");
});

test("a camera reads the code from the screen of a phone in the dark, and the wallet claims by it", async () => {
  await using person = await openPerson({
    viewport: { width: 390, height: 844 },
    deviceScaleFactor: 2,
    isMobile: true,
    colorScheme: "dark",
  });
  const page = await openLogin(person);
  // This camera reads the reverse, too, which many cannot.
  assert.equal(await styleOf(page, "[data-qr]", "backgroundColor"), "rgb(255, 255, 255)");
  assert.equal(await styleOf(page, "[data-qr] path", "stroke"), "rgb(0, 0, 0)");
  const claimed = await runWithCode(
    async () => readCode(browser, page),
    async (code) => {
      const { response } = await tryClaim(scan(code), alice);
      return { line: response.ok ? "" : await response.text() };
    },
  );
  assert.equal(claimed.line, "");
  assert.match(await readDigits(page), /^\d\d$/);
});

for (const name of ["login-desktop", "login-dark", "login-phone", "login-no-javascript"]) {
  const isShown = name !== "login-no-javascript";
  test(`the picture ${name} in the docs ${isShown ? "shows a code that a camera reads" : "shows no code yet"}`, async () => {
    const path = join(import.meta.dirname, `../../docs/images/${name}.png`);
    const read = readPicture(browser, await readFile(path));
    if (isShown) scan(await read);
    else await assert.rejects(read);
  });
}
