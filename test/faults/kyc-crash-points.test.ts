// kill -9 of the server at every step of an order. A gate holds the process just before or after the step's commit, so
// that it is known what the database keeps: what was not committed is undone, what was committed is done though its
// caller got no answer. Another process goes on, callers repeat their calls, and nothing is lost or doubled.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type CrashPoint, killAt, openGates, whenOf } from "../crash-gates.ts";
import { type KillableOrders, openKillableOrders, processName } from "../killable-orders.ts";
import { checkOrders, type OrderTally } from "../order-invariants.ts";
import { type Asked, untilOver } from "../order-traffic.ts";

interface OrderPoint extends CrashPoint {
  /** What ends the order instead of an approval. */
  readonly end?: "decline" | "cancel";
}

const reached = (status: string): Omit<CrashPoint, "name"> => ({
  on: "insert on kyc_order_status",
  when: `new.status = '${status}'`,
});
const closed = (phase: string): Omit<CrashPoint, "name"> => ({
  on: "insert on kyc_batch",
  when: `new.phase = '${phase}'`,
});

const failed = (reason: string): Omit<CrashPoint, "name"> => ({
  on: "insert on kyc_order_status",
  when: `new.failure_reason = '${reason}'`,
});

/** Steps that one process may be inside at once, each met by an order of its own, in the order of an order's life. */
const besideEachOther: readonly OrderPoint[] = [
  { name: "the order is created", ...reached("PENDING"), isSeen: true },
  {
    name: "a webhook was sent and its result is written",
    on: "insert on webhook_attempt",
    when: "true",
    isSeen: true,
  },
  {
    name: "the wallet opens the request",
    on: "update on kyc_token",
    when: "new.request_object is not null",
    isSeen: true,
  },
  { name: "the user declines", ...failed("USER_DECLINED"), end: "decline", isSeen: true },
  { name: "the merchant cancels", ...failed("CANCELLED"), end: "cancel", isSeen: true },
  { name: "the user approves", ...reached("INITIATING"), isSeen: true },
  { name: "the batch is closed", ...closed("initiate") },
  {
    name: "the chain takes a transaction",
    on: "insert on embedded_transaction",
    when: "true",
    isSeen: true,
  },
];
/**
 * Steps of the jobs that take all orders, one after the other, each met by two orders. That a transaction is signed is
 * none of them: the outbox signs those of orders as it signs those of businesses, which are killed there.
 */
const alone: readonly OrderPoint[] = [
  { name: "the initiate is final", ...reached("INITIATED") },
  // The last write of the transaction that also hands over the data.
  { name: "the data is handed over and the confirm batch is closed", ...closed("confirm") },
  { name: "the confirm is final", ...reached("CONFIRMED") },
];

const told = (point: OrderPoint): string => `${whenOf(point)} it commits that ${point.name}`;

/** An order from the request to its end. */
async function runOrder(
  { traffic }: KillableOrders,
  asked: Asked,
  { end }: OrderPoint,
): Promise<void> {
  const requested = await traffic.ask(asked);
  if (end !== undefined) return traffic[end](requested);
  return traffic.approve(requested, await traffic.open(asked.person, requested.link));
}

test("an order survives kill -9 at every step: what was not written is done again by another process, what was is not", async (t) => {
  await using world = await openKillableOrders({ persons: 2, packages: 4 });
  const { asked } = world;
  assert.equal(asked.length, besideEachOther.length);
  const points = [...besideEachOther, ...alone];
  const databaseUrl = world.ctx.config.databaseUrl ?? "";
  await using gates = await openGates(databaseUrl, { points, processName });
  let server = await world.startMain();
  const dieAt = async (
    stops: { point: OrderPoint; orders: readonly Asked[] }[],
  ): Promise<OrderTally> => {
    const held = stops.map(({ point, orders }) => ({
      point,
      work: async () => Promise.all(orders.map(async (each) => runOrder(world, each, point))),
    }));
    const over = await killAt(gates, held, async () => server.kill());
    server = await world.startMain();
    await Promise.all(over);
    await untilOver(world);
    return checkOrders(world.evidence);
  };
  const name = "every order ends right where the server dies";
  await t.test(`${name} ${besideEachOther.map(told).join(", and ")}`, async () => {
    await dieAt(besideEachOther.map((point, at) => ({ point, orders: asked.slice(at, at + 1) })));
  });
  let attempted = asked.length;
  for (const point of alone)
    await t.test(`${name} ${told(point)}`, async () => {
      attempted += 2;
      const { orders, attempts } = await dieAt([{ point, orders: asked.slice(0, 2) }]);
      assert.deepEqual([orders, attempts], [asked.length, attempted]);
    });
});
