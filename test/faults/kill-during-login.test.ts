// kill -9 of the server at every step of a login: the same browser goes on, and no code is good twice.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type CrashPoint, killAt, openGates, whenOf } from "../crash-gates.ts";
import {
  approveByQr,
  finish,
  hooksOf,
  logIn,
  openPage,
  postToken,
  redeem,
  statusOf,
} from "../login-flow.ts";
import { approve, claim, newIdentity, sameDeviceReturn, scan, tryClaim } from "../raw-wallet.ts";
import { openWorld, type ServerProcess, untilTime, type World } from "../world.ts";

const processName = "svc-under-test";
const settings = { BASE_URL: "", PGAPPNAME: processName };
let world: World;
let server: ServerProcess;
let base: string;

before(async () => {
  world = await openWorld();
  // The world's own process only administers here; a second server, with its own issuer, is killed.
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

/** The write that uses a code up. */
const redeemed = {
  name: "the code becomes tokens",
  on: "insert on token_family",
  when: "true",
};
/** The statuses of redeeming the code after the crash, and once more. */
const crashes: readonly { point: CrashPoint; statuses: number[] }[] = [
  { point: redeemed, statuses: [200, 400] },
  { point: { ...redeemed, isSeen: true }, statuses: [400, 400] },
];

/** Finished logins, each with a function that redeems its code. */
const openCodes = async () =>
  Promise.all(
    crashes.map(async ({ point, statuses }) => {
      const page = await openPage(base, world.client);
      await approveByQr(base, page, newIdentity());
      const code = (await finish(base, page)).searchParams.get("code") ?? "";
      const answer = async (): Promise<Response> =>
        redeem(base, world.client, { code, verifier: page.pkce.verifier });
      return { point, statuses, answer };
    }),
  );

test("logins go on after a crash at every step, and one whose time is over is told so", async (t) => {
  const late = await openPage(base, world.client);
  await world.advance(200);
  await untilTime(server, world.ctx.clock.now());
  const page = await openPage(base, world.client);
  const identity = newIdentity();
  const link = scan(page.qr);
  const claimed = await claim(link, identity);
  const approved = await openPage(base, world.client);
  const approval = await claim(scan(approved.qr), newIdentity());
  const digits = String((await statusOf(base, approved))["digits"]);
  assert.equal((await approve(approval, digits)).status, 200);
  const same = await openPage(base, world.client);
  const returned = await same.jar.fetch(sameDeviceReturn(scan(same.sameDevice), newIdentity()));
  assert.equal(returned.status, 303);
  const finished = await openPage(base, world.client);
  await approveByQr(base, finished, newIdentity());
  const callback = await finish(base, finished);
  const { tokens, page: over, code } = await logIn(base, world.client, newIdentity());
  const codes = await openCodes();
  const points = crashes.map(({ point }) => point);
  await using gates = await openGates(world.ctx.config.databaseUrl ?? "", { points, processName });
  const stops = codes.map(({ point, answer }) => ({
    point,
    work: async (): Promise<void> => assert.rejects(answer(), TypeError),
  }));
  await Promise.all(await killAt(gates, stops, async () => server.kill()));
  await start();

  await t.test(
    `codes whose server dies ${crashes.map(({ point }) => whenOf(point)).join(" or ")} it commits that ${redeemed.name} are good once in all`,
    async () => {
      for (const { point, statuses, answer } of codes)
        assert.deepEqual(
          [(await answer()).status, (await answer()).status],
          statuses,
          `${whenOf(point)} the commit`,
        );
    },
  );
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
  await t.test("a wallet that lost the answer to its claim gets it by asking again", async () => {
    const { response } = await tryClaim(link, identity, claimed.secret);
    assert.deepEqual([response.status, await response.text()], [200, claimed.object]);
    const shown = String((await statusOf(base, page))["digits"]);
    assert.equal((await approve(claimed, shown)).status, 200);
    await finish(base, page);
  });
  await t.test("a login on the same device survives one between return and code", async () => {
    const released = await same.jar.fetch(returned.headers.get("location") ?? "");
    assert.match(released.headers.get("location") ?? "", /[?&]code=/);
  });
  await t.test(
    "a wallet that lost the answer to its approval gets it by asking again",
    async () => {
      assert.equal((await approve(approval, digits)).status, 200);
      await finish(base, approved);
    },
  );
  await t.test("a code that was issued before is good", async () => {
    const issued = callback.searchParams.get("code") ?? "";
    const { verifier } = finished.pkce;
    const answer = await redeem(base, world.client, { code: issued, verifier });
    assert.equal(answer.status, 200);
  });
  await t.test("tokens that were issued before are good, and their code no more", async () => {
    const headers = { authorization: `Bearer ${tokens.access_token}` };
    assert.equal((await fetch(`${base}/userinfo`, { headers })).status, 200);
    const refreshed = await postToken(base, world.client, {
      grant_type: "refresh_token",
      refresh_token: tokens.refresh_token ?? "",
    });
    assert.equal(refreshed.status, 200);
    const { verifier } = over.pkce;
    assert.equal((await redeem(base, world.client, { code, verifier })).status, 400);
  });
});
