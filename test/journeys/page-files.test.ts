// The login page and its files as they are loaded, also while processes of two versions run: page and files come from
// different ones.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { authorizationUrl, hooksOf, makePkce, openPage } from "../login-flow.ts";
import { claim, newIdentity, scan } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

const hash = /\.[\w-]{16}\./;

/** What is on the wire for a browser that takes this coding. */
async function load(url: string, accepted: string) {
  const answer = await fetch(url, { headers: { "accept-encoding": accepted } });
  assert.equal(answer.headers.get("vary"), "accept-encoding");
  const coding = answer.headers.get("content-encoding");
  const length = Number(answer.headers.get("content-length"));
  return { coding, length, text: await answer.text() };
}

test("page and files come packed to a browser that takes that, in 25 kB together", async () => {
  const page = authorizationUrl(world.baseUrl, world.client, makePkce());
  const packed = await load(page, "gzip, br");
  const paths = [...new Set(packed.text.match(/\/oauth2\/assets\/[\w.-]+/g))];
  const urls = paths.map((path) => `${world.baseUrl}${path}`);
  const files = await Promise.all(urls.map(async (url) => load(url, "gzip, br")));
  for (const { coding } of [packed, ...files]) assert.equal(coding, "gzip");
  assert.ok([packed, ...files].reduce((sum, { length }) => sum + length, 0) <= 25_000);
  for (const accepted of ["identity", "gzip;q=0, br", "br, GZIP ; q=0.0", "gzipped"]) {
    const plain = await load(page, accepted);
    assert.deepEqual([plain.coding, plain.length], [null, Buffer.byteLength(plain.text)]);
    assert.ok(hooksOf(plain.text).qr.startsWith("svc:login?"));
  }
  for (const accepted of ["GZIP", "br;q=1.0,gzip;q=0.8, *;q=0.1"])
    assert.equal((await load(page, accepted)).coding, "gzip");
});

test("a page that shows a number is sent as it is: packed, its size would tell of the number", async () => {
  const page = await openPage(world.baseUrl, world.client);
  await claim(scan(page.qr), newIdentity());
  const shown = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}`);
  assert.equal(shown.headers.get("content-encoding"), null);
  assert.match(await shown.text(), /data-code>\d\d</);
});

test("a page of another version gets the files of this one, which no cache keeps under its names", async () => {
  const { html } = await openPage(world.baseUrl, world.client);
  const paths = new Set(html.match(/\/oauth2\/assets\/[\w.-]+/g));
  assert.equal(paths.size, 5);
  for (const path of paths) {
    const own = await fetch(`${world.baseUrl}${path}`);
    assert.equal(own.headers.get("cache-control"), "public, max-age=31536000, immutable");
    const other = await fetch(`${world.baseUrl}${path.replace(hash, ".ofAnotherVersion.")}`);
    assert.equal(other.status, 200, path);
    assert.equal(other.headers.get("cache-control"), "no-store");
    assert.equal(other.headers.get("content-type"), own.headers.get("content-type"));
    assert.equal(await other.text(), await own.text());
  }
  const unknown = await fetch(`${world.baseUrl}/oauth2/assets/other.ofAnotherVersion.js`);
  assert.equal(unknown.status, 404);
});
