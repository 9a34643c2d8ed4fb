// The wallet comes back to the browser on the same device too late: the page that says so leads on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openJar } from "../cookie-jar.ts";
import { openPage } from "../login-flow.ts";
import { newIdentity, sameDeviceReturn, scan } from "../raw-wallet.ts";
import { openWorld } from "../world.ts";

test("whoever comes back too late is led to the login's page, which starts again", async () => {
  await using world = await openWorld();
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
