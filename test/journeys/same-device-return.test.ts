// The wallet comes back to the browser on the same device: too late, and more than once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openJar } from "../cookie-jar.ts";
import { hooksOf, logIn, openPage, statusOf } from "../login-flow.ts";
import { claim, claimedReturn, newIdentity, sameDeviceReturn, scan } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

test("whoever comes back too late is led to the login's page, which starts again", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const url = sameDeviceReturn(scan(page.sameDevice), newIdentity());
  await world.advance(world.ctx.config.loginLifetimeSeconds + 1);
  const late = await page.jar.fetch(url);
  const html = await late.text();
  assert.equal(late.status, 409, html);
  assert.match(html, new RegExp(`href="/oauth2/login/${page.loginId}"`));
  const next = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}`);
  assert.equal(next.status, 200);
  assert.match(await next.text(), new RegExp(`action="/oauth2/login/${page.loginId}/restart"`));
  const stranger = await openJar().fetch(url);
  assert.ok(stranger.status >= 400);
  assert.doesNotMatch(await stranger.text(), /href="\/oauth2\/login\//);
});

/** A page, and the address that a wallet on the same device opens for it. */
async function openReturn(isClaimed: boolean) {
  const page = await openPage(world.baseUrl, world.client);
  const scanned = scan(page.sameDevice);
  const url = isClaimed
    ? claimedReturn(await claim(scanned, newIdentity()))
    : sameDeviceReturn(scanned, newIdentity());
  return { page, scanned, url };
}

test("a login that a wallet on the same device has shows no code any more, and can be started again for another", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.sameDevice), newIdentity());
  assert.deepEqual(await statusOf(world.baseUrl, page), { kind: "opened" });
  const path = `${world.baseUrl}/oauth2/login/${page.loginId}`;
  const shown = await (await page.jar.fetch(path)).text();
  assert.doesNotMatch(shown, /data-qr=/);
  const again = await page.jar.fetch(`${path}/restart`, { method: "POST" });
  assert.equal(again.status, 303);
  const location = new URL(again.headers.get("location") ?? "", world.baseUrl);
  const next = await page.jar.fetch(location.href);
  const { qr } = hooksOf(await next.text());
  await claim(scan(qr), newIdentity());
  assert.equal((await page.jar.fetch(claimedReturn(claimed))).status, 409);
});

test("an unreadable answer that comes back is reported as such, and changes nothing", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const url = new URL(claimedReturn(await claim(scan(page.sameDevice), newIdentity())));
  const changed = (change: (query: URLSearchParams) => void): URL => {
    const next = new URL(url);
    change(next.searchParams);
    return next;
  };
  const broken = [
    changed((query) => query.set("svcID", "zz")),
    changed((query) => query.set("svcID", "0x369C9bF7049e8E22dC5e6CE3F15eF6e996239b95")),
    changed((query) => query.delete("svcID")),
    changed((query) => query.delete("session")),
    changed((query) => query.set("error", "made_up")),
  ];
  for (const each of broken) {
    const refused = await page.jar.fetch(each.href);
    assert.equal(refused.status, 400, each.search);
    assert.match(await refused.text(), /invalid_request/);
  }
  const v0 = changed((query) =>
    query.set("signature", `${url.searchParams.get("signature")?.slice(0, -2)}00`),
  );
  const formless = await page.jar.fetch(v0.href);
  assert.equal(formless.status, 422);
  assert.match(await formless.text(), /65 bytes r, s, v in hex/);
  assert.equal((await page.jar.fetch(url.href)).status, 303);
});

test("an answer that came back once lets neither another user nor another browser continue", async () => {
  for (const isClaimed of [false, true]) {
    const { page, scanned, url } = await openReturn(isClaimed);
    assert.equal((await page.jar.fetch(url)).status, 303);
    assert.equal((await page.jar.fetch(sameDeviceReturn(scanned, newIdentity()))).status, 409);
    assert.equal((await openJar().fetch(url)).status, 404);
    assert.equal((await statusOf(world.baseUrl, page))["failure"], "other_browser");
    assert.equal((await page.jar.fetch(url)).status, 409);
  }
});

test("a page that cannot go on speaks the language that its login asked for, whatever the browser's is", async () => {
  const page = await openPage(world.baseUrl, world.client, { changed: { ui_locales: "de" } });
  const returned = `${world.baseUrl}/w/b/${page.loginId}`;
  const signed = sameDeviceReturn(scan(page.sameDevice), newIdentity());
  const form = `${world.baseUrl}/oauth2/login/${page.loginId}/continue`;
  const languages = { "accept-language": "fr" };
  const foreign = { ...languages, "sec-fetch-site": "cross-site" };
  for (const [status, response] of [
    [403, await page.jar.fetch(form, { method: "POST", headers: foreign })],
    [409, await page.jar.fetch(returned, { headers: languages })],
    [404, await openJar().fetch(signed, { headers: languages })],
  ] as const) {
    assert.equal(response.status, status);
    assert.match(await response.text(), /<html lang="de">/, String(status));
  }
});

test("a page that cannot go on says why, in the person's language", async () => {
  const identity = newIdentity();
  const { tokens, page: finished } = await logIn(world.baseUrl, world.client, identity);
  const another = await openReturn(false);
  const changed = { id_token_hint: tokens.id_token, ui_locales: "de" };
  const hinted = await openPage(world.baseUrl, world.client, { changed });
  const asked = sameDeviceReturn(scan(hinted.sameDevice), newIdentity());
  const { page, url } = await openReturn(false);
  const languages = { headers: { "accept-language": "de" } };
  await page.jar.copy().fetch(url);
  await page.jar.fetch(`${world.baseUrl}/w/b/${page.loginId}`);
  const byQr = `${world.baseUrl}/w/b/${finished.loginId}`;
  for (const [says, response] of [
    [/mit einer anderen Identität geantwortet/, await hinted.jar.fetch(asked, languages)],
    [/abgeschlossen, vielleicht in einem anderen Tab/, await page.jar.fetch(url, languages)],
    // No button leads on from a browser that did not begin the login.
    [/Zeit ist abgelaufen\.\s+Gehen Sie zurück zur Website/, await openJar().fetch(url, languages)],
    // What was shared is not known here: the page does not say that nothing was.
    [/<p>\s*Gehen Sie zurück zur Seite dieser/, await finished.jar.fetch(byQr, languages)],
    [/der diese Anmeldung nicht begonnen hat/, await openJar().fetch(another.url, languages)],
  ] as const) {
    const html = await response.text();
    assert.ok(response.status >= 400);
    assert.match(html.slice(0, html.indexOf("<details>")), says);
  }
});
