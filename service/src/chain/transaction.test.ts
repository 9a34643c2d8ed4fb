import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bumpedFees,
  type ChainView,
  feesAt,
  isOverpaid,
  judge,
  noncesFrom,
  patienceOf,
  type Receipt,
  refusalPauseSeconds,
  type SentTransaction,
} from "./transaction.ts";

const [first, second, blockA, blockB] = ["11", "22", "aa", "bb"].map(
  (byte): `0x${string}` => `0x${byte.repeat(32)}`,
) as [`0x${string}`, `0x${string}`, `0x${string}`, `0x${string}`];
const now = 1_000_000;

const sent = (changed: Partial<SentTransaction> = {}): SentTransaction => ({
  id: "1",
  kind: "test",
  subjectId: "a",
  nonce: 7,
  hashes: [second, first],
  minedBlockHash: null,
  foreignSince: null,
  signedAt: now,
  sentAt: now,
  ...changed,
});

const receiptOf = (changed: Partial<Receipt> = {}): Receipt => ({
  hash: first,
  blockHash: blockA,
  blockNumber: 100,
  succeeded: true,
  ...changed,
});

/** A chain whose block 100 is A, and whose final blocks have used nonces below 7. */
const view = (
  changed: { receipt?: Receipt; held?: `0x${string}`; final?: number; used?: number } = {},
): ChainView => ({
  finalNumber: changed.final ?? 90,
  finalNonces: changed.used ?? 7,
  receipts: new Map(changed.receipt === undefined ? [] : [[changed.receipt.hash, changed.receipt]]),
  blocks: new Map([[100, { hash: changed.held ?? blockA, time: 42 }]]),
});

const verdicts: [what: string, SentTransaction, ChainView, expected: object][] = [
  ["no receipt", sent(), view(), { is: "waiting" }],
  ["a receipt above the final block", sent(), view({ receipt: receiptOf() }), { is: "mined" }],
  [
    "a receipt in the final block",
    sent(),
    view({ receipt: receiptOf(), final: 100 }),
    { is: "final", blockTime: 42 },
  ],
  [
    "a reverted one in the final block",
    sent(),
    view({ receipt: receiptOf({ succeeded: false }), final: 100 }),
    { is: "final" },
  ],
  [
    "a receipt of the newer form",
    sent(),
    view({ receipt: receiptOf({ hash: second }), final: 100 }),
    { is: "final" },
  ],
  [
    "a receipt whose block the chain no longer holds",
    sent(),
    view({ receipt: receiptOf(), held: blockB, final: 100 }),
    { is: "waiting" },
  ],
  [
    "the same when it was seen in that block",
    sent({ minedBlockHash: blockA }),
    view({ receipt: receiptOf(), held: blockB, final: 100, used: 8 }),
    { is: "lost" },
  ],
  ["no receipt where there was one", sent({ minedBlockHash: blockA }), view(), { is: "lost" }],
  ["its nonce used, first look", sent(), view({ used: 8 }), { is: "suspected", since: now }],
  [
    "its nonce used, a second too early",
    sent({ foreignSince: now - 29 }),
    view({ used: 8 }),
    { is: "suspected", since: now - 29 },
  ],
  [
    "its nonce used for long enough",
    sent({ foreignSince: now - 30 }),
    view({ used: 8 }),
    { is: "displaced" },
  ],
  [
    "its nonce used by itself",
    sent({ foreignSince: now - 30 }),
    view({ used: 8, receipt: receiptOf() }),
    { is: "mined" },
  ],
  [
    "its nonce used, its receipt in a block that is not held",
    sent({ foreignSince: now - 30 }),
    view({ used: 8, receipt: receiptOf(), held: blockB }),
    { is: "waiting" },
  ],
  ["sent 14 s ago", sent({ sentAt: now - 14 }), view(), { is: "waiting" }],
  ["sent 15 s ago", sent({ sentAt: now - 15 }), view(), { is: "overdue", needs: "resend" }],
  [
    "signed 60 s ago",
    sent({ signedAt: now - 60, sentAt: now - 1 }),
    view(),
    { is: "overdue", needs: "bump" },
  ],
];

for (const [what, transaction, chain, expected] of verdicts) {
  const { is } = expected as { is: string };
  test(`${what}: ${is}`, () => {
    const verdict = judge(transaction, chain, { now, patience: patienceOf.remote });
    assert.partialDeepStrictEqual(verdict, expected);
  });
}

test("where there are no fees nothing is raised, and the same bytes go out again after a second", () => {
  const patience = patienceOf.embedded;
  const old = sent({ signedAt: now - 600, sentAt: now - 1 });
  assert.deepEqual(judge(old, view(), { now, patience }), { is: "overdue", needs: "resend" });
});

test("a bump raises both fees by an eighth at least, and follows the market", () => {
  const old = { maxFee: 1000n, priorityFee: 80n };
  assert.deepEqual(bumpedFees(old, feesAt(10n, 1n)), { maxFee: 1126n, priorityFee: 91n });
  assert.deepEqual(bumpedFees(old, feesAt(2000n, 200n)), { maxFee: 4200n, priorityFee: 200n });
  assert.deepEqual(bumpedFees({ maxFee: 0n, priorityFee: 0n }, feesAt(0n, 0n)), {
    maxFee: 1n,
    priorityFee: 1n,
  });
  const tipHeavy = bumpedFees({ maxFee: 100n, priorityFee: 100n }, feesAt(0n, 500n));
  assert.ok(tipHeavy.maxFee >= tipHeavy.priorityFee);
});

test("ten times the market's fee is the most that is offered", () => {
  const market = feesAt(100n, 10n);
  assert.equal(isOverpaid({ maxFee: 2100n, priorityFee: 1n }, market), false);
  assert.equal(isOverpaid({ maxFee: 2101n, priorityFee: 1n }, market), true);
});

test("holes are filled before new nonces are given out", () => {
  const given = { chainCount: 5, nextNonce: 9, holes: [6, 8] };
  assert.deepEqual(noncesFrom(given, 1), { nonces: [6], nextNonce: 9 });
  assert.deepEqual(noncesFrom(given, 3), { nonces: [6, 8, 9], nextNonce: 10 });
  assert.deepEqual(noncesFrom({ ...given, holes: [], chainCount: 12 }, 2), {
    nonces: [12, 13],
    nextNonce: 14,
  });
});

test("what would revert waits 1, 2, 4, 8, 16 s and then always 16", () => {
  assert.deepEqual([0, 1, 2, 3, 4, 5, 9].map(refusalPauseSeconds), [1, 2, 4, 8, 16, 16, 16]);
});
