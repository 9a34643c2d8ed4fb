// The files of the login page while processes of two versions run: page and files come from different ones.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openPage } from "../login-flow.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

const hash = /\.[\w-]{16}\./;

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
