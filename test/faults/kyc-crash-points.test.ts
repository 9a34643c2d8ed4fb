// kill -9 of the server at every step of an order. A gate holds the process inside the step, so that it is surely there
// when it dies, and it is known what the database does with it: what was not committed is undone, what was is done though
// nobody was told. Another process goes on, callers ask again, and nothing is lost or doubled.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { type CrashPoint, type GateTime, openGates, pointsAt, whenOf } from "../crash-gates.ts";
import { type KillableOrders, openKillableOrders, processName } from "../killable-orders.ts";
import { checkOrders } from "../order-invariants.ts";
import { untilOver } from "../order-traffic.ts";

interface OrderPoint extends CrashPoint {
  /** What ends the order instead of an approval. */
  readonly end?: "decline" | "cancel";
}

const reached = (status: string): Omit<CrashPoint, "name"> => ({
  on: "insert on kyc_order_status",
  when: `new.status = '${status}'`,
});
const sent = (kind: string): Omit<CrashPoint, "name"> => ({
  on: "update on chain_transaction",
  when: `new.status = 'sent' and old.status = 'queued' and new.kind = '${kind}'`,
});
const closed = (phase: string): Omit<CrashPoint, "name"> => ({
  on: "insert on kyc_batch",
  when: `new.phase = '${phase}'`,
});

const crashPoints: readonly OrderPoint[] = [
  { name: "the order is created", ...reached("PENDING"), isSeen: true },
  {
    name: "the wallet opens the request",
    on: "update on kyc_token",
    when: "new.request_object is not null",
    isSeen: true,
  },
  { name: "the user approves", ...reached("INITIATING"), isSeen: true },
  { name: "the batch is closed", ...closed("initiate") },
  { name: "the initiate is signed", ...sent("kyc.initiate") },
  {
    name: "the chain takes a transaction",
    on: "insert on embedded_transaction",
    when: "true",
    isSeen: true,
  },
  { name: "the initiate is final", ...reached("INITIATED") },
  {
    name: "the data is handed over",
    on: "insert on webhook_event",
    when: "new.kind = 'data.transferred'",
  },
  { name: "the confirm batch is closed", ...closed("confirm") },
  { name: "the confirm is signed", ...sent("kyc.confirm") },
  { name: "the confirm is final", ...reached("CONFIRMED") },
  {
    name: "a webhook was sent and its result is written",
    on: "insert on webhook_attempt",
    when: "true",
    isSeen: true,
  },
  { name: "the user declines", ...reached("FAILED"), end: "decline", isSeen: true },
  { name: "the merchant cancels", ...reached("FAILED"), end: "cancel", isSeen: true },
];

/** Every person's order from the request to its end. */
async function runOrders({ traffic, asked }: KillableOrders, { end }: OrderPoint): Promise<void> {
  await Promise.all(
    asked.map(async (each) => {
      const requested = await traffic.ask(each);
      if (end !== undefined) return traffic[end](requested);
      return traffic.approve(requested, await traffic.open(each.person, requested.link));
    }),
  );
}

/** The server under test dies at every point, and each time another one goes on. */
async function dieEverywhere(t: TestContext, time: GateTime): Promise<void> {
  await using world = await openKillableOrders({ persons: 2, packages: 1 });
  const databaseUrl = world.ctx.config.databaseUrl ?? "";
  await using gates = await openGates(databaseUrl, { points: crashPoints, time, processName });
  let server = await world.startMain();
  for (const point of pointsAt(crashPoints, time)) {
    await t.test(
      `every order ends right where the server dies ${whenOf(time)} it commits that ${point.name}`,
      async () => {
        await gates.close(point);
        const over = runOrders(world, point);
        over.catch(() => undefined);
        await gates.untilReached(point);
        await server.kill();
        await gates.open(point);
        server = await world.startMain();
        await over;
        await untilOver(world);
        const tally = await checkOrders(world.evidence);
        assert.equal(tally.orders, world.asked.length);
      },
    );
  }
}

test("an order survives kill -9 at every step", { concurrency: true }, async (t) => {
  const before = t.test(
    "a step that is killed before it is written is done again, by another process",
    (each) => dieEverywhere(each, "statement"),
  );
  const after = t.test(
    "a step that is killed after it is written and before anybody is told is not done again",
    (each) => dieEverywhere(each, "commit"),
  );
  await Promise.all([before, after]);
});
