import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bumpedFees,
  type ChainView,
  feesAt,
  gasAtLeast,
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
  ["without a receipt", sent(), view(), { is: "waiting" }],
  [
    "whose receipt is above the final block",
    sent(),
    view({ receipt: receiptOf() }),
    { is: "mined" },
  ],
  [
    "whose receipt is in the block after the final one",
    sent(),
    view({ receipt: receiptOf(), final: 99 }),
    { is: "mined" },
  ],
  [
    "whose receipt is in the final block",
    sent(),
    view({ receipt: receiptOf(), final: 100 }),
    { is: "final", blockTime: 42 },
  ],
  [
    "that reverted in the final block",
    sent(),
    view({ receipt: receiptOf({ succeeded: false }), final: 100 }),
    { is: "final" },
  ],
  [
    "whose newer form has a receipt in the final block",
    sent(),
    view({ receipt: receiptOf({ hash: second }), final: 100 }),
    { is: "final" },
  ],
  [
    "whose receipt is of a block that the chain no longer holds",
    sent(),
    view({ receipt: receiptOf(), held: blockB, final: 100 }),
    { is: "waiting" },
  ],
  [
    "that was seen in a block that the chain no longer holds",
    sent({ minedBlockHash: blockA }),
    view({ receipt: receiptOf(), held: blockB, final: 100, used: 8 }),
    { is: "lost" },
  ],
  [
    "that was seen in a block, and has no receipt any more,",
    sent({ minedBlockHash: blockA }),
    view(),
    { is: "lost" },
  ],
  [
    "whose nonce is found used for the first time",
    sent(),
    view({ used: 8 }),
    { is: "suspected", since: now },
  ],
  [
    "whose nonce has been used for 29 s",
    sent({ foreignSince: now - 29 }),
    view({ used: 8 }),
    { is: "suspected", since: now - 29 },
  ],
  [
    "whose nonce has been used for 30 s",
    sent({ foreignSince: now - 30 }),
    view({ used: 8 }),
    { is: "displaced" },
  ],
  [
    "that used its nonce itself",
    sent({ foreignSince: now - 30 }),
    view({ used: 8, receipt: receiptOf() }),
    { is: "mined" },
  ],
  [
    "whose nonce is used, and whose receipt is of a block that is not held,",
    sent({ foreignSince: now - 30 }),
    view({ used: 8, receipt: receiptOf(), held: blockB }),
    { is: "waiting" },
  ],
  ["that was sent 14 s ago", sent({ sentAt: now - 14 }), view(), { is: "waiting" }],
  [
    "that was sent 15 s ago",
    sent({ sentAt: now - 15 }),
    view(),
    { is: "overdue", needs: "resend" },
  ],
  [
    "that was signed 60 s ago",
    sent({ signedAt: now - 60, sentAt: now - 1 }),
    view(),
    { is: "overdue", needs: "bump" },
  ],
];

for (const [what, transaction, chain, expected] of verdicts) {
  const { is, needs } = expected as { is: string; needs?: string };
  test(`a transaction ${what} is ${is}${needs === undefined ? "" : `, and needs a ${needs}`}`, () => {
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

test("data have a price below which no chain takes them: a zero byte a quarter of that of another", () => {
  assert.equal(gasAtLeast("0x"), 21_000n);
  assert.equal(gasAtLeast("0x0000"), 21_020n);
  assert.equal(gasAtLeast("0x00ff"), 21_050n);
});
