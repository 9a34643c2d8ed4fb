// What chains and their nodes do to orders under way: every order ends, with one initiate and one confirm that count.
import assert from "node:assert/strict";
import { privateKeyToAccount } from "viem/accounts";
import { chainJobs, openChain } from "../../service/src/chain/index.ts";
import { statusUpdated } from "../../service/src/kyc/events.ts";
import { findOrder } from "../../service/src/kyc/order-store.ts";
import { settlementFinalHandlers, settleOrders } from "../../service/src/kyc/settlement.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { enqueueEvents } from "../../service/src/webhooks/index.ts";
import { openGate, startAnvil } from "../anvil.ts";
import { checkOrders } from "../order-invariants.ts";
import { openTestSettlement } from "../approved-orders.ts";
import { fundedKey } from "../chain-processes.ts";
import { openBeside } from "../beside-each-other.ts";

const { test, run } = openBeside("orders end whatever their chain does");

const ordersEach = 2;
/** Mined between two runs of the service: most blocks only make others final, and need no run each. */
const blocksEach = 4;
const infos = Buffer.from("[]").toString("base64");

/** Orders over a chain of the test's own: nothing happens by itself. */
async function openOrders() {
  await using stack = new AsyncDisposableStack();
  const anvil = stack.use(await startAnvil());
  const gate = stack.use(await openGate(anvil));
  const settlement = stack.use(
    await openTestSettlement({ CHAIN_RPC_URL: gate.url, SIGNER_KEY: fundedKey }),
  );
  const chain = stack.use(await openChain(settlement.ctx));
  const ctx = { ...settlement.ctx, chain };
  const outbox = chainJobs(ctx, settlementFinalHandlers(ctx)).find(
    ({ name }) => name === "chain-outbox",
  );
  const approvals = new Map<string, { referenceKey: string; infos: string }>();
  const orders = new Set<string>();
  const foreignNonces: number[] = [];
  await anvil.setAutomine(false);
  const work = async (): Promise<void> => {
    settlement.world.advance(4);
    await outbox?.run(AbortSignal.any([]));
    await settleOrders(ctx);
  };
  const countOpen = async (): Promise<number> => {
    const [row] = await ctx.db.query<{ open: number }>(sql`
      select (select count(*) from kyc_order where status not in ('CONFIRMED', 'FAILED'))
        + (select count(*) from chain_transaction where finished_at is null) as open`);
    return row?.open ?? 0;
  };
  const opened = stack.move();
  return {
    ctx,
    anvil,
    gate,
    foreignNonces,
    work,
    advance: (seconds: number) => settlement.world.advance(seconds),
    /** Approved orders whose batch is closed; its transaction is not signed yet. */
    async approve(): Promise<void> {
      const made = await settlement.approve(ordersEach, { infos });
      for (const { referenceKey, consent } of made) {
        orders.add(referenceKey);
        approvals.set(`0x${consent.signature.toString("hex")}`, { referenceKey, infos });
        const order = await findOrder(ctx.db, referenceKey);
        assert.ok(order !== null);
        const requested = { ...order, status: "PENDING", sequence: 1 } as const;
        const events = [statusUpdated(ctx, requested), statusUpdated(ctx, order)];
        await ctx.db.transaction(async (tx) => enqueueEvents(ctx, tx, events));
      }
      settlement.world.advance(ctx.config.settlementWindowSeconds);
      await settleOrders(ctx);
    },
    /** Works until a transaction of this kind is sent and not mined. */
    async untilSent(kind: string): Promise<void> {
      for (let blocks = 0; blocks < 100; blocks += blocksEach) {
        const rows = await ctx.db.query(
          sql`select from chain_transaction where kind = ${kind} and status = 'sent'`,
        );
        if (rows.length > 0) return;
        if (blocks > 0) await anvil.mine(blocksEach);
        await work();
      }
      assert.fail(`no ${kind} was sent`);
    },
    /** Works until everything is over. */
    async end(): Promise<void> {
      for (let blocks = 0; (await countOpen()) > 0; blocks += blocksEach) {
        assert.ok(blocks < 200, "orders do not end");
        await anvil.mine(blocksEach);
        await work();
      }
    },
    /** Checks everything once everything is over. */
    async check(total: number): Promise<void> {
      const tally = await checkOrders({
        ctx,
        rpc: async (method, params) => anvil.rpc(method, params),
        settlement: chain.contracts.settlement,
        acknowledged: { orders, approvals, ends: [] },
        received: null,
        foreignNonces,
      });
      assert.deepEqual([tally.orders, tally.confirmed], [total, total]);
    },
    [Symbol.asyncDispose]: async () => opened.disposeAsync(),
  };
}

const kinds = ["kyc.initiate", "kyc.confirm"] as const;

test("a reorganisation of any depth from 1 to 11, at the initiate and at the confirm, loses and doubles no order", async () => {
  await using world = await openOrders();
  for (let depth = 1; depth <= 11; depth += 1) {
    await world.approve();
    for (const kind of kinds) {
      await world.untilSent(kind);
      await world.anvil.mine(depth);
      await world.work();
      await world.anvil.reorganise(depth);
      await world.work();
    }
    await world.end();
  }
  await world.check(11 * ordersEach);
});

type Orders = Awaited<ReturnType<typeof openOrders>>;

/** Faults that leave the chain and its node as they were, each met by orders under way. */
const passing: [name: string, play: (world: Orders) => Promise<void>][] = [];
const each = (name: string, play: (world: Orders) => Promise<void>): void =>
  void passing.push([name, play]);

each(
  "transactions that the node dropped are handed over again, and every order ends",
  async (world) => {
    await world.approve();
    for (const kind of kinds) {
      await world.untilSent(kind);
      await world.anvil.rpc("anvil_dropAllTransactions");
    }
  },
);

each(
  "a transaction that was replaced for a higher fee settles its orders once, whichever form is mined",
  async (world) => {
    await world.approve();
    for (const [at, kind] of kinds.entries()) {
      await world.untilSent(kind);
      world.advance(60);
      await world.work();
      const forms = await world.ctx.db.query<{ raw: string }>(sql`
      select '0x' || encode(raw, 'hex') as raw from chain_transaction_hash h
      join chain_transaction t on t.id = h.transaction_id where kind = ${kind} and status = 'sent'
      order by h.signed_at`);
      assert.equal(forms.length, 2);
      await world.anvil.rpc("anvil_dropAllTransactions");
      await world.anvil.rpc("eth_sendRawTransaction", [forms[at]?.raw]);
      await world.anvil.mine();
    }
  },
);

each("orders whose nonce somebody else used are settled under another", async (world) => {
  const account = privateKeyToAccount(`0x${fundedKey}`);
  await world.approve();
  for (const kind of kinds) {
    await world.untilSent(kind);
    await world.anvil.rpc("anvil_dropAllTransactions");
    const nonce = Number(
      await world.anvil.rpc("eth_getTransactionCount", [account.address, "latest"]),
    );
    const foreign = await account.signTransaction({
      type: "eip1559",
      chainId: world.anvil.chainId,
      nonce,
      to: account.address,
      gas: 21_000n,
      maxFeePerGas: 10n ** 11n,
      maxPriorityFeePerGas: 10n ** 10n,
    });
    await world.anvil.rpc("eth_sendRawTransaction", [foreign]);
    await world.anvil.mine();
    world.foreignNonces.push(nonce);
  }
});

each("out of funds, orders wait and go on when there are some", async (world) => {
  const { operator } = world.ctx.chain;
  const countMined = async (): Promise<number> => {
    const mined = await world.ctx.db.query(
      sql`select from chain_transaction where kind like 'kyc.%' and mined_hash is not null`,
    );
    return mined.length;
  };
  await world.approve();
  for (const kind of kinds) {
    const before = await countMined();
    const balance = await world.anvil.rpc("eth_getBalance", [operator, "latest"]);
    await world.anvil.rpc("anvil_setBalance", [operator, "0x1"]);
    for (let blocks = 0; blocks < 14; blocks += 1) {
      await world.anvil.mine();
      await world.work();
    }
    assert.equal(await countMined(), before);
    await world.anvil.rpc("anvil_setBalance", [operator, balance]);
    await world.untilSent(kind);
    await world.anvil.mine(12);
    await world.work();
  }
});

each(
  "a node that takes a transaction and never answers, breaks, or speaks for another chain doubles nothing",
  async (world) => {
    const { anvil, gate } = world;
    await world.approve();
    // The bytes arrive and their answer does not: a time-out.
    gate.decide((method, params) => {
      if (method !== "eth_sendRawTransaction") return "pass";
      void anvil.rpc(method, params).catch(() => undefined);
      return "hang";
    });
    await world.untilSent("kyc.initiate");
    gate.decide(() => "broken");
    await world.work();
    gate.decide((method) => (method === "eth_chainId" ? { result: "0x1" } : "pass"));
    for (let blocks = 0; blocks < 14; blocks += 1) {
      await anvil.mine();
      await world.work();
    }
    gate.decide(() => "pass");
  },
);

each(
  "orders are settled once by a node whose receipts come two minutes after their blocks",
  async (world) => {
    await world.approve();
    for (const kind of kinds) {
      await world.untilSent(kind);
      world.gate.decide((method) =>
        method === "eth_getTransactionReceipt" ? { result: null } : "pass",
      );
      for (let look = 0; look < 30; look += 1) {
        await world.anvil.mine();
        await world.work();
      }
      world.gate.decide(() => "pass");
    }
  },
);

test("one fault after the other", async (t) => {
  await using world = await openOrders();
  for (const [at, [name, play]] of passing.entries())
    await t.test(name, async () => {
      await play(world);
      await world.end();
      await world.check((at + 1) * ordersEach);
    });
});

run(2);
