// Every process is told of what a wallet did as soon as it is committed, not only when it looks again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  type Notifications,
  openNotifications,
} from "../../service/src/platform/database/notifications.ts";
import { approveByQr, openPage } from "../login-flow.ts";
import { until } from "../patience.ts";
import { newIdentity, post, sameDeviceReturn, scan, unclaimedAnswer } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

/** Collects what is told of logins. */
async function follow(notifications: Pick<Notifications, "subscribe">): Promise<string[]> {
  const news: string[] = [];
  await notifications.subscribe("login", (payload) => void news.push(payload));
  return news;
}

/** The news of one login, once there are so many of them. */
async function newsOf(news: readonly string[], loginId: string, count: number): Promise<string[]> {
  return until(`${count} news of the login`, async () => {
    const own = news.filter((each) => each.startsWith(loginId));
    return own.length >= count ? own.map((each) => each.slice(loginId.length)) : null;
  });
}

async function logInEveryWay(news: readonly string[]): Promise<void> {
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, newIdentity());
  assert.deepEqual(await newsOf(news, page.loginId, 2), ["", " approved"], "scanned");
  const near = await openPage(world.baseUrl, world.client);
  const back = await near.jar.fetch(sameDeviceReturn(scan(near.sameDevice), newIdentity()));
  assert.ok(back.status < 400);
  assert.deepEqual(await newsOf(news, near.loginId, 1), [""], "on the same device");
  const relaxed = await openPage(world.baseUrl, await world.addClient({ numberMatching: false }));
  const scanned = scan(relaxed.qr);
  const answered = await post(scanned.connection, unclaimedAnswer(scanned, newIdentity()));
  assert.equal(answered.status, 200);
  assert.deepEqual(await newsOf(news, relaxed.loginId, 1), [" approved"], "without a claim");
}

test("a process that is alone is told of each claim and approval", async () => {
  await logInEveryWay(await follow(world.ctx.notifications));
});

test("two processes are both told of each claim and approval of one of them", async () => {
  await using other = await openNotifications(world.ctx.db, { onFault: assert.ifError });
  const [near, far] = [await follow(world.ctx.notifications), await follow(other)];
  await logInEveryWay(far);
  await logInEveryWay(near);
});
