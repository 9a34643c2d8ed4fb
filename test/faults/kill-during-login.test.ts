// kill -9 of the server at every step of a login: the same browser goes on, and no code is good twice.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type CrashPoint, killAt, openGates, whenOf } from "../crash-gates.ts";
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
import { approve, claim, newIdentity, sameDeviceReturn, scan, tryClaim } from "../raw-wallet.ts";
import { openWorld, type ServerProcess, type World } from "../world.ts";

const processName = "svc-under-test";
const settings = { BASE_URL: "", PGAPPNAME: processName };
let world: World;
let server: ServerProcess;
let base: string;

before(async () => {
  world = await openWorld();
  // The world's own process only administers here; what is killed is a server of its own, under its own issuer.
  server = await world.startProcess(settings);
  base = server.url;
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

async function start(): Promise<void> {
  server = await world.startProcess(settings, { port: Number(new URL(base).port) });
}

async function crash(whileDead?: () => Promise<void>): Promise<void> {
  await server.kill();
  await whileDead?.();
  await start();
}

test("logins go on after a crash at every step, and one whose time is over is told so", async (t) => {
  const late = await openPage(base, world.client);
  // A process that lives follows the clock a moment later, one that starts has its time at once.
  await crash(async () => world.advance(200));
  await t.test("past the login's lifetime the browser is told plainly to start again", async () => {
    assert.deepEqual(await statusOf(base, late), {
      kind: "failed",
      failure: "expired",
      canRestart: true,
    });
    const again = await late.jar.fetch(`${base}/oauth2/login/${late.loginId}/restart`, {
      method: "POST",
    });
    assert.equal(again.status, 303);
    const html = await (await late.jar.fetch(`${base}${again.headers.get("location")}`)).text();
    await claim(scan(hooksOf(html).qr), newIdentity());
  });

  const page = await openPage(base, world.client);
  const same = await openPage(base, world.client);
  const identity = newIdentity();
  const link = scan(page.qr);
  const claimed = await claim(link, identity);
  await crash();
  await t.test("a wallet that lost the answer to its claim gets it by asking again", async () => {
    const { response } = await tryClaim(link, identity, claimed.secret);
    assert.deepEqual([response.status, await response.text()], [200, claimed.object]);
  });
  const { digits } = await statusOf(base, page);
  assert.equal((await approve(claimed, String(digits))).status, 200);
  const again = await same.jar.fetch(`${base}/oauth2/login/${same.loginId}`);
  const { sameDevice } = hooksOf(await again.text());
  const returned = await same.jar.fetch(sameDeviceReturn(scan(sameDevice), newIdentity()));
  assert.equal(returned.status, 303);
  await crash();
  await t.test("a login on the same device survives one between return and code", async () => {
    const released = await same.jar.fetch(`${base}${returned.headers.get("location")}`);
    assert.match(released.headers.get("location") ?? "", /[?&]code=/);
  });

  await t.test(
    "a wallet that lost the answer to its approval gets it by asking again",
    async () => {
      assert.equal((await approve(claimed, String(digits))).status, 200);
    },
  );

  const callback = await finish(base, page);
  await crash();
  const code = callback.searchParams.get("code") ?? "";
  const answer = await redeem(base, world.client, { code, verifier: page.pkce.verifier });
  assert.equal(answer.status, 200);
  const tokens = (await answer.json()) as Tokens;
  await crash();
  const headers = { authorization: `Bearer ${tokens.access_token}` };
  assert.equal((await fetch(`${base}/userinfo`, { headers })).status, 200);
  const refreshed = await postToken(base, world.client, {
    grant_type: "refresh_token",
    refresh_token: tokens.refresh_token ?? "",
  });
  assert.equal(refreshed.status, 200);
  const twice = await redeem(base, world.client, { code, verifier: page.pkce.verifier });
  assert.equal(twice.status, 400);
});

/** Where a code is good no more. */
const redeemed = {
  name: "the code becomes tokens",
  on: "insert on token_family",
  when: "true",
};

/** @returns what the code is answered after the crash, and once more */
async function redeemOverCrash(point: CrashPoint): Promise<number[]> {
  const page = await openPage(base, world.client);
  await approveByQr(base, page, newIdentity());
  const code = (await finish(base, page)).searchParams.get("code") ?? "";
  const answer = async (): Promise<Response> =>
    redeem(base, world.client, { code, verifier: page.pkce.verifier });
  const url = world.ctx.config.databaseUrl ?? "";
  await using gates = await openGates(url, { points: [point], processName });
  const work = async (): Promise<void> => assert.rejects(answer(), TypeError);
  await Promise.all(await killAt(gates, [{ point, work }], async () => server.kill()));
  await start();
  return [(await answer()).status, (await answer()).status];
}

const crashes: readonly { point: CrashPoint; statuses: number[] }[] = [
  { point: redeemed, statuses: [200, 400] },
  { point: { ...redeemed, isSeen: true }, statuses: [400, 400] },
];
for (const { point, statuses } of crashes)
  test(`a code whose server dies ${whenOf(point)} it commits that ${point.name} is good once in all`, async () => {
    assert.deepEqual(await redeemOverCrash(point), statuses);
  });
