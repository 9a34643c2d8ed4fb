import assert from "node:assert/strict";
import { test } from "node:test";
import { advanceRound, beginRound, endpointsMax } from "./claim-round.ts";
import { type Claimed, type Delivery, firstEndpoint } from "./delivery-store.ts";

const endpoints = [1, 2, 3].map((n) => firstEndpoint.replace(/0$/, String(n)));
const [one = "", two = "", three = ""] = endpoints;

const claimed = (endpointIds: readonly string[], about: Partial<Claimed> = {}): Claimed => ({
  hasTurn: true,
  due: 100,
  scanned: 3,
  lastEndpoint: three,
  deliveries: endpointIds.map((endpointId) => ({ endpointId }) as Delivery),
  ...about,
});

test("a round is over once all that is due was taken", () => {
  const next = advanceRound(beginRound(two), claimed([three], { due: 1 }), 10);
  assert.deepEqual(next, { round: beginRound(two), isOver: true, hasDueLeft: false });
});

test("a process that did not get the turn tries again at the same place", () => {
  const next = advanceRound(beginRound(two), claimed([], { hasTurn: false }), 10);
  assert.deepEqual(next, { round: beginRound(two), isOver: false, hasDueLeft: false });
});

test("after a claim that reached its limit, the next one begins after the last endpoint that it took from", () => {
  const { round, isOver } = advanceRound(beginRound(firstEndpoint), claimed([two, one]), 2);
  assert.deepEqual(round, { after: two, isFull: true, claimed: 2 });
  assert.equal(isOver, false);
});

test("after a claim that looked at as many endpoints as it may, the next one begins after the last of them", () => {
  const given = claimed([one], { scanned: endpointsMax, lastEndpoint: two });
  assert.equal(advanceRound(beginRound(firstEndpoint), given, 10).round.after, two);
});

test("the round ends once a full round took nothing", () => {
  const nothing = claimed([]);
  const rest = advanceRound(beginRound(two), nothing, 10);
  assert.deepEqual(rest, { round: beginRound(firstEndpoint), isOver: false, hasDueLeft: true });
  const part = { after: two, isFull: true, claimed: 1 };
  assert.equal(advanceRound(part, nothing, 10).isOver, false);
  assert.equal(advanceRound(rest.round, nothing, 10).isOver, true);
});

test("the round does not end after a full round of which any part took something", () => {
  const part = (endpointIds: readonly string[], lastEndpoint: string): Claimed =>
    claimed(endpointIds, { scanned: endpointsMax, lastEndpoint });
  const first = advanceRound(beginRound(firstEndpoint), part([one], one), 10);
  const second = advanceRound(first.round, part([], two), 10);
  assert.deepEqual(second.round, { after: two, isFull: true, claimed: 1 });
  assert.equal(advanceRound(second.round, claimed([]), 10).isOver, false);
});
