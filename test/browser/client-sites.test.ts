// What a client does around a login, in a real browser: redirects of its own behind the callback, and a popup.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { authorizationUrl, type LoginClient, makePkce } from "../login-flow.ts";
import { approve, claim, newIdentity, scan } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";
import { openBrowser } from "./browser.ts";
import { approveOnPage, readDigits, readQr } from "./qr-page.ts";

let world: World;
let browser: Browser;
let site: Site;
let client: LoginClient;

const closing = new AsyncDisposableStack();
before(async () => {
  world = closing.use(await openWorld());
  browser = closing.use(await openBrowser());
  site = closing.use(await openSite());
  client = await world.addClient({
    redirectUris: [`${site.origin}/callback`],
    postLogoutRedirectUris: [`${site.origin}/callback`],
  });
});
after(async () => closing.disposeAsync());

interface Site extends AsyncDisposable {
  /** By address, so that the service on `localhost` is another site as well as another origin. */
  readonly origin: string;
  /** Where the callback sends the browser: the same server under another origin. */
  readonly home: string;
}

async function openSite(): Promise<Site> {
  const server = createServer((request, response) => {
    if (request.url?.startsWith("/callback") === true)
      response.writeHead(303, { location: home }).end();
    else if (request.url?.startsWith("/popup") === true)
      response.writeHead(200, { "content-type": "text/html" }).end(popupPage);
    else response.writeHead(200, { "content-type": "text/html" }).end("<title>Home</title>");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const home = `http://localhost:${port}/home`;
  return {
    origin: `http://127.0.0.1:${port}`,
    home,
    [Symbol.asyncDispose]: async () => server[Symbol.asyncDispose](),
  };
}

/** What libraries for a login in a popup do at the callback: tell the opener, and close. */
const popupPage = `<!doctype html><script>
  opener.postMessage(new URLSearchParams(location.search).has("code"), location.origin);
  close();
</script>`;

async function openLogin(options: { javaScriptEnabled: boolean }): Promise<Page> {
  const page = await browser.newPage(options);
  await page.goto(authorizationUrl(world.baseUrl, client, makePkce()));
  return page;
}

/** Presses through a login without scripts, up to the button that leads to the client. */
async function approveByButtons(page: Page): Promise<void> {
  await page.locator("form[data-form=show-code] button").click();
  const claimed = await claim(scan(await readQr(page)), newIdentity());
  await page.locator("form[data-form=continue] button").click();
  const approved = await approve(claimed, await readDigits(page));
  assert.equal(approved.status, 200);
}

test("a callback may send the browser on to another origin, also without JavaScript", async () => {
  const page = await openLogin({ javaScriptEnabled: false });
  await approveByButtons(page);
  await page.locator("form[data-form=continue] button").click();
  await page.waitForURL(site.home);
  await page.close();
});

test("whoever is asked and logs out is sent on to another origin by the client's own page", async () => {
  const page = await openLogin({ javaScriptEnabled: true });
  await approveOnPage(page, newIdentity());
  await page.waitForURL(site.home);
  const address = new URLSearchParams({
    client_id: client.id,
    post_logout_redirect_uri: `${site.origin}/callback`,
  });
  await page.goto(`${world.baseUrl}/oauth2/sessions/logout?${address.toString()}`);
  await page.locator("button[value=logout]").click();
  await page.waitForURL(site.home);
  await page.close();
});

test("a login in a popup is open until its callback has told the page that opened it", async () => {
  const redirectUri = `${site.origin}/popup`;
  const address = authorizationUrl(
    world.baseUrl,
    await world.addClient({ redirectUris: [redirectUri] }),
    makePkce(),
  );
  const page = await browser.newPage();
  await page.goto(site.origin);
  await page.evaluate(
    `told = new Promise((resolve) => addEventListener("message", resolve)); null`,
  );
  const [popup] = await Promise.all([
    page.waitForEvent("popup"),
    page.evaluate(`popup = open(${JSON.stringify(address)}, "login", "width=500"); null`),
  ]);
  await popup.locator("[data-qr]").waitFor();
  assert.equal(await page.evaluate("popup.closed"), false);
  await approveOnPage(popup, newIdentity());
  assert.equal(await page.evaluate("told.then(({ data }) => data)"), true);
  await page.close();
});
