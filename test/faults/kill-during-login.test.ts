// kill -9 of the server at every step of a login: the same browser goes on, and no code is good twice.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { after, before, test } from "node:test";
import {
  approveByQr,
  finish,
  hooksOf,
  openPage,
  postToken,
  redeem,
  statusOf,
  type Tokens,
} from "../login-flow.ts";
import { approve, claim, newIdentity, sameDeviceReturn, scan } from "../raw-wallet.ts";
import { openWorld, type ServerProcess, type World } from "../world.ts";

let world: World;
let server: ServerProcess;
let base: string;

before(async () => {
  world = await openWorld();
  // The world's own process only administers here; what is killed is a server of its own, under its own issuer.
  server = await world.startProcess({ BASE_URL: "" });
  base = server.url;
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

async function crash(): Promise<void> {
  await server.kill();
  server = await world.startProcess({ BASE_URL: "" }, { port: Number(new URL(base).port) });
}

test("a page that was shown before the crash is claimed, approved and finished after it", async () => {
  const page = await openPage(base, world.client);
  await crash();
  const shown = hooksOf(
    await (await page.jar.fetch(`${base}/oauth2/login/${page.loginId}`)).text(),
  );
  const claimed = await claim(scan(shown.qr), newIdentity());
  await crash();
  const { digits } = await statusOf(base, page);
  assert.equal((await approve(claimed, String(digits))).status, 200);
  await crash();
  const callback = await finish(base, page);
  await crash();
  const code = callback.searchParams.get("code") ?? "";
  const answer = await redeem(base, world.client, { code, verifier: page.pkce.verifier });
  assert.equal(answer.status, 200);
  const tokens = (await answer.json()) as Tokens;
  await crash();
  assert.equal(
    (
      await fetch(`${base}/userinfo`, {
        headers: { authorization: `Bearer ${tokens.access_token}` },
      })
    ).status,
    200,
  );
  assert.equal(
    (
      await postToken(base, world.client, {
        grant_type: "refresh_token",
        refresh_token: tokens.refresh_token ?? "",
      })
    ).status,
    200,
  );
  assert.equal(
    (await redeem(base, world.client, { code, verifier: page.pkce.verifier })).status,
    400,
  );
});

test("a wallet that lost the answer to its claim or approval gets it by asking again", async () => {
  const page = await openPage(base, world.client);
  const claimed = await claim(scan(page.qr), newIdentity());
  const { digits } = await statusOf(base, page);
  assert.equal((await approve(claimed, String(digits))).status, 200);
  await crash();
  assert.equal((await approve(claimed, String(digits))).status, 200);
  assert.ok((await finish(base, page)).searchParams.get("code"));
});

test("a login on the same device survives a crash between return and code", async () => {
  const page = await openPage(base, world.client);
  const returned = await page.jar.fetch(sameDeviceReturn(scan(page.sameDevice), newIdentity()));
  assert.equal(returned.status, 303);
  await crash();
  const released = await page.jar.fetch(`${base}${returned.headers.get("location")}`);
  assert.match(released.headers.get("location") ?? "", /[?&]code=/);
});

test("after a crash past the login's lifetime the browser is told plainly to start again", async () => {
  const page = await openPage(base, world.client);
  await world.advance(200);
  await crash();
  assert.deepEqual(await statusOf(base, page), {
    kind: "failed",
    failure: "expired",
    canRestart: true,
  });
  const again = await page.jar.fetch(`${base}/oauth2/login/${page.loginId}/restart`, {
    method: "POST",
  });
  assert.equal(again.status, 303);
  const html = await (await page.jar.fetch(`${base}${again.headers.get("location")}`)).text();
  const claimed = await claim(scan(hooksOf(html).qr), newIdentity());
  assert.equal(claimed.identity.address.length, 42);
});

test("a code redeemed while the server is killed is good at most once", async () => {
  for (let round = 0; round < 5; round += 1) {
    const page = await openPage(base, world.client);
    await approveByQr(base, page, newIdentity());
    const code = (await finish(base, page)).searchParams.get("code") ?? "";
    const redeemOnce = async (): Promise<number> =>
      redeem(base, world.client, { code, verifier: page.pkce.verifier }).then(
        (answer) => answer.status,
        () => 0,
      );
    const first = redeemOnce();
    // Let the request get as far as chance has it before the process dies.
    for (let turns = randomInt(40); turns > 0; turns -= 1) await new Promise(setImmediate);
    await crash();
    const statuses = [await first, await redeemOnce(), await redeemOnce()];
    assert.ok(statuses.filter((status) => status === 200).length <= 1, statuses.join());
    assert.equal(statuses[2], 400, "whatever happened, the code is spent now");
  }
});
