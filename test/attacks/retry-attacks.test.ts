// What can be asked for a second time in a login, and what cannot: numbers, restarts, claims, approvals.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { loginDigest, signDigest, zeroHash } from "@svc/protocol";
import { sql } from "../../service/src/platform/database/db.ts";
import { type Jar, openJar } from "../cookie-jar.ts";
import { approveByQr, finish, hooksOf, type OpenPage, openPage, statusOf } from "../login-flow.ts";
import {
  approvalOf,
  approve,
  claim,
  type Claimed,
  decline,
  type Identity,
  newIdentity,
  post,
  sameDeviceReturn,
  type Scanned,
  scan,
  tryClaim,
} from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";
import { untilBlocked } from "../lock-waits.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

async function claimPage(
  page: OpenPage,
): Promise<{ claimed: Claimed; right: string; wrong: string }> {
  const claimed = await claim(scan(page.qr), newIdentity());
  const right = String((await statusOf(world.baseUrl, page))["digits"]);
  return { claimed, right, wrong: String((Number(right) + 1) % 100).padStart(2, "0") };
}

async function submit(jar: Jar, loginId: string, action: string): Promise<Response> {
  return jar.fetch(`${world.baseUrl}/oauth2/login/${loginId}/${action}`, { method: "POST" });
}

/** Restarts a login `count` times at once. @returns the ids of the logins that they led to, without the old one */
async function restartAtOnce(
  page: Pick<OpenPage, "jar" | "loginId">,
  count: number,
): Promise<string[]> {
  const answers = await Promise.all(
    Array.from({ length: count }, async () => submit(page.jar.copy(), page.loginId, "restart")),
  );
  assert.ok(answers.every((answer) => answer.status === 303));
  const places = answers.map((answer) => answer.headers.get("location")?.split("/").at(-1) ?? "");
  return places.filter((place) => place !== page.loginId);
}

test("of two wrong numbers at once both fail, and the right one after them too", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { claimed, right, wrong } = await claimPage(page);
  const other = String((Number(right) + 2) % 100).padStart(2, "0");
  const answers = await Promise.all([approve(claimed, wrong), approve(claimed, other)]);
  assert.ok(answers.every((answer) => answer.status >= 400));
  assert.equal((await approve(claimed, right)).status, 409);
  assert.equal((await statusOf(world.baseUrl, page))["failure"], "wrong_number");
});

test("a right and a wrong number at once yield a code at most when the right one came first", async () => {
  for (let round = 0; round < 10; round += 1) {
    const page = await openPage(world.baseUrl, world.client);
    const { claimed, right, wrong } = await claimPage(page);
    const [, late] = await Promise.all([approve(claimed, wrong), approve(claimed, right)]);
    const { kind, failure } = await statusOf(world.baseUrl, page);
    if (late.status !== 200) assert.equal(failure, "wrong_number");
    else assert.ok(kind === "approved" || failure === "wrong_number");
    assert.equal((await approve(claimed, right)).status === 200, kind === "approved");
  }
});

test("an ended login is restarted once, also when asked many times at once or again later", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { claimed, wrong } = await claimPage(page);
  assert.notEqual((await approve(claimed, wrong)).status, 200);
  const led = await restartAtOnce(page, 10);
  assert.equal(led.length, 10);
  assert.deepEqual(new Set(await restartAtOnce(page, 3)), new Set(led));
  const [row] = await world.ctx.db.query<{ made: number }>(sql`
    select count(*)::int as made from login where restarts > 0 and id <> ${page.loginId}
      and request = (select request from login where id = ${page.loginId})`);
  assert.equal(row?.made, 1);
  await world.advance(60);
  assert.equal((await restartAtOnce(page, 3)).length, 0);
});

test("a button that was pressed twice to start again leads to the login that the first press made", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const early = page.jar.copy();
  const first = await submit(page.jar, page.loginId, "restart");
  // The second press was sent before the first answer arrived (old cookies), or after it (new ones).
  for (const jar of [early, page.jar]) {
    const second = await submit(jar, page.loginId, "restart");
    const place = second.headers.get("location") ?? "";
    assert.equal(place, first.headers.get("location"));
    const html = await (await jar.fetch(`${world.baseUrl}${place}`)).text();
    assert.equal(hooksOf(html).loginId, place.split("/").at(-1));
  }
  const stranger = await submit(openJar(), page.loginId, "restart");
  assert.equal(stranger.status, 404);
});

test("the same request is started again at most three times", async () => {
  let page: Pick<OpenPage, "jar" | "loginId"> = await openPage(world.baseUrl, world.client);
  await submit(page.jar, page.loginId, "show-code");
  for (let restarts = 0; restarts < 3; restarts += 1) {
    const response = await submit(page.jar, page.loginId, "restart");
    const loginId = response.headers.get("location")?.split("/").at(-1) ?? "";
    assert.notEqual(loginId, page.loginId);
    page = { jar: page.jar, loginId };
    const shown = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${loginId}`);
    const { session } = scan(hooksOf(await shown.text()).qr);
    assert.match(session, /^[\w-]+\.0\./, "its code stays, as that of the first");
  }
  assert.equal((await restartAtOnce(page, 3)).length, 0);
  await world.advance(world.ctx.config.loginLifetimeSeconds);
  const { failure, canRestart } = await statusOf(world.baseUrl, page);
  assert.deepEqual([failure, canRestart], ["expired", false]);
  const html = await (await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}`)).text();
  assert.match(html, /error=access_denied/, "the way back is on the page");
  assert.doesNotMatch(html.replaceAll(/<template[^]*?<\/template>/g, ""), /New code/);
});

test("a login that its person declined cannot be started again", async () => {
  const page = await openPage(world.baseUrl, world.client);
  assert.equal((await decline((await claimPage(page)).claimed)).status, 200);
  assert.equal((await restartAtOnce(page, 1)).length, 0);
});

test("a login that somebody else started sends its browser back to the client, and cannot be started again", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { secret: claimSecret, session, connection } = (await claimPage(page)).claimed;
  const refusal = { error: "access_denied", session, claimSecret, notStarted: true };
  assert.equal((await post(connection, refusal)).status, 200);
  const { failure, canRestart, location } = await statusOf(world.baseUrl, page);
  assert.deepEqual([failure, canRestart], ["not_started", false]);
  assert.equal(new URL(String(location)).searchParams.get("error"), "access_denied");
  assert.equal((await restartAtOnce(page, 1)).length, 0);
});

test("a login that was approved but ran out before its browser came is started again", async () => {
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, newIdentity());
  assert.equal((await restartAtOnce(page, 1)).length, 0, "while its code may still come");
  await world.advance(121);
  assert.equal((await submit(page.jar, page.loginId, "finish")).status, 409, "it comes no more");
  assert.equal((await statusOf(world.baseUrl, page))["canRestart"], true);
  assert.equal((await restartAtOnce(page, 1)).length, 1);
  assert.equal((await submit(page.jar, page.loginId, "finish")).status, 409);
});

test("a wallet that asks again for the answer to its claim gets it, also when the code has rotated meanwhile", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const identity = newIdentity();
  const scanned = scan(page.qr);
  const first = await tryClaim(scanned, identity);
  const object = await first.response.text();
  await world.advance(60);
  const again = await tryClaim(scanned, identity, first.secret);
  assert.equal(again.response.status, 200);
  assert.equal(await again.response.text(), object);
  for (const other of [
    await tryClaim(scanned, identity),
    await tryClaim(scanned, newIdentity(), first.secret),
  ])
    assert.equal(other.response.status, 410, "an old code claims nothing");
  assert.equal((await statusOf(world.baseUrl, page))["contested"], false);
});

test("a claim sent again gets its answer after the approval too, and any other one is told that it is taken", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { claimed, right } = await claimPage(page);
  const claimAgain = async (secret?: string): Promise<Response> =>
    (await tryClaim(claimed, claimed.identity, secret)).response;
  const assertAnswers = async (): Promise<void> => {
    assert.equal(await (await claimAgain(claimed.secret)).text(), claimed.object);
    assert.equal(await reasonOf(await claimAgain()), "already_claimed");
  };
  assert.equal((await approve(claimed, right)).status, 200);
  await assertAnswers();
  assert.ok((await finish(world.baseUrl, page)).searchParams.get("code"));
  await assertAnswers();
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "finished");
});

test("a refusal sent again, even at the same time, is confirmed, but only for the wallet that claimed", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { claimed, right } = await claimPage(page);
  const atOnce = await Promise.all(Array.from({ length: 4 }, async () => decline(claimed)));
  assert.deepEqual(new Set(atOnce.map(({ status }) => status)), new Set([200]));
  assert.equal((await decline(claimed)).status, 200);
  assert.equal(
    await reasonOf(await decline({ ...claimed, identity: newIdentity() })),
    "signature_wrong",
  );
  assert.equal(await reasonOf(await approve(claimed, right)), "login_over");
});

test("an approval sent again is confirmed, also when the browser has its code already", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { claimed, right, wrong } = await claimPage(page);
  assert.equal((await approve(claimed, right)).status, 200);
  assert.ok((await finish(world.baseUrl, page)).searchParams.get("code"));
  assert.equal((await approve(claimed, right)).status, 200);
  assert.equal((await approve(claimed, wrong)).status >= 400, true);
  const forged = { ...approvalOf(claimed, right), claimSecret: "A".repeat(43) };
  assert.equal((await post(claimed.connection, forged)).status, 403);
  assert.equal((await submit(page.jar, page.loginId, "finish")).status, 409, "the code comes once");
  const { session, connection, secret } = claimed;
  for (const [claimSecret, said] of [
    [secret, /approved already/],
    ["A".repeat(43), /has ended/],
  ] as const) {
    const late = await post(connection, { error: "access_denied", session, claimSecret });
    assert.equal(late.status, 409);
    assert.match(await late.text(), said, "who approved it, and nobody else, is told so");
  }
});

test("the button of the same device works on a page that was switched to a code that stays", async () => {
  for (const isClaimedFirst of [false, true]) {
    const page = await openPage(world.baseUrl, world.client);
    await submit(page.jar, page.loginId, "show-code");
    const html = await (
      await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}`)
    ).text();
    const scanned = scan(hooksOf(html).sameDevice);
    const identity = newIdentity();
    if (isClaimedFirst) {
      const { response } = await tryClaim(scanned, newIdentity());
      assert.equal(response.status, 200);
    } else {
      const returned = await page.jar.fetch(sameDeviceReturn(scanned, identity));
      assert.equal(returned.status, 303);
      const bare = await page.jar.fetch(
        new URL(returned.headers.get("location") ?? "", world.baseUrl).href,
      );
      assert.match(bare.headers.get("location") ?? "", /[?&]code=/);
    }
  }
});

test("a refusal on the same device counts only for the login it names", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { connection, session } = scan(page.sameDevice);
  for (const query of ["error=access_denied", "error=access_denied&session=another"])
    assert.equal((await page.jar.fetch(`${connection}?${query}`)).status, 404);
  const refused = await page.jar.fetch(`${connection}?error=access_denied&session=${session}`);
  const location = new URL(refused.headers.get("location") ?? "");
  assert.equal(location.searchParams.get("error"), "access_denied");
  assert.equal(location.searchParams.get("state"), "state-of-the-browser");
  assert.equal(location.searchParams.get("iss"), world.baseUrl);
});

test("a login that a wallet claimed by QR is refused by no link on the same device", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { connection, session } = scan(page.sameDevice);
  const { claimed, right } = await claimPage(page);
  const followed = await page.jar.fetch(`${connection}?error=access_denied&session=${session}`);
  assert.equal(followed.status, 409);
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "claimed");
  assert.equal((await approve(claimed, right)).status, 200);
});

/** Posts the result of a wallet that skips the claim. */
async function postUnclaimed(scanned: Scanned, identity: Identity): Promise<Response> {
  const { session, connection } = scanned;
  const digest = loginDigest({ session, connection, requester: "", code: "", object: zeroHash });
  const signature = signDigest(digest, identity.privateKey);
  return post(connection, { signature, session, svcID: identity.address });
}

async function reasonOf(response: Response): Promise<string> {
  return ((await response.json()) as { error: { reason: string } }).error.reason;
}

test("a result without a claim may be sent again, also when the code has rotated meanwhile, by its own wallet alone", async () => {
  const relaxed = await world.addClient({ numberMatching: false });
  const page = await openPage(world.baseUrl, relaxed);
  const [scanned, identity] = [scan(page.qr), newIdentity()];
  assert.equal((await postUnclaimed(scanned, identity)).status, 200);
  assert.equal((await postUnclaimed(scanned, identity)).status, 200);
  await world.advance(60);
  const again = await postUnclaimed(scanned, identity);
  assert.deepEqual([again.status, await again.json()], [200, { status: "approved" }]);
  assert.equal(await reasonOf(await postUnclaimed(scanned, newIdentity())), "code_expired");
  const forged = await postUnclaimed(scanned, { ...newIdentity(), address: identity.address });
  assert.equal(await reasonOf(forged), "code_expired");
  await finish(world.baseUrl, page);
  assert.equal((await postUnclaimed(scanned, identity)).status, 200);
  await world.advance(60);
  assert.equal(await reasonOf(await postUnclaimed(scanned, identity)), "login_over");
});

test("a result without a claim for a login that another wallet claimed is a second claim, and both sides are told", async () => {
  const relaxed = await world.addClient({ numberMatching: false });
  const page = await openPage(world.baseUrl, relaxed);
  const scanned = scan(page.qr);
  const claimed = await claim(scanned, newIdentity());
  const second = await postUnclaimed(scanned, newIdentity());
  assert.deepEqual([second.status, await reasonOf(second)], [409, "already_claimed"]);
  assert.equal((await statusOf(world.baseUrl, page))["contested"], true);
  assert.equal((await approve(claimed)).status, 200);
  assert.equal(await reasonOf(await postUnclaimed(scanned, newIdentity())), "login_over");
  assert.equal(await reasonOf(await postUnclaimed(scanned, claimed.identity)), "login_over");
});

/** Changes a login's row in a transaction that commits only once the begun calls wait for the row. */
async function whileHeld<Result>(
  loginId: string,
  { change, sessions }: { change: string; sessions: number },
  begin: () => Promise<Result>,
): Promise<Result> {
  const { under } = await world.ctx.db.transaction(async (tx) => {
    await tx.query({
      name: "",
      text: `update login set ${change} where id = $1`,
      values: [loginId],
    });
    const begun = begin();
    await untilBlocked(world.ctx.db, tx, sessions);
    return { under: begun };
  });
  return under;
}

test("two forms that finish a login in the same instant release one code", async () => {
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, newIdentity());
  const answers = await whileHeld(
    page.loginId,
    { change: "expires_at = expires_at", sessions: 2 },
    async () =>
      Promise.all([1, 2].map(async () => submit(page.jar.copy(), page.loginId, "finish"))),
  );
  const places = await Promise.all(answers.map(async (answer) => answer.text()));
  assert.equal(places.filter((text) => text.includes("code=")).length, 1, places.join());
});

test("a wallet that declines while its approval is taken is told that the login goes on", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { claimed } = await claimPage(page);
  const late = await whileHeld(
    page.loginId,
    { change: "status = 'approved'", sessions: 1 },
    async () => decline(claimed),
  );
  assert.equal(late.status, 409);
});
