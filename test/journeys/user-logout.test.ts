// `svc user logout`: what somebody approved ends too, wherever it had come to.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sql } from "../../service/src/platform/database/db.ts";
import { actAs, checkAskedNoMore, logInFor, openBusinessPage } from "../business-login.ts";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";
import { approveByQr, finish, logIn, openPage, statusOf, type Tokens } from "../login-flow.ts";
import { newIdentity, openWalletSession } from "../raw-wallet.ts";
import { logOutAll, logOutUser, showUser } from "../operator-verbs.ts";

let world: KybWorld;
before(async () => {
  world = await openKybWorld();
});
after(async () => world[Symbol.asyncDispose]());

async function told(verb: Promise<[status: number, said: string]>): Promise<object> {
  const [status, said] = await verb;
  assert.equal(status, 0, said);
  return JSON.parse(said) as object;
}

const logOut = async (address: string): Promise<object> => told(logOutUser(world, address));

async function isLive({ access_token: token }: Tokens): Promise<boolean> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${world.baseUrl}/userinfo`, { headers })).status === 200;
}

test("a login that was approved and has no code yet ends, and its page leads back to the client", async () => {
  const identity = newIdentity();
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, identity);
  const loggedOut = identity.address;
  const none = { sessions: 0, offline: 0, walletSessions: 0 };
  assert.deepEqual(await logOut(loggedOut), { loggedOut, ...none, unfinished: 1 });
  const state = await statusOf(world.baseUrl, page);
  assert.equal(state["failure"], "declined");
  assert.match(String(state["location"]), /[?&]error=access_denied/);
  await assert.rejects(finish(world.baseUrl, page), /answered 409/);
  assert.deepEqual(await logOut(loggedOut), { loggedOut, ...none, unfinished: 0 });
});

test("a member is logged out for its business too, and what it asked the others ends", async () => {
  const business = await world.found({ members: ["rea", "sam", "tom"] });
  const { tokens } = await logInFor(world, { business, voters: ["rea", "sam"] });
  assert.equal(await isLive(tokens), true);
  const shown = { businesses: [{}], ...(await told(showUser(world, world.person("rea").address))) };
  const [seat] = shown.businesses;
  assert.deepEqual(
    { ...seat, joinedAt: 0 },
    { address: business.address, status: "active", isVoting: true, joinedAt: 0 },
  );
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "rea", business });
  const item = await world.findVote("sam", page.loginId);
  await logOut(world.person("rea").address);
  assert.equal(await isLive(tokens), false);
  assert.equal((await statusOf(world.baseUrl, page))["failure"], "declined");
  await checkAskedNoMore(world, { item, acting: { name: "rea", business } });
});

test("everybody is logged out, in pages, after a rehearsal that changes nothing", async () => {
  const { tokens } = await logIn(world.baseUrl, world.client, newIdentity());
  const session = await openWalletSession(world.baseUrl, newIdentity());
  // More sessions than fit on a page.
  await world.ctx.db.query(sql`
    insert into wallet_session (token_sha256, user_address, challenge_sha256, created_at, expires_at)
    select sha256(n::text::bytea), '0x' || lpad(to_hex(n), 40, '0'), sha256(n::text::bytea), 1, ${world.ctx.clock.now() + 600}
    from generate_series(1, 101) n`);
  const isOpen = async (): Promise<boolean> =>
    (await fetch(`${world.baseUrl}/w/logins`, { headers: session })).status === 200;
  const foreseen = await told(logOutAll(world, ["--dry-run"]));
  assert.deepEqual([await isLive(tokens), await isOpen()], [true, true]);
  const { loggedOut, ...counts } = { loggedOut: "", ...(await told(logOutAll(world))) };
  assert.equal(loggedOut, "everybody");
  assert.deepEqual(foreseen, { wouldLogOut: loggedOut, ...counts });
  assert.deepEqual([await isLive(tokens), await isOpen()], [false, false]);
  const none = { users: 0, sessions: 0, offline: 0, unfinished: 0, walletSessions: 0 };
  assert.deepEqual(await told(logOutAll(world)), { loggedOut, ...none });
  const { users, walletSessions } = { users: 0, walletSessions: 0, ...counts };
  assert.ok(users >= 103 && walletSessions >= 102, JSON.stringify(counts));
});

test("somebody whose last session ends meanwhile keeps nobody else logged in", async () => {
  const now = world.ctx.clock.now();
  const [first, gone] = [1, 2].map((each) => `0x${String(each).padStart(40, "0")}`);
  await world.ctx.db.query(sql`
    insert into wallet_session (token_sha256, user_address, challenge_sha256, created_at, expires_at)
    select sha256(address::bytea), address, sha256(address::bytea), 1, ${now + 600}
    from unnest(${[first, gone]}::text[]) address`);
  // The second user's session disappears when the first user's is ended.
  await world.ctx.db.query(sql`
    create function go() returns trigger language plpgsql as $$ begin
      delete from wallet_session where user_address = '0x' || lpad('2', 40, '0'); return null; end $$`);
  await world.ctx.db.query(sql`
    create trigger go after update on wallet_session for each row when (new.user_address = '0x' || lpad('1', 40, '0')) execute function go()`);
  const counts = { users: 0, ...(await told(logOutAll(world))) };
  assert.ok(counts.users >= 1);
  assert.deepEqual(
    await world.ctx.db.query(
      sql`select from wallet_session where expires_at > ${world.ctx.clock.now()}`,
    ),
    [],
  );
});
