// What a chain that takes blocks back, drops transactions and serves its events in parts does to businesses.
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { topUp } from "../../service/src/accounts/index.ts";
import { lookAtOpen } from "../../service/src/kyb/business/roster.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { type Anvil, type Gate, openGate, startAnvil } from "../anvil.ts";
import { merchantOf, someRecord } from "../kyb-data-world.ts";
import { openSignatureWorld, type SignatureWorld } from "../kyb-signature-world.ts";
import { fundedKey } from "../chain-processes.ts";
import { capital, type Decide, sparse } from "../odd-node.ts";
import { openBeside } from "../beside-each-other.ts";

const { test, run } = openBeside("a business holds whatever its chain does");

const confirmations = 3;
/** The service reads the chain once a second, so faster blocks would only add work. */
const blockMs = 200;

interface Stage {
  readonly anvil: Anvil;
  readonly gate: Gate;
  readonly world: SignatureWorld;
  /** Switches mining by itself on (as at first) or off. */
  flow(on: boolean): void;
  /** Waits until the service has sent what it queued of this kind, with none of it mined. */
  untilSent(kind: string): Promise<void>;
  /** Gives every job of the service the time for one or two more runs. */
  settle(): Promise<void>;
}

/** A service over a chain of the test's own. */
async function openStage(
  stack: AsyncDisposableStack,
  decide: Decide = () => "pass",
): Promise<Stage> {
  const anvil = stack.use(await startAnvil());
  const gate = stack.use(await openGate(anvil));
  gate.decide(decide);
  await anvil.setAutomine(false);
  let isFlowing = true;
  const stop = new AbortController();
  const flowing = (async () => {
    while (!stop.signal.aborted) {
      if (isFlowing) await anvil.mine();
      await delay(blockMs);
    }
  })();
  stack.defer(async () => {
    stop.abort();
    await flowing;
  });
  const world = stack.use(
    await openSignatureWorld({
      environment: {
        CHAIN_RPC_URL: gate.url,
        SIGNER_KEY: fundedKey,
        CONFIRMATIONS: String(confirmations),
      },
    }),
  );
  return {
    anvil,
    gate,
    world,
    flow: (on) => {
      isFlowing = on;
    },
    untilSent: async (kind) =>
      void (await world.until(`${kind} is sent`, async () => {
        const rows = await world.ctx.db.query(
          sql`select from chain_transaction where kind = ${kind} and status = 'sent'`,
        );
        return rows.length > 0 ? true : null;
      })),
    settle: async () => delay(2_500),
  };
}

async function epochOf({ world }: Stage): Promise<unknown> {
  return (await world.businessOf("alice"))["epoch"];
}

async function propose({ world }: Stage, members: readonly string[]): Promise<string> {
  const path = `/w/businesses/${world.business.address}/proposals`;
  const body = { operation: "changeCharter", members: world.rosterOf(members) };
  const proposed = await world.walletCall("alice", "POST", path, { body });
  assert.equal(proposed.status, 201, JSON.stringify(proposed.body));
  return String(proposed.body["proposalId"]);
}

/** Waits until the service has sent this, then mines it for too few blocks and takes those back again. */
async function assertNotFinal(
  stage: Stage,
  kind: string,
  holds: () => Promise<void>,
): Promise<void> {
  const { anvil } = stage;
  await stage.untilSent(kind);
  await anvil.mine(confirmations - 1);
  await stage.settle();
  await holds();
  await anvil.reorganise(confirmations - 1);
  await stage.settle();
  await holds();
  stage.flow(true);
}

test("a document is signed and members change by final blocks alone, and what a chain takes back comes again", async (t) => {
  await using stack = new AsyncDisposableStack();
  const stage = await openStage(stack);
  const { world } = stage;
  await t.test("a document", async () => {
    stage.flow(false);
    const signature = await world.begin();
    for (const name of ["alice", "bob"]) await world.voteAs(name, signature);
    const path = `/api/v1/kyb/signature-requests/${signature}`;
    await assertNotFinal(stage, "business.record", async () =>
      assert.equal((await world.call("GET", path)).body["status"], "pending_approval"),
    );
    await world.reach(signature, "signed");
  });
  await t.test("members", async () => {
    stage.flow(false);
    const proposal = await propose(stage, ["alice", "bob"]);
    for (const name of ["alice", "bob"]) await world.voteAs(name, proposal);
    await assertNotFinal(stage, "business.govern", async () =>
      assert.equal(await epochOf(stage), 0),
    );
    await world.until("the roster follows", async () =>
      (await epochOf(stage)) === 1 ? true : null,
    );
  });
});

test("a business is founded, signs and changes its members through a sparse node that spells hex in capitals", async () => {
  await using stack = new AsyncDisposableStack();
  const stage = await openStage(stack, (method, params) => {
    const decided = sparse(method, params);
    return decided === "pass" ? capital(method, params) : decided;
  });
  const { world } = stage;
  const signature = await world.begin();
  for (const name of ["alice", "bob"]) await world.voteAs(name, signature);
  await world.reach(signature, "signed");
  const proposal = await propose(stage, ["alice", "bob"]);
  for (const name of ["alice", "bob"]) await world.voteAs(name, proposal);
  await world.until("the roster follows", async () => ((await epochOf(stage)) === 1 ? true : null));
});

interface Pooled {
  readonly hash: string;
  readonly input: string;
  readonly to: string;
}

/** Waits until the chain's node has something to mine. */
async function untilPooled({ anvil, world }: Stage): Promise<Pooled> {
  return world.until("the chain's node has it", async () => {
    const { pending } = await anvil.rpc<{ pending: Record<string, Record<string, Pooled>> }>(
      "txpool_content",
    );
    return Object.values(pending).flatMap((each) => Object.values(each))[0] ?? null;
  });
}

/** Replaces the service's pending transaction by the same call from a stranger, which anybody may make. */
async function sendInstead(stage: Stage): Promise<void> {
  const { anvil } = stage;
  const { hash, input, to } = await untilPooled(stage);
  await anvil.rpc("anvil_dropTransaction", [hash]);
  const from = `0x${"ab".repeat(20)}`;
  await anvil.rpc("anvil_setBalance", [from, "0xde0b6b3a7640000"]);
  await anvil.rpc("anvil_impersonateAccount", [from]);
  await anvil.rpc("eth_sendTransaction", [{ from, to, data: input, gas: "0x7a120" }]);
}

test("a document that somebody else recorded is found by a node that serves few blocks of events at once", async () => {
  await using stack = new AsyncDisposableStack();
  const stage = await openStage(stack);
  const { world, anvil, gate } = stage;
  gate.decide((method) => (method === "eth_getLogs" ? "broken" : "pass"));
  await anvil.mine(300);
  const tooMany = { error: { code: -32_005, message: "query covers too many blocks" } };
  gate.decide((method, [filter]) => {
    if (method !== "eth_getLogs") return "pass";
    const { fromBlock, toBlock } = filter as { fromBlock: string; toBlock: string };
    return Number(toBlock) - Number(fromBlock) < 20 ? "pass" : tooMany;
  });
  await world.until("events of all blocks are read", async () => {
    const rows = await world.ctx.db.query(sql`select from business_watch where block >= 300`);
    return rows.length > 0 ? true : null;
  });
  stage.flow(false);
  const id = await world.begin();
  for (const name of ["alice", "bob"]) await world.voteAs(name, id);
  await stage.untilSent("business.record");
  await sendInstead(stage);
  await anvil.mine(50);
  stage.flow(true);
  const { body } = await world.call("GET", `/api/v1/kyb/signature-requests/${id}`);
  assert.equal(body["status"], "pending_approval");
  // The service submits again what the node forgot, but only after some time.
  await world.advance(300);
  await world.until("the chain has refused it", async () => {
    const rows = await world.ctx.db.query(
      sql`select from chain_transaction where kind = 'business.record' and finished_at is not null`,
    );
    return rows.length > 0 ? true : null;
  });
  await world.reach(id, "signed");
});

test("a document is signed also where the removal of a member who approves it begins just before", async () => {
  await using stack = new AsyncDisposableStack();
  const stage = await openStage(stack);
  const { world, gate } = stage;
  // Both are estimated before either is mined.
  gate.decide((method) => (method === "eth_estimateGas" ? "broken" : "pass"));
  const body = { operation: "startRemoval", member: world.person("alice").address };
  const path = `/w/businesses/${world.business.address}/proposals`;
  const proposed = await world.walletCall("bob", "POST", path, { body });
  assert.equal(proposed.status, 201, JSON.stringify(proposed.body));
  for (const name of ["bob", "carol"])
    await world.voteAs(name, String(proposed.body["proposalId"]));
  const signature = await world.begin();
  for (const name of ["alice", "bob"]) await world.voteAs(name, signature);
  gate.decide(() => "pass");
  const ended = await world.until("the request has ended", async () => {
    const found = await world.call("GET", `/api/v1/kyb/signature-requests/${signature}`);
    return found.body["status"] === "pending_approval" ? null : found.body["status"];
  });
  assert.equal(ended, "signed");
});

test("what members approved before a reorganisation took their epoch back releases nothing when it comes again", async () => {
  await using stack = new AsyncDisposableStack();
  const stage = await openStage(stack);
  const { world, anvil } = stage;
  const { ctx, organizationId, business } = world;
  await topUp(ctx, { organizationId, environment: "live", amountRappen: 1_000n }, "test");
  const merchant = await merchantOf(world);
  await merchant.issueRecord(business.address, someRecord);
  const optional = ["BUSINESS_DIRECTOR_COUNT"];
  const asked = await merchant.ask({ fields: ["BUSINESS_LEGAL_NAME"], optionalFields: optional });
  const id = String(asked.body["requestId"]);
  stage.flow(false);
  const rules = { signature_requests: "UNANIMOUS" };
  const members = world.rosterOf(business.members);
  const change = { operation: "changeCharter", members, rules };
  await world.govern("alice", change, { voters: ["alice", "bob"] });
  await untilPooled(stage);
  await anvil.mine(confirmations);
  const reachEpoch = async (epoch: number) =>
    world.until(`epoch ${epoch}`, async () => ((await epochOf(stage)) === epoch ? true : null));
  await reachEpoch(1);
  assert.equal((await world.voteAs("alice", id, { optional: [] })).body["status"], "open");
  await anvil.reorganise(confirmations);
  await lookAtOpen(ctx);
  await reachEpoch(0);
  stage.flow(true);
  await merchant.issueRecord(business.address, someRecord);
  await reachEpoch(1);
  assert.equal((await world.voteAs("bob", id, { optional })).body["status"], "open");
  assert.equal((await world.voteAs("alice", id)).body["status"], "approved");
  await merchant.waitFor(id, "released");
});

run(4);
