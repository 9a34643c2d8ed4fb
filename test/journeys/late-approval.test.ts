import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  authorizationUrl,
  finish,
  makePkce,
  openPage,
  type OpenPage,
  statusOf,
} from "../login-flow.ts";
import { approve, claim, newIdentity, sameDeviceReturn, scan } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

const lifetime = (): number => world.ctx.config.loginLifetimeSeconds;

/** Twenty seconds short of the lifetime, for the run time of the test itself. */
const nearly = (): number => lifetime() - 20;

/** A page whose wallet claims at once, and approves when the page's time is nearly over. */
async function approveLate(): Promise<OpenPage> {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), newIdentity());
  await world.advance(nearly());
  const { digits } = await statusOf(world.baseUrl, page);
  assert.equal((await approve(claimed, String(digits))).status, 200);
  return page;
}

test("what was approved late still gets its code when the page's own time is over", async () => {
  const page = await approveLate();
  await world.advance(nearly());
  const { searchParams } = await finish(world.baseUrl, page);
  assert.ok(searchParams.has("code"), searchParams.toString());
});

test("an approval that no browser fetches is over a page's time after it", async () => {
  const page = await approveLate();
  await world.advance(lifetime() + 2);
  assert.equal((await statusOf(world.baseUrl, page)).failure, "expired");
});

test("who came back late on the same device is led on afterwards", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const url = sameDeviceReturn(scan(page.sameDevice), newIdentity());
  await world.advance(nearly());
  const back = await page.jar.fetch(url);
  assert.equal(back.status, 303);
  await world.advance(nearly());
  const bare = new URL(back.headers.get("location") ?? "", url);
  const led = await page.jar.fetch(bare.href);
  const location = led.headers.get("location") ?? "";
  assert.ok(location.includes("code="), `${led.status} ${location}`);
});

test("the cookie of a login lives as long as a browser may fetch its code, however long pages live", async () => {
  await using slow = await openWorld({ LOGIN_LIFETIME_SECONDS: "900" });
  for (const scope of ["openid", "openid business"]) {
    const url = authorizationUrl(slow.baseUrl, slow.client, makePkce(), { scope });
    const page = await fetch(url);
    const maxAge = Number(/Max-Age=(\d+)/.exec(page.headers.get("set-cookie") ?? "")?.[1]);
    assert.ok(maxAge >= 900 + 900, `${scope}: ${maxAge} s`);
  }
});
