// Logins for a business that are given up while their acting member approves, on two processes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cancelBallot } from "../../service/src/kyb/index.ts";
import { lockBusiness } from "../../service/src/kyb/business/business-store.ts";
import { setVotingRights } from "../../service/src/kyb/business/roster-store.ts";
import {
  deleteOpenLogin,
  holdSeat,
} from "../../service/src/login/business/business-login-store.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { answerOf, openBusinessPage, takeTokens } from "../business-login.ts";
import { openKybWorld } from "../kyb-world.ts";
import { statusOf } from "../login-flow.ts";
import { claim, decline, post, scan } from "../raw-wallet.ts";

await using world = await openKybWorld();
await using other = await world.startProcess();
const acting = { name: "alice" };

async function countOf(text: string, values: unknown[] = []): Promise<number> {
  const [row] = await world.ctx.db.query<{ n: number }>({
    name: "",
    text: `select count(*)::int as n from ${text}`,
    values,
  });
  return row?.n ?? -1;
}

const countWaiting = async (): Promise<number> =>
  countOf("pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'");

await test("the first approval of an acting member does not wait for another one of it that is under way", async () => {
  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.qr), world.person("alice"));
  const body = await answerOf(world, page, { claimed, acting });
  const of = { business: world.business.address, member: world.person("alice").address };
  const answered = await world.ctx.db.transaction(async (tx) => {
    await holdSeat(tx, { ...of, environment: "live" });
    return post(claimed.connection, body);
  });
  assert.deepEqual(await answered.json(), { status: "waiting" });
  await world.voteAs("bob", page.loginId);
  await takeTokens(world, page);
});

await test("a member that loses its vote while its approval waits for the business does not act", async () => {
  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.qr), world.person("alice"));
  const body = await answerOf(world, page, { claimed, acting });
  const { address } = world.business;
  const voters = ["alice", "bob", "carol"].map((name) => world.person(name).address);
  const { answer } = await world.ctx.db.transaction(async (tx) => {
    await lockBusiness(tx, address);
    await setVotingRights(tx, address, voters.slice(1));
    const approval = post(claimed.connection, body);
    while ((await countWaiting()) < 1);
    return { answer: approval };
  });
  const { error } = (await (await answer).json()) as { error: { reason: string } };
  assert.equal(error.reason, "not_a_member");
  await setVotingRights(world.ctx.db, address, voters);
});

/** A login that its wallet declines on one process while its approval on the other waits for the member's one place. */
async function declineDuringApproval(): Promise<{ loginId: string; failure: unknown }> {
  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.qr), world.person("alice"));
  const body = await answerOf(world, page, { claimed, acting });
  const connection = claimed.connection.replace(world.baseUrl, other.url);
  const { approved, declined } = await world.ctx.db.transaction(async (tx) => {
    const place = [world.person("alice").address, world.business.address];
    const text = "insert into business_login values ('held', $1, $2, '', 0)";
    await tx.query({ name: "", text, values: place });
    const approval = post(connection, body);
    while ((await countWaiting()) < 1);
    const refusal = decline(claimed);
    while ((await countWaiting()) < 2);
    return { approved: approval, declined: refusal };
  });
  assert.deepEqual([(await approved).status, (await declined).status], [200, 200]);
  const { failure } = await statusOf(world.baseUrl, page);
  return { loginId: page.loginId, failure };
}

await test("a login that is declined while its acting member approves asks nobody, and the member begins another", async () => {
  const { loginId, failure } = await declineDuringApproval();
  assert.equal(failure, "declined");
  assert.ok((await world.inboxOf("bob")).every(({ id }) => id !== loginId));
  assert.equal(await countOf("business_login where login_id = $1", [loginId]), 0);
  assert.equal(await countOf("ballot where id = $1 and status = 'open'", [loginId]), 0);

  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.qr), world.person("alice"));
  const response = await post(claimed.connection, await answerOf(world, page, { claimed, acting }));
  assert.deepEqual(await response.json(), { status: "waiting" });
  await world.voteAs("bob", page.loginId);
  await takeTokens(world, page);
});

await test("a vote on a login that ends while a member reads its inbox is not shown there without what it asks", async () => {
  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.qr), world.person("alice"));
  await post(claimed.connection, await answerOf(world, page, { claimed, acting }));
  await world.findVote("bob", page.loginId);
  const { inbox } = await world.ctx.db.transaction(async (tx) => {
    await tx.query(sql`lock table business_login in access exclusive mode`);
    const reading = world.inboxOf("bob");
    const isReading =
      "pg_stat_activity where wait_event_type = 'Lock' and query like '%join login on%'";
    while ((await countOf(isReading)) < 1);
    await cancelBallot(world.ctx, tx, page.loginId);
    await deleteOpenLogin(tx, page.loginId);
    return { inbox: reading };
  });
  assert.deepEqual(await inbox, []);
});
