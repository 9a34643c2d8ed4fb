import assert from "node:assert/strict";
import { on, once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { openShop, type Shop } from "@svc/shop";
import { openJar } from "../cookie-jar.ts";
import { approveByQr, finish, hooksOf, statusOf, type OpenPage } from "../login-flow.ts";
import {
  claim,
  decline,
  type Identity,
  newIdentity,
  openWalletSession,
  scan,
} from "../raw-wallet.ts";
import { apiAudience, freePort, openWorld, type World } from "../world.ts";

let world: World;
let shop: Shop;
/** Stands before the shop's back-channel address and tells the test whose logout was delivered. */
let backChannel: Server;
const alice = newIdentity();

before(async () => {
  world = await openWorld();
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const deliver = async (body: string): Promise<number> => {
    const form = new URLSearchParams(body);
    const { status } = await fetch(`${url}/backchannel-logout`, { method: "POST", body: form });
    backChannel.emit("delivered", subjectOf(form.get("logout_token") ?? ""));
    return status;
  };
  backChannel = createServer((request, response) => {
    text(request)
      .then(deliver)
      .then((status) => response.writeHead(status).end())
      .catch((error: unknown) => backChannel.emit("error", error));
  }).listen(0, "127.0.0.1");
  await once(backChannel, "listening");
  const { port: backChannelPort } = backChannel.address() as AddressInfo;
  const { id, secret = "" } = await world.addClient({
    redirectUris: [`${url}/callback`],
    postLogoutRedirectUris: [`${url}/`],
    backchannelLogoutUri: `http://localhost:${backChannelPort}/`,
  });
  shop = await openShop({
    port,
    host: "127.0.0.1",
    issuer: world.baseUrl,
    clientId: id,
    clientSecret: secret,
    audience: apiAudience,
    clockUrl: `${world.baseUrl}/health/ready`,
  });
});
after(async () => {
  // Earlier tests' logouts may be under way: they end with the world, and need the other two servers until then.
  await world[Symbol.asyncDispose]();
  backChannel.close();
  await shop.close();
});

function subjectOf(logoutToken: string): string {
  const payload = Buffer.from(logoutToken.split(".")[1] ?? "", "base64url").toString();
  return (JSON.parse(payload) as { sub: string }).sub;
}

/** Resolves with the next delivery for this person; others may come before it. */
async function deliveryFor(identity: Identity): Promise<void> {
  for await (const [subject] of on(backChannel, "delivered"))
    if (subject === `svcid:${identity.address}`) return;
}

const locationOf = (response: Response) => response.headers.get("location") ?? "";

/** A browser that pressed "Log in" in the shop and stands before the QR page. */
async function pressLogIn(): Promise<OpenPage> {
  const jar = openJar();
  const start = await jar.fetch(`${shop.url}/login`, { method: "POST" });
  const html = await (await jar.fetch(locationOf(start))).text();
  return Object.assign(hooksOf(html), { jar, html, pkce: { verifier: "", challenge: "" } });
}

async function logIn(identity = alice): Promise<OpenPage> {
  const page = await pressLogIn();
  await approveByQr(world.baseUrl, page, identity);
  const back = await page.jar.fetch((await finish(world.baseUrl, page)).href);
  assert.equal(locationOf(back), "/", await back.text());
  return page;
}

const home = async ({ jar }: Pick<OpenPage, "jar">) => (await jar.fetch(`${shop.url}/`)).text();

test("a person logs in to the shop with the wallet and is greeted by name", async () => {
  const page = await logIn();
  assert.ok((await home(page)).includes(`<code>${alice.address}</code>`));
});

test("the shop renews a login, also after the time was moved", async () => {
  const page = await logIn();
  await world.advance(7200);
  const refreshed = await page.jar.fetch(`${shop.url}/refresh`, { method: "POST" });
  assert.equal(locationOf(refreshed), "/", await refreshed.text());
  assert.match(await home(page), /Hello/);
});

test("a person who declines comes back to the shop and may try again", async () => {
  const page = await pressLogIn();
  await decline(await claim(scan(page.qr), alice));
  const { location } = await statusOf(world.baseUrl, page);
  const response = await page.jar.fetch(String(location));
  assert.equal(response.status, 403);
  assert.match(await response.text(), /You declined[\s\S]*Try again/);
});

test("a person who logs out is logged out at the broker and comes back to the shop", async () => {
  const page = await logIn();
  const out = await page.jar.fetch(`${shop.url}/logout`, { method: "POST" });
  const atBroker = await page.jar.fetch(locationOf(out));
  assert.equal(locationOf(atBroker), `${shop.url}/`, await atBroker.text());
  assert.match(await home(page), /Log in/);
});

test("whoever presses Log out twice, or after the shop's own session is over, is asked at the broker", async () => {
  const page = await logIn();
  // The browser follows only the second answer, so it has not been to the broker yet.
  await page.jar.fetch(`${shop.url}/logout`, { method: "POST" });
  const out = await page.jar.fetch(`${shop.url}/logout`, { method: "POST" });
  const asking = await page.jar.fetch(locationOf(out));
  assert.match(await asking.text(), /name="decision" value="logout"/);
});

test("a login that its person ends in the wallet ends in the shop", async () => {
  const bob = newIdentity();
  const [page, other] = [await logIn(bob), await logIn()];
  const headers = await openWalletSession(world.baseUrl, bob);
  const logins = await fetch(`${world.baseUrl}/w/logins`, { headers });
  const { items } = (await logins.json()) as { items: { id: string }[] };
  assert.equal(items.length, 1);
  const delivered = deliveryFor(bob);
  await fetch(`${world.baseUrl}/w/logins/${items[0]?.id}/end`, { method: "POST", headers });
  await delivered;
  assert.match(await home(page), /Log in/);
  assert.match(await home(other), /Hello/);
});
