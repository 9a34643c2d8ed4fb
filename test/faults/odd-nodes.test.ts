// Nodes as they exist: whatever one lacks, limits or words in its own way, no transaction is stuck or doubled.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Hex, isRecord } from "@svc/protocol";
import { parseTransaction } from "viem";
import { openGate, startAnvil } from "../anvil.ts";
import { openInstallation } from "../chain-processes.ts";
import { capital, type Decide, fail, sparse } from "../odd-node.ts";
import { alarmsOf, settle, settledOn } from "../outbox-looks.ts";

const without =
  (...names: string[]) =>
  (result: unknown): unknown =>
    isRecord(result)
      ? Object.fromEntries(Object.entries(result).filter(([name]) => !names.includes(name)))
      : result;

/** Calls since the node began to be odd, by method. */
const counted = (): ((method: string) => number) => {
  const counts = new Map<string, number>();
  return (method) => {
    counts.set(method, (counts.get(method) ?? 0) + 1);
    return counts.get(method) ?? 0;
  };
};

const always: [what: string, open: () => Decide][] = [
  ["has neither tags of finality nor suggestions of fees", () => sparse],
  [
    "takes no block by its hash",
    () =>
      (method, [, block]) =>
        method === "eth_getTransactionCount" && isRecord(block)
          ? fail(-32_602, "invalid argument 1")
          : "pass",
  ],
  ["spells hex in capitals", () => capital],
  [
    "tells no effective price in receipts, and other types of transactions in blocks",
    () => (method) => ({
      revise: (result) => {
        if (method === "eth_getTransactionReceipt")
          return without("effectiveGasPrice", "logsBloom", "type")(result);
        return method === "eth_getBlockByNumber" && isRecord(result)
          ? { ...result, transactions: [{ type: "0x7e", mint: "0x1" }], l1BlockNumber: "0x1" }
          : result;
      },
    }),
  ],
  [
    "estimates the cost of another layer along",
    () => (method) => ({
      revise: (result) =>
        method === "eth_estimateGas"
          ? `0x${(BigInt(String(result)) + 5_000_000n).toString(16)}`
          : result,
    }),
  ],
  [
    "does not count what waits, and goes back a block every other time",
    () => {
      const count = counted();
      return (method) => ({
        revise: (result) =>
          method === "eth_blockNumber" && count(method) % 2 === 0
            ? `0x${(BigInt(String(result)) - 1n).toString(16)}`
            : result,
      });
    },
  ],
];

for (const [what, open] of always) {
  test(`a node that ${what} settles once`, async () => {
    await using anvil = await startAnvil();
    await using gate = await openGate(anvil);
    gate.decide(open());
    await using installation = await openInstallation(gate, { CONFIRMATIONS: "3" });
    await using process = await installation.openProcess();
    await anvil.setAutomine(false);
    await process.queue("a");
    await settle(anvil, installation, [process]);
    assert.deepEqual(
      process.done.map(({ subjectId, status }) => `${subjectId} ${status}`),
      ["a succeeded"],
    );
    assert.equal(await settledOn(anvil, process), 1);
  });
}

/** The fee cap of a signed transaction. */
const maxFeeOf = (raw: unknown): bigint => parseTransaction(raw as Hex).maxFeePerGas ?? 0n;

const sending = "eth_sendRawTransaction";

/** Faults that pass, each with the alarm that it raises. */
const passing: [what: string, alarm: string, open: () => Decide][] = [
  ["limits calls", "node_unreachable", () => () => fail(429, "Too Many Requests")],
  [
    "limits calls by the day",
    "node_unreachable",
    () => () => fail(-32_003, "daily request limit reached"),
  ],
  [
    "takes no batches",
    "node_refused",
    () => () => fail(-32_600, "batch requests are not supported"),
  ],
  [
    "lacks the newest state",
    "node_refused",
    () => (method) => (method === "eth_estimateGas" ? fail(-32_000, "header not found") : "pass"),
  ],
  [
    "has a full pool",
    "node_refused",
    () => (method) => (method === sending ? fail(-32_000, "txpool is full") : "pass"),
  ],
  [
    "takes one at a time of a delegated account",
    "node_refused",
    () => (method) =>
      method === sending
        ? fail(-32_000, "in-flight transaction limit reached for delegated accounts")
        : "pass",
  ],
  [
    "is indexing transactions",
    "node_refused",
    () => (method) =>
      method === "eth_getTransactionReceipt"
        ? fail(-32_000, "transaction indexing is in progress")
        : "pass",
  ],
  [
    "knows no receipts yet",
    "node_refused",
    () => (method) => (method === "eth_getTransactionReceipt" ? { result: null } : "pass"),
  ],
  [
    "wants more than it said, in words of its own",
    "fee_too_low",
    () => {
      let first: bigint | null = null;
      return (method, [raw]) => {
        if (method !== sending) return "pass";
        first ??= maxFeeOf(raw);
        return maxFeeOf(raw) > first
          ? "pass"
          : fail(-32_010, "FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 1, BaseFee: 7");
      };
    },
  ],
];

test("a node that is odd for a while settles once, and an operator is told", async (t) => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate, { CONFIRMATIONS: "2" });
  await using process = await installation.openProcess();
  await settle(anvil, installation, [process]);
  await anvil.setAutomine(false);
  for (const [what, alarm, open] of passing)
    await t.test(`one that ${what}`, async () => {
      const [alarms, settled] = [await alarmsOf(process, alarm), await settledOn(anvil, process)];
      process.done.length = 0;
      await process.queue(`a: ${what}`);
      await process.queue(`b: ${what}`);
      gate.decide(open());
      gate.calls.clear();
      for (let look = 0; look < 6; look += 1) {
        installation.advance(16);
        await process.work();
        await anvil.mine();
      }
      const asked = [...gate.calls.values()].reduce((sum, count) => sum + count, 0);
      const calls = JSON.stringify(Object.fromEntries(gate.calls));
      assert.ok(asked < 100, `${asked} calls in six looks: ${calls}`);
      assert.ok((await alarmsOf(process, alarm)) > alarms);
      gate.decide(() => "pass");
      await settle(anvil, installation, [process]);
      assert.deepEqual(
        process.done.map(({ subjectId, status }) => `${subjectId} ${status}`),
        [`a: ${what} succeeded`, `b: ${what} succeeded`],
      );
      assert.equal((await settledOn(anvil, process)) - settled, 2);
      assert.equal(await alarmsOf(process, "would_revert"), 0);
    });
});
