import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import {
  alice,
  dataBody,
  invalidatedBody,
  referenceKey,
  signedHeaders,
  signingKey,
  statusBody,
} from "../test/signed-webhook.ts";
import {
  applyEvent,
  standingInfos,
  verifyWebhook,
  type OrderEvent,
  type OrderState,
} from "./index.ts";

const now = 1_800_000_000;

function eventOf(body: string): OrderEvent {
  const headers = signedHeaders(body, { t: now });
  const event = verifyWebhook({
    headers,
    rawBody: Buffer.from(body),
    signingKeys: [signingKey],
    now,
  });
  assert.ok(event.event !== "unknown");
  return event;
}

const triple = (field: string, data: string) => ({ field, data, pepper: `0x${"07".repeat(32)}` });

/** Two attempts, the first confirmed, a field of it invalidated, the second handed over anew. */
const story: readonly OrderEvent[] = [
  statusBody(1, "PENDING"),
  statusBody(2, "INITIATING"),
  statusBody(3, "INITIATED"),
  statusBody(4, "CONFIRMING"),
  dataBody(5, [triple("EMAIL", "old@example.com"), triple("IDCARD_DOB", "1990-02-28")]),
  statusBody(6, "CONFIRMED"),
  invalidatedBody(7, ["EMAIL"]),
  statusBody(8, "PENDING", { attempt: 2 }),
  statusBody(9, "INITIATING", { attempt: 2 }),
  statusBody(10, "INITIATED", { attempt: 2 }),
  statusBody(11, "CONFIRMING", { attempt: 2 }),
  dataBody(12, [triple("EMAIL", "new@example.com"), triple("IDCARD_DOB", "1990-02-28")], {
    attempt: 2,
  }),
  statusBody(13, "FAILED", { attempt: 2, failureReason: "CONFIRM_TX_FAILED" }),
  invalidatedBody(14, ["IDCARD_DOB"], { attempt: 2 }),
].map(eventOf);

const replay = (events: readonly OrderEvent[], state: OrderState | null = null) =>
  events.reduce(applyEvent, state);

test("events in their order lead through every status to the triples that stand", () => {
  const state = replay(story);
  assert.ok(state !== null);
  assert.equal(state.user, alice);
  assert.equal(state.referenceKey, referenceKey);
  assert.deepEqual(state.current, {
    sequence: 13,
    attempt: 2,
    status: "FAILED",
    createdAt: now + 13,
    failureReason: "CONFIRM_TX_FAILED",
  });
  assert.equal(state.history.length, 10);
  assert.deepEqual(
    state.infos.map(({ field, data, attempt, sequence }) => ({ field, data, attempt, sequence })),
    [
      { field: "EMAIL", data: "new@example.com", attempt: 2, sequence: 12 },
      { field: "IDCARD_DOB", data: "1990-02-28", attempt: 2, sequence: 12 },
    ],
  );
  assert.deepEqual(
    standingInfos(state).map(({ field }) => field),
    ["EMAIL"],
  );
});

/** Some of the story, each at least once, in any order. */
const delivered = fc
  .subarray([...story], { minLength: 1 })
  .chain((events) =>
    fc
      .array(fc.constantFrom(...events), { maxLength: 20 })
      .chain((repeats) =>
        fc
          .shuffledSubarray([...events, ...repeats], { minLength: events.length + repeats.length })
          .map((shuffled) => ({ events, shuffled })),
      ),
  );

test("late and repeated events change nothing: only which events came counts", () => {
  fc.assert(
    fc.property(delivered, ({ events, shuffled }) => {
      assert.deepEqual(replay(shuffled), replay(events));
    }),
  );
});

test("a state that was stored in between goes on as if it had not been", () => {
  fc.assert(
    fc.property(delivered, fc.nat(), ({ shuffled }, at) => {
      const cut = at % shuffled.length;
      const stored = JSON.stringify(replay(shuffled.slice(0, cut)));
      const resumed = replay(shuffled.slice(cut), JSON.parse(stored) as OrderState | null);
      assert.deepEqual(resumed, replay(shuffled));
      assert.equal(JSON.stringify(resumed), JSON.stringify(replay(shuffled)));
    }),
  );
});

test("the present status is never older than any that was told", () => {
  fc.assert(
    fc.property(delivered, ({ shuffled }) => {
      let state: OrderState | null = null;
      let newest = 0;
      for (const event of shuffled) {
        state = applyEvent(state, event);
        if (event.event === "status.updated") newest = Math.max(newest, event.sequence);
        assert.equal(state.current?.sequence ?? 0, newest);
      }
    }),
  );
});

test("a status is kept with its transactions and the reason of a failure, as they were told", () => {
  const told = {
    initiatedTxHash: `0x${"11".repeat(32)}`,
    confirmTxHash: `0x${"22".repeat(32)}`,
    failureReason: "CONFIRM_TX_FAILED",
  };
  const { sequence, attempt, status, createdAt, ...rest } =
    replay([eventOf(statusBody(1, "FAILED", told))])?.current ?? assert.fail();
  assert.deepEqual([sequence, attempt, status], [1, 1, "FAILED"]);
  assert.ok(createdAt > 0);
  assert.deepEqual(rest, told);
});

test("data that comes before any status is kept", () => {
  const state = replay(story.slice(4, 5));
  assert.equal(state?.current, null);
  assert.equal(state?.infos.length, 2);
});

test("data that was invalidated before it came does not stand", () => {
  const state = replay([story[6], story[4]].filter((event) => event !== undefined));
  assert.ok(state !== null);
  assert.deepEqual(
    standingInfos(state).map(({ field }) => field),
    ["IDCARD_DOB"],
  );
});

test("data of a later attempt stands when that of an earlier one is invalidated after it came", () => {
  const late = [invalidatedBody(15, ["EMAIL"]), invalidatedBody(16, ["EMAIL"], { attempt: 2 })].map(
    eventOf,
  );
  const standing = late.map((_, at) => {
    const state = replay([...story, ...late.slice(0, at + 1)]);
    return state === null ? null : standingInfos(state).map(({ data }) => data);
  });
  assert.deepEqual(standing, [["new@example.com"], []]);
});

test("that data of an earlier attempt is invalidated, told late, brings none of a later one back", () => {
  const told = [invalidatedBody(16, ["EMAIL"], { attempt: 2 }), invalidatedBody(15, ["EMAIL"])];
  const state = replay([...story, ...told.map(eventOf)]);
  assert.deepEqual(state === null ? null : standingInfos(state), []);
  assert.deepEqual(state, replay([...story, ...told.toReversed().map(eventOf)]));
});

test("an event of another order, person or side is refused", () => {
  const state = replay(story);
  const other = [
    statusBody(20, "PENDING", { referenceKey: "cd".repeat(32) }),
    statusBody(20, "PENDING", { user: `0x${"b".repeat(40)}` }),
    statusBody(20, "PENDING").replace(`"livemode":true`, `"livemode":false`),
  ];
  for (const body of other)
    assert.throws(() => applyEvent(state, eventOf(body)), { code: "event_misplaced" });
});

test("a state is not changed in place", () => {
  const before = replay(story.slice(0, 5));
  const text = JSON.stringify(before);
  replay(story, before);
  assert.equal(JSON.stringify(before), text);
});
