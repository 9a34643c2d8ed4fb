// kill -9 of the service, and of its chain, at every step of founding a business, changing it and removing a member.
// One kill meets as many businesses, each at a step of its own, as one process can work on at once. Another process
// goes on, wallets repeat their calls, and everything has happened once and completely.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Address, decodeCharter } from "@svc/protocol";
import { http } from "viem";
import { loadWalletCalls } from "../../service/src/kyb/business/wallet-calls.ts";
import { advanceClock } from "../../service/src/platform/clock.ts";
import {
  type CrashPoint,
  type Gates,
  killAt,
  openGates,
  type Stop,
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
/** The changes here are of the rules, which leaves the charter as long as it was; a removal makes it shorter. */
const mirrored = (roster: "<" | "="): Omit<CrashPoint, "name"> => ({
  on: "update on business",
  when: `new.epoch > old.epoch and length(new.charter) ${roster} length(old.charter)`,
});

const foundingPoints = {
  invited: {
    name: "the invitation goes out",
    on: "insert on business",
    when: "true",
    isSeen: true,
  },
  signed: {
    name: "everybody has signed",
    on: "update on business",
    when: "old.status = 'inviting' and new.status = 'deploying'",
    isSeen: true,
  },
  // The outbox and the chain do the same with a transaction of any kind.
  mined: {
    name: "the chain takes the making of the wallet",
    on: "insert on embedded_transaction",
    when: "true",
  },
  active: {
    name: "the business is active",
    on: "update on business",
    when: "old.status = 'deploying' and new.status = 'active'",
  },
} satisfies Record<string, CrashPoint>;
const governancePoints = {
  proposed: {
    name: "a change is proposed",
    on: "insert on business_proposal",
    when: "true",
    isSeen: true,
  },
  voted: { name: "a member votes", on: "insert on ballot_vote", when: "true" },
  decided: {
    name: "the members have decided",
    on: "update on ballot",
    when: "new.status = 'approved'",
    isSeen: true,
  },
  sent: { name: "the change is signed", ...sent("business.govern") },
  mirrored: { name: "the roster follows", ...mirrored("=") },
} satisfies Record<string, CrashPoint>;
const removalPoints = {
  mirrored: { name: "the member leaves the roster", ...mirrored("<") },
} satisfies Record<string, CrashPoint>;
const points: readonly CrashPoint[] = [foundingPoints, governancePoints, removalPoints].flatMap(
  (each): CrashPoint[] => Object.values(each),
);

interface Stage {
  readonly world: KybWorld;
  readonly gates: Gates;
  /** Moves the time of all processes. */
  advance(seconds: number): Promise<void>;
  /** By how many seconds, in all. */
  advanced(): number;
  /** kill -9 of the service and of the chain that it ran. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** Retries while no process listens. */
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

/** Something that has to happen once although the service dies, and a check that it did. */
interface Promised extends Stop<void> {
  /** As worded in the name of a test. */
  readonly promise: string;
  check(): Promise<void>;
}

const told = ({ promise, point }: Promised): string =>
  `${promise} where the service dies ${whenOf(point)} it commits that ${point.name}`;

/** Kills the service at all these points at once, starts another process, and checks how each work ends. */
async function dieAt(stage: Stage, stops: readonly Promised[]): Promise<void> {
  const over = await killAt(stage.gates, stops, async () => stage.kill());
  await stage.start();
  await Promise.all(over);
  for (const stop of stops) await stop.check();
}

async function voteOf({ world }: Stage, name: string, id: string): Promise<void> {
  // Read before the retries: a vote that was stored, but whose answer was lost, has left the inbox.
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

/** Checks that the row, the roster and the contract agree. */
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

/** Founds a business. @returns its address */
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

/** Alice proposes, unless her proposal is open already, its answer having been lost. @returns the proposal's id */
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

function founding(stage: Stage, point: CrashPoint): Promised {
  let address: Address | null = null;
  return {
    point,
    promise: "the business is founded once",
    async work() {
      address = await found(stage);
    },
    async check() {
      assert.ok(address !== null);
      await assertWhole(stage, address, 0);
      assert.equal(await countOf(stage, "business.create", address), 1);
    },
  };
}

/** @param at the business, and its epoch before the change */
function change(
  stage: Stage,
  point: CrashPoint,
  at: { address: Address; epoch: number },
): Promised {
  const { address, epoch } = at;
  const roster = members.map((name) => ({
    address: stage.world.person(name).address,
    name,
    votingRights: true,
  }));
  let id = "";
  return {
    point,
    promise: "the change is made once",
    async work() {
      const rules = { data_requests: epoch % 2 === 0 ? "UNANIMOUS" : "MAJORITY" };
      const request = { operation: "changeCharter", members: roster, rules };
      id = await govern(stage, address, request);
      await reachEpoch(stage, address, epoch + 1);
    },
    async check() {
      await assertWhole(stage, address, epoch + 1);
      assert.equal(await countOf(stage, "business.govern", id), 1);
      const { proposals } = await look(stage, address);
      assert.deepEqual(
        proposals.filter(({ status }) => status === "open" || status === "relaying"),
        [],
      );
    },
  };
}

function removal(stage: Stage, point: CrashPoint, address: Address): Promised {
  const { world } = stage;
  const member = world.person("carol").address;
  return {
    point,
    promise: "the member is removed once",
    async prepare() {
      await govern(stage, address, { operation: "startRemoval", member });
      await world.until("the removal is shown", async () => (await look(stage, address)).removal);
      await stage.advance(29 * 86_400);
      assert.equal((await look(stage, address)).removal?.member, member);
    },
    async work() {
      await stage.advance(2 * 86_400);
      await reachEpoch(stage, address, 1);
    },
    async check() {
      await assertWhole(stage, address, 1);
      assert.equal(await countOf(stage, "business.remove", address), 1);
    },
  };
}

/** The steps that each kill meets: the outbox can only be inside one at a time. */
function killsOf(stage: Stage, businesses: readonly Address[]): Promised[][] {
  const [a, b, c, d, e] = businesses;
  assert.ok(a !== undefined && b !== undefined && c !== undefined);
  assert.ok(d !== undefined && e !== undefined);
  return [
    [
      founding(stage, foundingPoints.invited),
      founding(stage, foundingPoints.signed),
      change(stage, governancePoints.proposed, { address: a, epoch: 0 }),
      change(stage, governancePoints.voted, { address: b, epoch: 0 }),
      change(stage, governancePoints.decided, { address: c, epoch: 0 }),
      change(stage, governancePoints.sent, { address: d, epoch: 0 }),
    ],
    [founding(stage, foundingPoints.active), removal(stage, removalPoints.mirrored, e)],
    [
      founding(stage, foundingPoints.mined),
      change(stage, governancePoints.mirrored, { address: a, epoch: 1 }),
    ],
  ];
}

async function openStage(stack: AsyncDisposableStack, world: KybWorld): Promise<Stage> {
  const databaseUrl = world.ctx.config.databaseUrl ?? "";
  await world.service.close();
  const ctx = stack.use(await openContextOf(databaseUrl));
  const gates = stack.use(await openGates(databaseUrl, { points, processName, isEndless: true }));
  const port = Number(new URL(world.baseUrl).port);
  const start = async (): Promise<ServerProcess> =>
    stack.use(await world.startProcess({ PGAPPNAME: processName }, { port }));
  let server = await start();
  let advanced = 0;
  return {
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
}

/** Kills the chain's node, unless it has ended with its owner. */
function killChain(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ESRCH");
  }
}

test("a business survives kill -9 at every step: what was not written is done again by another process, what was is not", async (t) => {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await openKybWorld());
  const others = await Promise.all(Array.from({ length: 4 }, async () => world.found()));
  const businesses = [world.business, ...others].map(({ address }) => address);
  const stage = await openStage(stack, world);
  const kills = killsOf(stage, businesses);
  assert.deepEqual(new Set(kills.flat().map(({ point }) => point)), new Set(points));
  for (const stops of kills)
    await t.test(stops.map(told).join(", and "), async () => dieAt(stage, stops));
  // The chain has come back since then.
  const [shrunk] = businesses.slice(-1);
  assert.ok(shrunk !== undefined);
  await assertWhole(stage, shrunk, 1);
  const { charter } = await chainOf(stage, shrunk);
  const member = world.person("carol").address;
  assert.ok(!charter.includes(member.slice(2)), "whoever was removed stays removed");
});
