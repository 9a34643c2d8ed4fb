import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfPrivateKey } from "@svc/protocol";
import { type Anvil, startAnvil } from "../../../test/anvil.ts";
import {
  handOverRegistry,
  openInstallation,
  type SettlingProcess,
} from "../../../test/chain-processes.ts";
import { alarmsOf } from "../../../test/outbox-looks.ts";
import { type Db, sql, type Statement } from "../platform/database/db.ts";
import { chainJobs } from "./index.ts";
import { RpcError } from "./node.ts";
import { workOutbox } from "./outbox.ts";
import { signDue } from "./sign.ts";
import { forgetBytes } from "./transaction-store.ts";

/** One run of the outbox in which the handler of final transactions fails. */
const workInVain = async ({ ctx }: SettlingProcess): Promise<void> => {
  const [job] = chainJobs(ctx, {
    "test.settle": async () => {
      throw new Error("not now");
    },
  });
  await assert.rejects(async () => job?.run(AbortSignal.any([])));
};

const statusesOf = async ({ ctx }: SettlingProcess): Promise<string[]> => {
  const rows = await ctx.db.query<{ status: string }>(
    sql`select status from chain_transaction where kind = 'test.settle' order by id`,
  );
  return rows.map((row) => row.status);
};

/** Initiations of the settlement contract that the chain holds. */
const settledOn = async (anvil: Anvil, { chain }: SettlingProcess): Promise<number> => {
  const filter = { fromBlock: "0x0", address: chain.contracts.settlement };
  return (await anvil.rpc<unknown[]>("eth_getLogs", [filter])).length;
};

test("if a handler fails, nothing is marked final, and it is called again", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  await anvil.mine();
  installation.advance(4);
  await workInVain(process);
  assert.deepEqual(await statusesOf(process), ["sent"]);
  installation.advance(4);
  await process.work();
  assert.equal(process.done.length, 1);
});

test("if a handler fails, dropped transactions are resent nevertheless", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  await anvil.mine();
  await process.queue("b");
  await workInVain(process);
  await anvil.rpc("anvil_dropAllTransactions");
  installation.advance(15);
  await workInVain(process);
  await anvil.mine();
  assert.equal(await settledOn(anvil, process), 2);
  installation.advance(4);
  await process.work();
  assert.equal(process.done.length, 2);
});

test("a transaction that the account cannot pay or the node cannot estimate waits unsigned, without a counted refusal", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  const { node } = process.chain;
  const workRefused = async (message: string): Promise<void> => {
    const request: typeof node.request = async (method, params) => {
      if (method !== "eth_estimateGas") return node.request(method, params);
      throw new RpcError(-32_000, message);
    };
    await process.workWith({ request });
  };
  const refuse = async (message: string): Promise<void> => {
    await workRefused(message);
    assert.deepEqual(await statusesOf(process), ["queued"]);
    const { db, clock } = process.ctx;
    const putOff = sql`select from chain_transaction where status = 'queued' and due_at > ${clock.now()}`;
    assert.equal((await db.query(putOff)).length, 1);
    installation.advance(16);
  };
  for (let look = 0; look < 6; look += 1) await refuse("insufficient funds for gas");
  for (let look = 0; look < 6; look += 1) await refuse("missing trie node");
  assert.deepEqual(
    [await alarmsOf(process, "out_of_funds"), await alarmsOf(process, "node_refused")],
    [6, 6],
  );
  for (let look = 0; look < 5; look += 1) await refuse("execution reverted");
  await workRefused("execution reverted");
  assert.deepEqual(await statusesOf(process), ["sent"], "its receipt decides");
});

test("the bytes of what is long final are forgotten, its hash and outcome stay, and newer bytes stay", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  await using process = await installation.openProcess();
  const { db } = process.ctx;
  await process.queue("a");
  await process.work();
  await anvil.mine();
  installation.advance(4);
  await process.work();
  assert.equal(process.done.length, 1);
  const kept = sql`
    select t.status, t.data is null as "isForgotten", h.raw is null as "isRawForgotten", length(h.hash) as hash
    from chain_transaction t join chain_transaction_hash h on h.transaction_id = t.id
    where t.kind = 'test.settle'`;
  const [row] = await db.query<{ finishedAt: number }>(
    sql`select finished_at as "finishedAt" from chain_transaction where kind = 'test.settle'`,
  );
  assert.ok(row !== undefined);
  const [before] = await db.query<Record<string, unknown>>(kept);
  await forgetBytes(db, row.finishedAt, 10);
  assert.deepEqual(await db.query(kept), [before]);
  assert.deepEqual([before?.["isForgotten"], before?.["isRawForgotten"]], [false, false]);
  await forgetBytes(db, row.finishedAt + 1, 10);
  assert.deepEqual(await db.query(kept), [{ ...before, isForgotten: true, isRawForgotten: true }]);
});

test("a transaction that another process signs before the lock is signed once, without alarm, and at most 32 are in flight", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await using other = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("first");
  const { db } = process.ctx;
  let isSigned = false;
  const late: Db = {
    ...db,
    async query<Row extends object>(statement: Statement) {
      const rows = await db.query<Row>(statement);
      if (!isSigned && statement.text.includes("waiting_kind")) {
        isSigned = true;
        await other.work();
      }
      return rows;
    },
  };
  assert.deepEqual(await signDue({ ...process.ctx, db: late }), { count: 0, hasMore: false });
  assert.ok(isSigned);
  await process.queue("second");
  isSigned = false;
  const { chain } = process;
  const request: typeof chain.node.request = async (method, params) => {
    if (method === "eth_estimateGas") throw new RpcError(3, "execution reverted: done already");
    return chain.node.request(method, params);
  };
  const refusing = { ...chain, node: { ...chain.node, request } };
  await signDue({ ...process.ctx, db: late, chain: refusing });
  assert.deepEqual([isSigned, await alarmsOf(process, "would_revert")], [true, 0]);
  for (let at = 0; at < 35; at += 1) await process.queue(`more ${at}`);
  await process.work();
  const rows = await db.query(sql`
    select t.nonce, count(*) as forms from chain_transaction t join chain_transaction_hash h on h.transaction_id = t.id
    where t.status = 'sent' group by t.id, t.nonce order by t.nonce`);
  // The contracts' deployments are among them, since nothing has been mined since.
  const expected = Array.from({ length: 32 }, (_, nonce) => ({ nonce, forms: 1 }));
  assert.deepEqual(rows, expected);
});

test("transactions beyond 32 in flight are signed in the run that finds these final", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  for (let each = 0; each < 34; each += 1) await process.queue(`${each}`);
  await process.work();
  await anvil.mine();
  installation.advance(4);
  await process.work();
  const inFlight = (await statusesOf(process)).filter((status) => status === "sent");
  assert.deepEqual([process.done.length, inFlight.length], [32, 2]);
});

test("a transaction that another process marks final meanwhile is handled only by that process", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  await using process = await installation.openProcess();
  await using other = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  await anvil.mine();
  installation.advance(4);
  const { db } = process.ctx;
  const late: Db = {
    ...db,
    async query<Row extends object>(statement: Statement) {
      const rows = await db.query<Row>(statement);
      if (other.done.length === 0 && statement.text.includes("as hashes")) {
        installation.advance(4);
        await other.work();
      }
      return rows;
    },
  };
  const told: unknown[] = [];
  await workOutbox(
    { ...process.ctx, db: late },
    { "test.settle": async (_tx, done) => void told.push(...done) },
  );
  assert.deepEqual([other.done.length, told], [1, []]);
});

test("a nonce that a foreign transaction no longer has is filled, also where 32 wait above it", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  await using process = await installation.openProcess();
  const { operator } = process.chain;
  await anvil.setAutomine(false);
  const before = await anvil.rpc("evm_snapshot");
  await anvil.rpc("eth_sendTransaction", [{ from: operator, to: operator }]);
  await anvil.mine();
  for (let at = 0; at < 32; at += 1) await process.queue(`waits-${at}`);
  await process.work();
  await anvil.rpc("evm_revert", [before]);
  await anvil.rpc("anvil_dropAllTransactions");
  for (let look = 0; look < 3; look += 1) {
    installation.advance(16);
    await process.work();
    await anvil.mine();
  }
  installation.advance(4);
  await process.work();
  assert.equal(process.done.length, 32);
  assert.equal(await settledOn(anvil, process), 32);
});

test("a transaction that the node refuses waits with an alarm that says why, and its fee is raised only if that is too low", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  await using process = await installation.openProcess();
  const { db, chain } = process.ctx;
  await anvil.setAutomine(false);
  await process.queue("a");
  let [message, tip] = ["something is wrong with this one", 100n * 10n ** 9n];
  const faulty = {
    request: async (method: string, params?: readonly unknown[]) =>
      method === "eth_maxPriorityFeePerGas"
        ? `0x${tip.toString(16)}`
        : chain.node.request(method, params),
    submit: async (): Promise<void> => {
      throw new RpcError(-32_000, message);
    },
  };
  const look = async (): Promise<number[]> => {
    await process.workWith(faulty);
    installation.advance(60);
    const forms = await db.query(sql`
      select from chain_transaction_hash h join chain_transaction t on t.id = h.transaction_id
      where t.kind = 'test.settle'`);
    const alarms = ["node_refused", "fee_too_low"].map(async (name) => alarmsOf(process, name));
    return [forms.length, ...(await Promise.all(alarms))];
  };
  assert.deepEqual(await look(), [1, 1, 0]);
  assert.deepEqual(await look(), [1, 2, 0]);
  message = "max fee per gas less than block base fee";
  // The node refuses the first form, and then the one with a higher fee.
  assert.deepEqual(await look(), [2, 2, 2]);
  // The fee is far above the market by now: alarms for the refusal, and for the fee that is not raised.
  tip = 0n;
  assert.deepEqual(await look(), [2, 2, 4]);
  await process.work();
  await anvil.mine();
  installation.advance(4);
  await process.work();
  assert.equal(process.done.length, 1);
});

test("fees are raised only within the day's cap, with a special alarm if no day has room for it", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  await using rich = await installation.openProcess();
  await using poor = await installation.openProcess({ CHAIN_SPEND_CAP: "0.000000001" });
  await using late = await installation.openProcess({ CHAIN_SPEND_CAP: "0.001" });
  await anvil.setAutomine(false);
  await rich.queue("a");
  await rich.work();
  const formsOf = async (): Promise<number> =>
    (
      await rich.ctx.db.query(sql`
        select from chain_transaction_hash h join chain_transaction t on t.id = h.transaction_id
        where t.kind = 'test.settle'`)
    ).length;
  installation.advance(60);
  const alarmsOfWork = async (process: SettlingProcess): Promise<number[]> => {
    await process.work();
    installation.advance(1);
    const alarms = ["spend_cap", "cost_above_cap"];
    return Promise.all(alarms.map(async (name) => alarmsOf(process, name)));
  };
  assert.deepEqual(
    [await alarmsOfWork(late), await alarmsOfWork(poor)],
    [
      [1, 0],
      [1, 1],
    ],
  );
  assert.equal(await formsOf(), 1);
  installation.advance(60);
  await rich.work();
  assert.equal(await formsOf(), 2);
});

test("a node that suggests no tip and has pruned the state of final blocks serves as well", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "2" });
  await using process = await installation.openProcess();
  const { node } = process.chain;
  const refused: string[] = [];
  const request: typeof node.request = async (method, params = []) => {
    const isState = method === "eth_getTransactionCount" && typeof params[1] === "object";
    if (method !== "eth_maxPriorityFeePerGas" && !isState) return node.request(method, params);
    refused.push(method);
    throw new RpcError(-32_601, "not available");
  };
  await anvil.setAutomine(false);
  await process.queue("a");
  for (let look = 0; look < 3; look += 1) {
    await process.workWith({ request });
    await anvil.mine();
    installation.advance(4);
  }
  await process.workWith({ request });
  assert.deepEqual(
    process.done.map(({ subjectId, status }) => `${subjectId} ${status}`),
    ["a succeeded"],
  );
  assert.deepEqual(
    new Set(refused),
    new Set(["eth_maxPriorityFeePerGas", "eth_getTransactionCount"]),
  );
});

test("transactions of a former operator's account are resent unchanged, since nobody signs for it any more", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  const key = "22".repeat(32);
  const heir = addressOfPrivateKey(Buffer.from(key, "hex"));
  await anvil.rpc("anvil_setBalance", [heir, "0x14d1120d7b160000"]);
  let former = "";
  {
    await using process = await installation.openProcess();
    former = process.chain.operator;
    await handOverRegistry(anvil, process.chain, heir);
    installation.advance(86_500);
    await anvil.setAutomine(false);
    await process.queue("a");
    await process.work();
  }
  await using process = await installation.openProcess({ SIGNER_KEY: key });
  const formsNow = async (): Promise<unknown[]> =>
    process.ctx.db.query(sql`
      select signer from chain_transaction t join chain_transaction_hash h on h.transaction_id = t.id
      where kind = 'test.settle'`);
  for (let look = 0; look < 2; look += 1) {
    await anvil.rpc("anvil_dropAllTransactions");
    installation.advance(61);
    await process.work();
    assert.deepEqual(await formsNow(), [{ signer: former }]);
  }
  await anvil.mine();
  installation.advance(4);
  await process.work();
  assert.deepEqual(
    process.done.map(({ signer, status }) => [signer, status]),
    [[former, "succeeded"]],
  );
});

test("a nonce gap of a former operator's account is not filled, since only its own nonces could", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  const key = "22".repeat(32);
  const heir = addressOfPrivateKey(Buffer.from(key, "hex"));
  await anvil.rpc("anvil_setBalance", [heir, "0x14d1120d7b160000"]);
  {
    await using process = await installation.openProcess();
    const { operator } = process.chain;
    await handOverRegistry(anvil, process.chain, heir);
    installation.advance(86_500);
    await anvil.setAutomine(false);
    const before = await anvil.rpc("evm_snapshot");
    await anvil.rpc("eth_sendTransaction", [{ from: operator, to: operator }]);
    await anvil.mine();
    await process.queue("above the gap");
    await process.work();
    await anvil.rpc("evm_revert", [before]);
    await anvil.rpc("anvil_dropAllTransactions");
  }
  await using process = await installation.openProcess({ SIGNER_KEY: key });
  installation.advance(16);
  await process.work();
  const { db } = process.ctx;
  assert.deepEqual(await statusesOf(process), ["sent"]);
  assert.deepEqual(
    await db.query(sql`select from chain_transaction where kind = 'nonce.fill'`),
    [],
  );
});

test("with one confirmation, a block that comes while the chain is read counts already", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  installation.advance(4);
  const { node } = process.chain;
  let isMined = false;
  await process.workWith({
    request: async (method, params = []) => {
      const answer = await node.request(method, params);
      if (!isMined && method === "eth_getBlockByNumber" && params[0] === "latest") {
        isMined = true;
        await anvil.mine();
      }
      return answer;
    },
  });
  assert.ok(isMined);
  assert.equal(process.done.length, 1);
});

test("a transaction gets a quarter more gas than the node estimates, and no more than one may have", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  const { node } = process.chain;
  for (const estimate of [1_000_000, 16_000_000]) {
    await process.queue(`${estimate}`);
    await process.workWith({
      request: async (method, params) =>
        method === "eth_estimateGas" ? `0x${estimate.toString(16)}` : node.request(method, params),
    });
  }
  const given = sql`
    select gas_limit::int as gas from chain_transaction where kind = 'test.settle' order by id`;
  assert.deepEqual(await process.ctx.db.query(given), [{ gas: 1_250_000 }, { gas: 2 ** 24 }]);
});
