import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { businessWallet } from "@svc/contracts";
import { type Address, type CharterMember, encodeCharter, type Hex } from "@svc/protocol";
import { type Abi, decodeFunctionData, encodeFunctionResult } from "viem";
import { openTestContext } from "../../../../test/test-context.ts";
import { AnswerTooLong, NodeAway, RpcError } from "../../chain/index.ts";
import { untilBlocked } from "../../../../test/lock-waits.ts";
import { advanceClock } from "../../platform/clock.ts";
import { sql } from "../../platform/database/db.ts";
import { holdBusiness } from "./business-store.ts";
import { watchWallets } from "./chain-watch.ts";
import { kybJobs } from "../jobs.ts";
import type { KybContext } from "../kyb-context.ts";
import { listProposals, noteRefusedProposal } from "./proposal-store.ts";
import { followChain } from "./roster.ts";
import { findWatchedBlock, requestLook } from "./roster-store.ts";

await using opened = await openTestContext();

const business: Address = `0x${"ab".repeat(20)}`;
const anna: CharterMember = { address: `0x${"0a".repeat(20)}`, isVoting: true };
const bela: CharterMember = { address: `0x${"0b".repeat(20)}`, isVoting: true };
const rules = {
  signature_requests: "MAJORITY",
  data_requests: "MAJORITY",
  governance: "UNANIMOUS",
} as const;
const charterOf = (...members: CharterMember[]) => encodeCharter({ rules, members });

/** The block in which Bela leaves. */
const changedIn = 10;

/** The newest block of the node that answers each exchange, in turn; the last one answers all further exchanges. */
let heads: readonly number[] = [];
let exchange: Promise<number> | null = null;

/** The number of requests in this turn of the event loop, and the most in any. */
let [asked, askedMost] = [0, 0];

/** All requests of one turn go to one node. @returns its newest block */
async function ask(): Promise<number> {
  if (isAway) throw new NodeAway("the node did not answer");
  asked += 1;
  askedMost = Math.max(askedMost, asked);
  exchange ??= new Promise((resolve) => {
    setImmediate(() => {
      const [head = 0, ...later] = heads;
      if (later.length > 0) heads = later;
      asked = 0;
      exchange = null;
      resolve(head);
    });
  });
  return exchange;
}

/** What the wallet answers to a call: before the change, or after it. */
function answer(data: Hex, hasChanged: boolean): Hex {
  const abi: Abi = businessWallet.abi;
  const { functionName } = decodeFunctionData({ abi, data });
  const encode = (result: unknown): Hex => encodeFunctionResult({ abi, functionName, result });
  const zero = `0x${"00".repeat(20)}`;
  if (functionName === "charter")
    return encode(hasChanged ? charterOf(anna) : charterOf(anna, bela));
  if (functionName === "removal") return encode([zero, 0, 0]);
  if (functionName === "successor") return encode(zero);
  return encode(hasChanged ? 1n : 0n);
}

const ownChainId = 31_999;
let chainId = ownChainId;

/** A block with more events than a node returns. */
let fullBlock = Infinity;
let fullFault: Error = new Error();

let isAway = false;
const alarms: string[] = [];

/** Called while a wallet is read. */
let whileAsked = async (): Promise<void> => undefined;

/** Two nodes behind one address, of which one may lag. */
const chain = {
  isEmbedded: false,
  confirmations: 1,
  chainId: ownChainId,
  metrics: { raise: (alarm: string) => void alarms.push(alarm) },
  node: {
    readChainId: async () => {
      await ask();
      return chainId;
    },
    request: async (method: string, [call, block]: readonly unknown[] = []) => {
      const head = await ask();
      if (method === "eth_blockNumber") return `0x${head.toString(16)}`;
      if (method === "eth_call") await whileAsked();
      const hasChanged = Math.min(head, Number(block)) >= changedIn;
      if (method === "eth_call") return answer((call as { data: Hex }).data, hasChanged);
      const { fromBlock, toBlock } = call as { fromBlock: string; toBlock: string };
      if (Number(fromBlock) <= fullBlock && fullBlock <= Number(toBlock)) throw fullFault;
      const isAsked = Number(fromBlock) <= changedIn && changedIn <= Number(toBlock);
      return head >= changedIn && isAsked ? [{ address: business }] : [];
    },
  },
};
const ctx = Object.assign(opened, {
  chain,
  endBusinessLogins: async () => undefined,
}) as unknown as KybContext;

const isLookDue = async (): Promise<boolean> =>
  (await ctx.db.query(sql`select from business where look_due_at is not null`)).length === 1;

/** Runs the jobs after so many seconds. @returns how many members the business then has */
async function followFor(seconds: number): Promise<number> {
  await advanceClock(ctx.db, seconds);
  await opened.clock.refresh();
  await watchWallets(ctx);
  await followChain(ctx);
  return countMembers();
}

const countMembers = async (): Promise<number> =>
  (await ctx.db.query(sql`select from business_member where business = ${business}`)).length;

/** Resets the business to its state before the change, with all blocks until then read. */
async function begin(): Promise<void> {
  await ctx.db.query(sql`delete from business_proposal`);
  await ctx.db.query(sql`delete from business_member`);
  await ctx.db.query(sql`delete from business`);
  await ctx.db.query(sql`delete from business_watch`);
  await insertBusiness(business);
  for (const { address } of [anna, bela])
    await ctx.db.query(
      sql`insert into business_member (id, business, member, name_sealed, is_voting, is_creator, joined_at)
        values (${randomUUID()}, ${business}, ${address}, ${Buffer.alloc(1)}, true, false, 0)`,
    );
  heads = [changedIn - 1];
  assert.equal(await followFor(0), 2);
}

const insertBusiness = async (address: Address): Promise<unknown> =>
  ctx.db.query(
    sql`insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      values (${address}, 'live', 'Test Ltd', 'active', ${anna.address}, ${address}, 0, ${Buffer.alloc(32)},
        ${Buffer.from(charterOf(anna, bela).slice(2), "hex")}, 0)`,
  );

await test("a member who was voted out is removed even if the node of the wallet gets the block later than that of the events", async () => {
  await begin();
  heads = [changedIn, changedIn, changedIn - 1];
  assert.equal(await followFor(5), 2);
  heads = [changedIn];
  assert.equal(await followFor(30), 1);
});

await test("a member who was voted out is removed even if the node of the events gets the block later than another", async () => {
  await begin();
  heads = [changedIn, changedIn - 1];
  assert.equal(await followFor(5), 2);
  heads = [changedIn];
  assert.equal(await followFor(5), 1);
});

await test("the state of a wallet at a lagging node is not taken for that of a later block", async () => {
  await begin();
  heads = [changedIn, changedIn, changedIn, changedIn - 1, changedIn];
  assert.equal(await followFor(5), 1);
});

await test("members and events at a lagging node do not count before they are final there", async () => {
  await begin();
  await requestLook(ctx.db, business);
  chain.confirmations = 3;
  // Both nodes have this block, but only the lagging one has the change in it: the other has replaced the block.
  for (const follow of [watchWallets, followChain]) {
    heads = [changedIn + 2, changedIn];
    await follow(ctx);
  }
  chain.confirmations = 1;
  assert.equal(await findWatchedBlock(ctx.db), changedIn - 1);
  assert.equal(await countMembers(), 2);
});

await test("the calls for many wallets at once fit into one batch, so that one node answers them", async () => {
  await begin();
  const others = Array.from(
    { length: 20 },
    (_, at): Address => `0x${String(at).padStart(40, "0")}`,
  );
  for (const address of others) {
    await insertBusiness(address);
    await requestLook(ctx.db, address);
  }
  askedMost = 0;
  await followChain(ctx);
  assert.equal(
    (await ctx.db.query(sql`select from business where look_due_at is not null`)).length,
    0,
  );
  assert.ok(askedMost > 0 && askedMost <= 50, `${askedMost} calls`);
});

await test("a wallet that changes while it is read is read again", async () => {
  await begin();
  await requestLook(ctx.db, business);
  whileAsked = async () => requestLook(ctx.db, business);
  assert.equal(await followFor(0), 2);
  whileAsked = async () => undefined;
  heads = [changedIn];
  await followChain(ctx);
  assert.equal(await isLookDue(), false);
  assert.equal(await countMembers(), 1);
});

await test("a look for businesses to read costs one database call where none is due", async () => {
  await begin();
  await followChain(ctx);
  const before = ctx.db.callsTotal;
  await followChain(ctx);
  assert.equal(ctx.db.callsTotal - before, 1);
});

await test("a wallet is read as soon as the lock on its business ends", async () => {
  await begin();
  heads = [changedIn];
  await requestLook(ctx.db, business);
  const { following } = await ctx.db.transaction(async (tx) => {
    await holdBusiness(tx, business);
    const looking = followChain(ctx);
    await Promise.race([looking, untilBlocked(ctx.db, tx)]);
    return { following: looking };
  });
  await following;
  assert.equal(await countMembers(), 1);
});

await test("a business that is locked for long fails no job, and is read later", async () => {
  await begin();
  heads = [changedIn];
  await requestLook(ctx.db, business);
  await ctx.db.transaction(async (tx) => {
    await holdBusiness(tx, business);
    await followChain(ctx);
  });
  assert.equal(await countMembers(), 2);
  await followChain(ctx);
  assert.equal(await countMembers(), 1);
});

await test("a wallet that can neither be read nor postponed fails with both errors", async () => {
  await begin();
  await requestLook(ctx.db, business);
  whileAsked = async () => Promise.reject(new RpcError(-32_000, "the wallet cannot be read"));
  await ctx.db.query(sql`
    create function refuse() returns trigger language plpgsql as $$
      begin raise exception 'the business cannot be put off'; end $$`);
  await ctx.db.query(sql`
    create trigger refuse before update on business for each row
      when (new.look_due_at < old.look_due_at) execute function refuse()`);
  const fault = await followChain(ctx).catch((error: unknown) => error);
  whileAsked = async () => undefined;
  await ctx.db.query(sql`drop trigger refuse on business`);
  assert.ok(fault instanceof AggregateError);
  const messages = fault.errors.map((each) => (each as Error).message);
  assert.deepEqual(messages, ["the wallet cannot be read", "the business cannot be put off"]);
});

await test("a state that was read before another process read a later one is discarded", async () => {
  await begin();
  await requestLook(ctx.db, business);
  whileAsked = async () => {
    whileAsked = async () => undefined;
    heads = [changedIn];
    await requestLook(ctx.db, business);
    await followChain(ctx);
    assert.equal(await countMembers(), 1);
    heads = [changedIn - 1];
  };
  await followChain(ctx);
  assert.equal(heads[0], changedIn - 1);
  assert.equal(await countMembers(), 1);
});

await test("no events are missed after a node has answered for another, longer chain", async () => {
  await begin();
  chainId = ownChainId + 1;
  heads = [changedIn * 100];
  await assert.rejects(watchWallets(ctx), NodeAway);
  chainId = ownChainId;
  heads = [changedIn];
  assert.equal(await followFor(5), 1);
});

await test("while the node refuses its events, an alarm says so and no job fails", async () => {
  await begin();
  alarms.length = 0;
  [fullBlock, fullFault] = [changedIn, new RpcError(-32_701, "Please specify an address")];
  heads = [changedIn];
  const job = kybJobs(ctx).find(({ name }) => name === "kyb-watch");
  await job?.run(new AbortController().signal);
  assert.deepEqual(alarms, ["node_refused"]);
  fullBlock = Infinity;
  assert.equal(await followFor(5), 1);
});

await test("while the node is away, the jobs that ask it raise an alarm and do not fail", async () => {
  await begin();
  await requestLook(ctx.db, business);
  const jobs = kybJobs(ctx).filter(({ name }) => ["kyb-watch", "kyb-roster"].includes(name));
  const run = async () => {
    for (const job of jobs) await job.run(new AbortController().signal);
  };
  alarms.length = 0;
  isAway = true;
  await run();
  isAway = false;
  assert.deepEqual(alarms, ["node_unreachable", "node_unreachable"]);
  await requestLook(ctx.db, business);
  whileAsked = async () => assert.fail("a fault of our own");
  await assert.rejects(run(), /a fault of our own/);
  whileAsked = async () => undefined;
  assert.equal(alarms.length, 2);
});

await test("a wallet that could not be read is read again five seconds later", async () => {
  await begin();
  await requestLook(ctx.db, business);
  isAway = true;
  await assert.rejects(followChain(ctx), NodeAway);
  isAway = false;
  heads = [changedIn];
  await advanceClock(ctx.db, 5);
  await opened.clock.refresh();
  await followChain(ctx);
  assert.equal(await countMembers(), 1);
});

await test("a member who was voted out is removed even if no process watched for longer than events are read back", async () => {
  await begin();
  heads = [200_000];
  assert.equal(await followFor(5), 1);
  assert.equal(await findWatchedBlock(ctx.db), 200_000);
});

await test("a member who was voted out is removed even after a node has reported blocks that the chain does not have", async () => {
  await begin();
  heads = [10_000_000, changedIn - 1];
  assert.equal(await followFor(5), 2);
  assert.equal(await followFor(5), 2);
  heads = [changedIn];
  assert.equal(await followFor(5), 1);
});

await test("a node that has just begun to sync sets no roster back, and later events are read", async () => {
  await begin();
  heads = [5_000];
  assert.equal(await followFor(5), 1);
  heads = [1];
  assert.equal(await followFor(5), 1);
  assert.equal(await followFor(30), 1);
  heads = [5_001];
  assert.equal(await followFor(30), 1);
  assert.deepEqual([await findWatchedBlock(ctx.db), await isLookDue()], [5_001, false]);
});

await test("a lagging node does not cause businesses to be read again", async () => {
  await begin();
  heads = [2_000];
  assert.equal(await followFor(5), 1);
  heads = [1];
  await followFor(5);
  assert.deepEqual([await findWatchedBlock(ctx.db), await isLookDue()], [2_000, false]);
});

await test("a business whose transaction was reverted is read until the node has the block of that", async () => {
  await begin();
  const block = changedIn - 1;
  await ctx.db.query(sql`
    insert into business_proposal (id, business, operation, arguments, proposer, nonce, status, created_at)
    values ('p', ${business}, 'moveTo', ${Buffer.alloc(32)}, ${anna.address}, 0, 'relaying', 0)`);
  for (const [refusedIn, isDueAfterwards, status] of [
    // An older block does not show whether another act was executed first.
    [block + 1, true, "relaying"],
    [block, false, "failed"],
  ] as const) {
    await noteRefusedProposal(ctx.db, "p", refusedIn);
    await requestLook(ctx.db, business);
    await followFor(31);
    assert.equal(await isLookDue(), isDueAfterwards);
    const [proposal] = await listProposals(ctx.db, ["p"]);
    assert.equal(proposal?.status, status);
  }
});

for (const fault of [
  new RpcError(-32_005, "query returned more than 10000 results"),
  new AnswerTooLong("the answer is too long"),
])
  await test(`a block that somebody filled with events hides nothing behind it: ${fault.message}`, async () => {
    await begin();
    [fullBlock, fullFault] = [changedIn, fault];
    heads = [changedIn];
    // Instead every business is read.
    assert.equal(await followFor(5), 1);
    heads = [changedIn + 1];
    fullBlock = changedIn + 1;
    await watchWallets(ctx);
    assert.equal(await findWatchedBlock(ctx.db), changedIn + 1);
    fullBlock = Infinity;
  });

for (const fault of [
  new NodeAway("the node did not answer"),
  new RpcError(-32_000, "header not found"),
  new RpcError(-32_005, "daily request count exceeded, request rate limited"),
  new RpcError(-32_601, "the method eth_getLogs does not exist"),
])
  await test(`a block that cannot be asked for is asked for again: ${fault.message}`, async () => {
    await begin();
    [fullBlock, fullFault] = [changedIn, fault];
    heads = [changedIn];
    await assert.rejects(watchWallets(ctx), fault);
    assert.equal(await findWatchedBlock(ctx.db), changedIn - 1);
    fullBlock = Infinity;
    assert.equal(await followFor(5), 1);
  });
