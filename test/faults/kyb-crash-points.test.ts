// kill -9 of the service, and of its chain, at every step by which a business comes to be, changes and removes a member.
// Another process goes on, wallets ask again, and everything has happened once and wholly.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Address, decodeCharter } from "@svc/protocol";
import { http } from "viem";
import { loadWalletCalls } from "../../service/src/kyb/business/wallet-calls.ts";
import { advanceClock } from "../../service/src/platform/clock.ts";
import {
  type CrashPoint,
  type Gates,
  type GateTime,
  openGates,
  pointsAt,
  whenOf,
} from "../crash-gates.ts";
import { nodePid, openContextOf } from "../embedded-chain.ts";
import { type InboxItem, type KybWorld, openKybWorld } from "../kyb-world.ts";
import type { ServerProcess } from "../world.ts";
import { patienceMs } from "../patience.ts";

const processName = "svc-under-test";
const members = ["alice", "bob", "carol"] as const;

const sent = (kind: string): Omit<CrashPoint, "name"> => ({
  on: "update on chain_transaction",
  when: `new.status = 'sent' and old.status = 'queued' and new.kind = '${kind}'`,
});
const mined = { on: "insert on embedded_transaction", when: "true" };
const mirrored = { on: "update on business", when: "new.epoch > old.epoch" };

const foundingPoints: readonly CrashPoint[] = [
  { name: "the invitation goes out", on: "insert on business", when: "true", isSeen: true },
  {
    name: "everybody has signed",
    on: "update on business",
    when: "old.status = 'inviting' and new.status = 'deploying'",
    isSeen: true,
  },
  { name: "the chain takes the making of the wallet", ...mined },
  {
    name: "the business is active",
    on: "update on business",
    when: "old.status = 'deploying' and new.status = 'active'",
  },
];
const governancePoints: readonly CrashPoint[] = [
  { name: "a change is proposed", on: "insert on business_proposal", when: "true", isSeen: true },
  { name: "a member votes", on: "insert on ballot_vote", when: "true" },
  {
    name: "the members have decided",
    on: "update on ballot",
    when: "new.status = 'approved'",
    isSeen: true,
  },
  { name: "the change is signed", ...sent("business.govern") },
  { name: "the chain takes the change", ...mined },
  { name: "the roster follows", ...mirrored },
];
const removalPoints: readonly CrashPoint[] = [
  { name: "the chain takes the end of a removal", ...mined },
  { name: "the member leaves the roster", ...mirrored },
];
const points = [...foundingPoints, ...governancePoints, ...removalPoints];

interface Stage {
  readonly time: GateTime;
  readonly world: KybWorld;
  readonly gates: Gates;
  /** Moves the time of all processes. */
  advance(seconds: number): Promise<void>;
  /** By how much, in all. */
  advanced(): number;
  /** kill -9 of the service and of the chain that it ran. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** Goes on asking while nobody answers. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isAway = error instanceof TypeError && error.message === "fetch failed";
      if (!isAway || performance.now() > deadline) throw error;
      await delay(50);
    }
  }
}

/** The service dies at the point that the work comes by, another process goes on, and the work ends. */
async function dieAt(stage: Stage, point: CrashPoint, work: () => Promise<void>): Promise<void> {
  const { gates } = stage;
  await gates.close(point);
  const over = work();
  over.catch(() => undefined);
  await gates.untilReached(point);
  await stage.kill();
  await gates.open(point);
  await stage.start();
  await over;
}

async function voteOf({ world }: Stage, name: string, id: string): Promise<void> {
  // The item is read once: a vote that was taken though nobody was told has left the inbox.
  const item: InboxItem = await patiently(async () => world.findVote(name, id));
  const { status, body } = await patiently(async () => world.voteAs(name, id, { item }));
  assert.equal(status, 200, JSON.stringify(body));
}

async function chainOf({ world }: Stage, address: Address) {
  const { ctx, baseUrl } = world;
  const relay = http(`${baseUrl}/w/chain`)({});
  const request = async (method: string, params?: readonly unknown[]): Promise<unknown> =>
    relay.request({ method, params });
  const calls = await loadWalletCalls();
  return calls.read(
    { ...ctx, chain: { ...ctx.chain, node: { ...ctx.chain.node, request } } },
    address,
  );
}

/** The row, the roster and the wallet say the same. */
async function assertWhole(stage: Stage, address: Address, epoch: number): Promise<void> {
  const state = await chainOf(stage, address);
  const [row] = await stage.gates.query<{
    status: string;
    charter: Buffer;
    epoch: number;
    roster: string[];
  }>(
    `select status, charter, epoch::int, array(select member from business_member where business = address
      order by member) as roster from business where address = $1`,
    [address],
  );
  assert.ok(row !== undefined);
  assert.deepEqual([row.status, row.epoch, state.epoch], ["active", epoch, epoch]);
  assert.equal(`0x${row.charter.toString("hex")}`, state.charter);
  const charter = decodeCharter(state.charter);
  assert.deepEqual(
    row.roster,
    charter?.members.map((member) => member.address),
  );
}

async function countOf({ gates }: Stage, kind: string, subject: string): Promise<number> {
  const rows = await gates.query(
    `select 1 from chain_transaction where kind = $1 and subject_id like $2 and status = 'succeeded'`,
    [kind, `${subject}%`],
  );
  return rows.length;
}

/** @returns its address */
async function found(stage: Stage): Promise<Address> {
  const { world } = stage;
  const deadline = world.ctx.clock.now() + stage.advanced() + 3600;
  const changed = { salt: `0x${randomBytes(32).toString("hex")}`, deadline };
  const asked = await patiently(async () => world.askFounding({ members, changed }));
  const { invitationId: id, address } = asked.body as { invitationId: string; address: Address };
  for (const name of members.slice(1)) await voteOf(stage, name, id);
  await patiently(async () =>
    world.until("it is active", async () =>
      (await world.businessOf("alice", address))["status"] === "active" ? true : null,
    ),
  );
  return address;
}

interface Seen {
  epoch: number;
  removal: { member: string } | null;
  proposals: { id: string; status: string }[];
}
const look = async ({ world }: Stage, address: Address): Promise<Seen> =>
  (await world.businessOf("alice", address)) as unknown as Seen;

/** Alice proposes, and looks first whether she has: who was not told asks again. @returns the proposal's id */
async function govern(
  stage: Stage,
  address: Address,
  request: Record<string, unknown>,
): Promise<string> {
  const { world } = stage;
  const id = await patiently(async () => {
    const open = (await look(stage, address)).proposals.find(({ status }) => status === "open");
    if (open !== undefined) return open.id;
    const path = `/w/businesses/${address}/proposals`;
    const { status, body } = await world.walletCall("alice", "POST", path, { body: request });
    assert.equal(status, 201, JSON.stringify(body));
    return String(body["proposalId"]);
  });
  for (const name of ["alice", "bob"]) await voteOf(stage, name, id);
  return id;
}

async function reachEpoch(stage: Stage, address: Address, epoch: number): Promise<void> {
  await patiently(async () =>
    stage.world.until(`epoch ${epoch}`, async () =>
      (await look(stage, address)).epoch === epoch ? true : null,
    ),
  );
}

async function dieWhileFounding(t: TestContext, stage: Stage): Promise<Address> {
  let last: Address | null = null;
  for (const point of pointsAt(foundingPoints, stage.time))
    await t.test(
      `the business is founded once where the service dies ${whenOf(stage.time)} it commits that ${point.name}`,
      async () => {
        await dieAt(stage, point, async () => {
          last = await found(stage);
        });
        assert.ok(last !== null);
        await assertWhole(stage, last, 0);
        assert.equal(await countOf(stage, "business.create", last), 1);
      },
    );
  assert.ok(last !== null);
  return last;
}

async function dieWhileGoverning(t: TestContext, stage: Stage, address: Address): Promise<void> {
  const roster = members.map((name) => ({
    address: stage.world.person(name).address,
    name,
    votingRights: true,
  }));
  for (const [at, point] of pointsAt(governancePoints, stage.time).entries())
    await t.test(
      `the change is made once where the service dies ${whenOf(stage.time)} it commits that ${point.name}`,
      async () => {
        const rules = { data_requests: at % 2 === 0 ? "UNANIMOUS" : "MAJORITY" };
        const request = { operation: "changeCharter", members: roster, rules };
        let id = "";
        await dieAt(stage, point, async () => {
          id = await govern(stage, address, request);
          await reachEpoch(stage, address, at + 1);
        });
        await assertWhole(stage, address, at + 1);
        assert.equal(await countOf(stage, "business.govern", id), 1);
        const { proposals } = await look(stage, address);
        assert.deepEqual(
          proposals.filter(({ status }) => status === "open" || status === "relaying"),
          [],
        );
      },
    );
}

async function dieWhileRemoving(t: TestContext, stage: Stage): Promise<void> {
  const { world } = stage;
  const member = world.person("carol").address;
  const businesses: Address[] = [];
  for (const point of pointsAt(removalPoints, stage.time))
    await t.test(
      `the member is removed once where the service dies ${whenOf(stage.time)} it commits that ${point.name}`,
      async () => {
        const address = await found(stage);
        businesses.push(address);
        await govern(stage, address, { operation: "startRemoval", member });
        await world.until("the removal is shown", async () => (await look(stage, address)).removal);
        await stage.advance(29 * 86_400);
        assert.equal((await look(stage, address)).removal?.member, member);
        await dieAt(stage, point, async () => {
          await stage.advance(2 * 86_400);
          await reachEpoch(stage, address, 1);
        });
        await assertWhole(stage, address, 1);
        assert.equal(await countOf(stage, "business.remove", address), 1);
      },
    );
  if (businesses.length === 0) return;
  await stage.kill();
  await stage.start();
  for (const address of businesses) {
    await assertWhole(stage, address, 1);
    const { charter } = await chainOf(stage, address);
    assert.ok(!charter.includes(member.slice(2)), "whoever was removed stays removed");
  }
}

/** One service after another, each of which dies. */
async function dieEverywhere(t: TestContext, time: GateTime): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await openKybWorld());
  const databaseUrl = world.ctx.config.databaseUrl ?? "";
  await world.service.close();
  const ctx = stack.use(await openContextOf(databaseUrl));
  const gates = stack.use(await openGates(databaseUrl, { points, time, processName }));
  const port = Number(new URL(world.baseUrl).port);
  const start = async (): Promise<ServerProcess> =>
    stack.use(await world.startProcess({ PGAPPNAME: processName }, { port }));
  let server = await start();
  let advanced = 0;
  const stage: Stage = {
    time,
    world,
    gates,
    async advance(seconds) {
      advanced += seconds;
      await advanceClock(ctx.db, seconds);
    },
    advanced: () => advanced,
    async kill() {
      const chain = await nodePid({ ctx });
      await server.kill();
      killChain(chain);
    },
    async start() {
      server = await start();
    },
  };
  const address = await dieWhileFounding(t, stage);
  await dieWhileGoverning(t, stage, address);
  await dieWhileRemoving(t, stage);
}

/** It may have ended with its owner. */
function killChain(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ESRCH");
  }
}

test("a business survives kill -9 at every step", { concurrency: true }, async (t) => {
  const before = t.test(
    "a step that is killed before it is written is done again, by another process",
    (each) => dieEverywhere(each, "statement"),
  );
  const after = t.test(
    "a step that is killed after it is written and before anybody is told is not done again",
    (each) => dieEverywhere(each, "commit"),
  );
  await Promise.all([before, after]);
});
