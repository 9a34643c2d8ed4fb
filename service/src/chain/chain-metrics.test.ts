import assert from "node:assert/strict";
import { test } from "node:test";
import { createLog } from "../platform/telemetry/log.ts";
import { createMetrics } from "../platform/telemetry/metrics.ts";
import { type ChainTotals, openChainMetrics } from "./chain-metrics.ts";

/** @returns a function that scrapes the metrics and returns the lines of the chain's gauges */
function openScrape(readTotals: () => Promise<ChainTotals>): () => Promise<string[]> {
  const metrics = createMetrics();
  const clock = { now: () => 0, nowMs: () => 0 };
  openChainMetrics({ metrics, clock, log: createLog({ level: "silent" }) }, readTotals);
  return async () => {
    const text = await metrics.registry.metrics();
    assert.match(text, /^process_resident_memory_bytes \d+$/m);
    return text.split("\n").filter((line) => /^chain_(?:transactions_pending|spent)/.test(line));
  };
}

const shown = [
  "chain_spent_today_coins 0.25",
  'chain_transactions_pending{status="queued"} 2',
  'chain_transactions_pending{status="sent"} 1',
];
const totals: ChainTotals = { queued: 2, sent: 1, spentWeiToday: 250_000_000_000_000_000n };

test("a scrape shows the present queue and spending, with one read", async () => {
  let reads = 0;
  const scrape = openScrape(async () => Promise.resolve({ ...totals, queued: (reads += 1) }));
  assert.deepEqual(await scrape(), shown.with(1, 'chain_transactions_pending{status="queued"} 1'));
  assert.deepEqual(await scrape(), shown);
});

test("while the database is away a scrape still has all other figures", async () => {
  let isAway = true;
  const scrape = openScrape(async () =>
    isAway ? Promise.reject(new Error("connection refused")) : Promise.resolve(totals),
  );
  assert.deepEqual(await scrape(), []);
  isAway = false;
  assert.deepEqual(await scrape(), shown);
  isAway = true;
  assert.deepEqual(await scrape(), []);
});

test("a scrape waits three seconds for a database that hangs", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const hanging = Promise.withResolvers<ChainTotals>();
  const scraped = openScrape(async () => hanging.promise)();
  t.mock.timers.tick(3_000);
  assert.deepEqual(await scraped, []);
});

test("an alarm that was never raised and an event that never came are counted from zero", async () => {
  const metrics = createMetrics();
  const clock = { now: () => 0, nowMs: () => 0 };
  const log = createLog({ level: "silent" });
  const chain = openChainMetrics({ metrics, clock, log }, async () => Promise.resolve(totals));
  const read = async () => metrics.registry.metrics();
  const text = await read();
  assert.match(text, /^chain_alarms_total\{alarm="spend_cap"\} 0$/m);
  assert.match(text, /^chain_transactions_total\{event="succeeded"\} 0$/m);
  chain.count("succeeded");
  chain.count("succeeded", 2);
  assert.match(await read(), /^chain_transactions_total\{event="succeeded"\} 3$/m);
});

test("an alarm is logged once a minute, with its details", () => {
  const metrics = createMetrics();
  let nowMs = 1_800_000_000_000;
  const lines: unknown[] = [];
  const log = createLog({
    level: "info",
    destination: {
      write(line: string) {
        const { alarm, rpc } = JSON.parse(line) as Record<string, unknown>;
        lines.push([alarm, rpc]);
      },
    },
  });
  const clock = { now: () => Math.floor(nowMs / 1000), nowMs: () => nowMs };
  const chain = openChainMetrics({ metrics, clock, log }, async () => Promise.resolve(totals));
  for (const afterMs of [0, 59_999, 1]) {
    nowMs += afterMs;
    chain.raise("node_unreachable", { rpc: afterMs });
    chain.raise("spend_cap", {});
  }
  assert.deepEqual(lines, [
    ["node_unreachable", 0],
    ["spend_cap", undefined],
    ["node_unreachable", 1],
    ["spend_cap", undefined],
  ]);
});

test("an alarm that is raised three times within a minute is counted three times", async () => {
  const metrics = createMetrics();
  const clock = { now: () => 0, nowMs: () => 0 };
  const log = createLog({ level: "silent" });
  const chain = openChainMetrics({ metrics, clock, log }, async () => Promise.resolve(totals));
  for (let time = 0; time < 3; time += 1) chain.raise("spend_cap", {});
  const text = await metrics.registry.metrics();
  assert.match(text, /^chain_alarms_total\{alarm="spend_cap"\} 3$/m);
});
