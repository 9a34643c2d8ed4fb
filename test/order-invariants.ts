// What must hold of every order once everything is over, whatever died on the way (decisions section 9): checked in the
// whole database, on the chain, and in what receivers got. Written from the decisions, not from the code.
import assert from "node:assert/strict";
import {
  type Address,
  auditLeafOf,
  buildTree,
  type Hex32,
  orderIdOf,
  orderLeafOf,
  orderPhase,
} from "@svc/protocol";
import { keccak256, toBytes } from "viem";
import { type Db, sql } from "../service/src/platform/database/db.ts";
import type { Ctx } from "../service/src/platform/context.ts";
import { readSigningKeys } from "../service/src/accounts/index.ts";
import { type ListedEvent, listEventsOf } from "../service/src/webhooks/index.ts";
import { checkKycDelivery, type SignedDelivery } from "./delivery-signatures.ts";
import { checkWebhookForm } from "./webhook-forms.ts";

/** The places that are checked. */
export interface OrderEvidence {
  readonly ctx: Pick<Ctx, "db" | "clock" | "seal" | "log">;
  /** One call of the chain's node. */
  readonly rpc: (method: string, params: readonly unknown[]) => Promise<unknown>;
  /** The contract that holds the batches. */
  readonly settlement: Address;
  readonly acknowledged: Acknowledged;
  /** Deliveries as they came in, by every receiver; null where nobody delivers. */
  readonly received: readonly ReceivedEvent[] | null;
  /** Nonces of the operator's account that somebody else used. */
  readonly foreignNonces?: readonly number[];
}

/** What callers were told with a 2xx. */
export interface Acknowledged {
  /** Reference keys of `qrcode`. */
  readonly orders: ReadonlySet<string>;
  /** Approvals, by their signature. */
  readonly approvals: ReadonlyMap<
    string,
    { readonly referenceKey: string; readonly infos: string }
  >;
  /** Declines and cancellations. */
  readonly ends: readonly { readonly referenceKey: string; readonly failureReason: string }[];
}

export interface ReceivedEvent extends SignedDelivery {
  readonly id: string;
}

/** How much was checked. */
export interface OrderTally {
  readonly orders: number;
  readonly attempts: number;
  readonly confirmed: number;
  readonly failed: number;
  readonly events: number;
}

type Phase = keyof typeof orderPhase;
const phases: readonly Phase[] = ["initiate", "confirm"];

/** Checks everything over the whole database. @throws {AssertionError} that names the order */
export async function checkOrders(evidence: OrderEvidence): Promise<OrderTally> {
  const { ctx, acknowledged } = evidence;
  const orders = await readOrders(ctx.db);
  for (const order of orders) {
    checkHistory(order);
    await checkEvents(evidence, order);
  }
  await checkAcknowledged(ctx.db, { orders, acknowledged });
  await checkChain(evidence, orders);
  await checkCredits(ctx.db, orders);
  const { received } = evidence;
  if (received !== null) {
    await checkReceived(ctx, received);
    await checkSignatures(ctx, orders, received);
  }
  await checkNothingLeft(ctx.db, { isDelivered: received !== null });
  const entries = orders.flatMap(({ history }) => history);
  const count = (status: string): number =>
    entries.filter((entry) => entry.status === status).length;
  return {
    orders: orders.length,
    attempts: count("PENDING"),
    confirmed: count("CONFIRMED"),
    failed: count("FAILED"),
    events: orders.reduce((sum, { sequence }) => sum + sequence, 0),
  };
}

interface OrderRow {
  readonly id: string;
  readonly referenceKey: string;
  readonly packageId: string;
  readonly user: string;
  readonly status: string;
  readonly attempt: number;
  readonly sequence: number;
}

interface Entry {
  readonly orderId: string;
  readonly sequence: number;
  readonly attempt: number;
  readonly status: string;
  readonly createdAt: number;
  readonly initiated: Hex32 | null;
  readonly confirmed: Hex32 | null;
  readonly failureReason: string | null;
}

type History = OrderRow & { readonly history: readonly Entry[] };

async function readOrders(db: Db): Promise<History[]> {
  const orders = await db.query<OrderRow>(sql`
    select id, encode(reference_key, 'hex') as "referenceKey", package_id as "packageId", user_address as "user",
      status, attempt, sequence
    from kyc_order order by id`);
  const entries = await db.query<Entry>(sql`
    select order_id as "orderId", sequence, attempt, status, created_at as "createdAt",
      '0x' || encode(initiated_tx_hash, 'hex') as initiated, '0x' || encode(confirm_tx_hash, 'hex') as confirmed,
      failure_reason as "failureReason"
    from kyc_order_status order by order_id, sequence`);
  const byOrder = Map.groupBy(entries, ({ orderId }) => orderId);
  return orders.map((order) => Object.assign(order, { history: byOrder.get(order.id) ?? [] }));
}

/** Decisions section 5, the table of states. */
const legal: Readonly<Record<string, readonly string[]>> = {
  nothing: ["PENDING"],
  PENDING: [
    "INITIATING",
    "FAILED USER_DECLINED",
    "FAILED EXPIRED",
    "FAILED CANCELLED",
    "FAILED INVALID_CONFIRM_DATA",
  ],
  INITIATING: ["INITIATED", "FAILED INITIATE_TX_FAILED"],
  INITIATED: ["CONFIRMING", "FAILED FIELD_REVOKED"],
  CONFIRMING: ["CONFIRMED", "FAILED CONFIRM_TX_FAILED"],
  CONFIRMED: ["PENDING"],
  FAILED: ["PENDING"],
};

const nameOf = ({ status, failureReason }: Pick<Entry, "status" | "failureReason">): string =>
  failureReason === null ? status : `${status} ${failureReason}`;

function checkHistory({ id, status, attempt, history }: History): void {
  for (const [at, entry] of history.entries()) {
    const before = history[at - 1];
    const from = before?.status ?? "nothing";
    const name = nameOf(entry);
    assert.ok(legal[from]?.includes(name), `${id}: ${from} -> ${name}`);
    const isNew = entry.status === "PENDING";
    const attempts = (before?.attempt ?? 0) + (isNew ? 1 : 0);
    assert.equal(entry.attempt, attempts, `${id}: the attempt of ${name}`);
    assert.ok((before?.createdAt ?? 0) <= entry.createdAt, `${id}: time runs backwards`);
    assert.ok(entry.status !== "INITIATED" || entry.initiated !== null, `${id}: no initiate`);
    assert.equal(entry.confirmed !== null, entry.status === "CONFIRMED", `${id}: confirm`);
    if (isNew) assert.equal(entry.initiated, null, `${id}: a new attempt has no transaction`);
  }
  const last = history.at(-1);
  assert.ok(status === "CONFIRMED" || status === "FAILED", `${id} has not ended: ${status}`);
  assert.deepEqual([last?.status, last?.attempt], [status, attempt], `${id}: its last entry`);
}

interface EventBody {
  readonly event: string;
  readonly event_id: string;
  readonly sequence: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** One event for each entry of the history, the data after each CONFIRMING, and nothing else but invalidations. */
async function checkEvents({ ctx, acknowledged }: OrderEvidence, order: History): Promise<void> {
  const { id, sequence, history } = order;
  const events: ListedEvent[] = [];
  for (let isMore = true; isMore;) {
    const page = await listEventsOf(ctx, id, { after: events.length, limit: 100 });
    events.push(...page.events);
    isMore = page.nextCursor !== undefined;
  }
  assert.deepEqual(
    events.map((event) => event.sequence),
    Array.from({ length: sequence }, (_, at) => at + 1),
    `${id}: sequences`,
  );
  const entries = new Map(history.map((entry) => [entry.sequence, entry]));
  const approvals = [...acknowledged.approvals.values()];
  const own = approvals.filter(({ referenceKey }) => referenceKey === order.referenceKey);
  const infos = new Set(own.map((each) => each.infos));
  for (const event of events) {
    const entry = entries.get(event.sequence);
    const body = JSON.parse(event.body ?? "{}") as EventBody;
    const { data } = body;
    assert.deepEqual(
      [body.event, body.event_id, body.sequence, data["referenceKey"], data["user"]],
      [event.kind, event.id, event.sequence, order.referenceKey, order.user],
    );
    const previous = entries.get(event.sequence - 1);
    if (entry !== undefined) {
      assert.equal(event.kind, "status.updated");
      assert.deepEqual(shownOf(data), entryShown(entry), `${id}: event ${event.sequence}`);
    } else if (previous?.status === "CONFIRMING") {
      assert.equal(event.kind, "data.transferred", `${id}: the data follows CONFIRMING`);
      assert.equal(data["attempt"], previous.attempt);
      assert.ok(infos.has(String(data["infos"])), `${id}: other data than its user released`);
    } else {
      assert.equal(event.kind, "data.invalidated", `${id}: event ${event.sequence} tells nothing`);
    }
  }
  const transferred = events.filter(({ kind }) => kind === "data.transferred").length;
  const confirming = history.filter(({ status }) => status === "CONFIRMING").length;
  assert.equal(transferred, confirming, `${id}: data handed over`);
}

const shownOf = (data: EventBody["data"]): unknown[] => [
  data["status"],
  data["attempt"],
  data["createdAt"],
  data["initiatedTxHash"] ?? null,
  data["confirmTxHash"] ?? null,
  data["failureReason"] ?? null,
];

const entryShown = (entry: Entry): unknown[] => [
  entry.status,
  entry.attempt,
  entry.createdAt,
  entry.initiated,
  entry.confirmed,
  entry.failureReason,
];

/** What was answered with a 2xx happened. */
async function checkAcknowledged(
  db: Db,
  { orders, acknowledged }: { orders: readonly History[]; acknowledged: Acknowledged },
): Promise<void> {
  const byKey = new Map(orders.map((order) => [order.referenceKey, order]));
  for (const key of acknowledged.orders) assert.ok(byKey.has(key), `the order ${key} is lost`);
  const kept = await db.query<{ signature: string; key: string; attempt: number }>(sql`
    select '0x' || encode(signature, 'hex') as signature, encode(reference_key, 'hex') as key, kyc_consent.attempt
    from kyc_consent join kyc_order on kyc_order.id = order_id`);
  const consents = new Map(kept.map((each) => [each.signature, each]));
  for (const [signature, { referenceKey }] of acknowledged.approvals) {
    const consent = consents.get(signature);
    assert.equal(consent?.key, referenceKey, `an approval of ${referenceKey} is lost`);
    const isApproved = byKey
      .get(referenceKey)
      ?.history.some((each) => each.attempt === consent?.attempt && each.status === "INITIATING");
    assert.ok(isApproved, `an approval of ${referenceKey} had no effect`);
  }
  const ends = Map.groupBy(acknowledged.ends, (end) => `${end.referenceKey} ${end.failureReason}`);
  for (const [name, given] of ends) {
    const [key = "", reason] = name.split(" ");
    const entries = byKey.get(key)?.history ?? [];
    const found = entries.filter(({ failureReason }) => failureReason === reason).length;
    assert.ok(found >= given.length, `${key}: ${given.length} ends by ${reason}, found ${found}`);
  }
}

interface Log {
  readonly topics: readonly [Hex32, Hex32, Hex32];
  readonly transactionHash: Hex32;
}

interface Batch {
  readonly id: string;
  readonly phase: Phase;
  readonly root: Hex32;
  readonly leaves: readonly Hex32[];
  readonly auditLeaf: Hex32;
  readonly transactionHash: Hex32 | null;
}

/** Every root on the chain is that of one of our batches, once; and each attempt has the leaves that its end requires. */
async function checkChain(evidence: OrderEvidence, orders: readonly History[]): Promise<void> {
  const { ctx, settlement } = evidence;
  const batches = new Map((await readBatches(ctx.db)).map((batch) => [batch.root, batch]));
  const places = new Map<Hex32, Batch>();
  for (const phase of phases) {
    const name = phase === "initiate" ? "Initiated" : "Confirmed";
    const topics = [keccak256(toBytes(`${name}(address,bytes32)`))];
    const logs = (await evidence.rpc("eth_getLogs", [
      { fromBlock: "0x0", toBlock: "latest", address: settlement, topics },
    ])) as Log[];
    assert.equal(new Set(logs.map((log) => log.topics[2])).size, logs.length, `${phase} twice`);
    for (const log of logs) {
      const batch = batches.get(log.topics[2]);
      assert.equal(batch?.phase, phase, `nobody's root is on the chain: ${log.topics[2]}`);
      if (batch === undefined) continue;
      assert.equal(batch.transactionHash, log.transactionHash, `the batch ${batch.id}`);
      assert.equal(buildTree(batch.leaves).root, batch.root);
      for (const leaf of batch.leaves.filter((each) => each !== batch.auditLeaf)) {
        assert.ok(!places.has(leaf), `a leaf is final twice: ${leaf}`);
        places.set(leaf, batch);
      }
    }
  }
  await checkLeaves(ctx.db, orders, places);
  await checkNonces(ctx.db, evidence.foreignNonces ?? []);
}

async function checkLeaves(
  db: Db,
  orders: readonly History[],
  places: ReadonlyMap<Hex32, Batch>,
): Promise<void> {
  const consents = await readConsents(db);
  const found = new Set<Hex32>();
  for (const { id, referenceKey, history } of orders) {
    for (const [attempt, entries] of Map.groupBy(history, (entry) => entry.attempt)) {
      const consent = consents.get(`${id} ${attempt}`);
      const has = Object.fromEntries(
        phases.map((phase) => {
          if (consent === undefined) return [phase, null];
          const order = orderIdOf({ referenceKey, attempt, salt: consent.salt });
          const leaf = orderLeafOf({ ...consent, phase: orderPhase[phase], order });
          found.add(leaf);
          return [phase, places.get(leaf)?.transactionHash ?? null];
        }),
      );
      const last = entries.at(-1);
      assert.ok(last !== undefined);
      const isApproved = entries.some(({ status }) => status === "INITIATING");
      assert.equal(consent !== undefined, isApproved, `${id}.${attempt}: the consent`);
      const name = `${id}.${attempt} ${nameOf(last)}`;
      // A late initiate may still be mined after its order was given up.
      if (last.failureReason !== "INITIATE_TX_FAILED")
        assert.equal(has["initiate"], last.initiated, `${name}: initiate`);
      assert.equal(has["confirm"], last.confirmed, `${name}: confirm`);
    }
  }
  for (const leaf of places.keys()) assert.ok(found.has(leaf), `nobody's leaf is final: ${leaf}`);
}

async function readBatches(db: Db): Promise<Batch[]> {
  const rows = await db.query<
    Omit<Batch, "leaves" | "auditLeaf"> & { leaves: Buffer; head: Hex32; position: number }
  >(sql`
    select id, phase, '0x' || encode(root, 'hex') as root, leaves, '0x' || encode(audit_head, 'hex') as head,
      audit_position as position, '0x' || encode(transaction_hash, 'hex') as "transactionHash"
    from kyc_batch join kyc_batch_leaves on batch_id = id`);
  return rows.map((row) => {
    const { leaves, head, position } = row;
    const split = Array.from(
      { length: leaves.length / 32 },
      (_, at): Hex32 => `0x${leaves.subarray(at * 32, at * 32 + 32).toString("hex")}`,
    );
    return Object.assign(row, { leaves: split, auditLeaf: auditLeafOf({ head, position }) });
  });
}

interface Consent {
  readonly salt: Hex32;
  readonly consent: Hex32;
  readonly data: Hex32;
}

async function readConsents(db: Db): Promise<Map<string, Consent>> {
  const rows = await db.query<Consent & { name: string }>(sql`
    select order_id || ' ' || attempt as name, '0x' || encode(salt, 'hex') as salt,
      '0x' || encode(consent, 'hex') as consent, '0x' || encode(data_hash, 'hex') as data
    from kyc_consent`);
  return new Map(rows.map((row) => [row.name, row]));
}

/** Everything that was queued for the chain is final, under nonces without gap or double. */
async function checkNonces(db: Db, foreign: readonly number[]): Promise<void> {
  const rows = await db.query<{ nonce: number | null; finished: number | null }>(sql`
    select nonce, finished_at as finished from chain_transaction`);
  assert.ok(
    rows.every(({ nonce, finished }) => nonce !== null && finished !== null),
    "a transaction is not final",
  );
  const nonces = [...rows.map(({ nonce }) => nonce ?? -1), ...foreign].toSorted((a, b) => a - b);
  assert.deepEqual(
    nonces,
    nonces.map((_, at) => at),
    "nonces",
  );
}

/** Nothing is held any more, and as many transfers are spent as attempts were confirmed. */
async function checkCredits(db: Db, orders: readonly History[]): Promise<void> {
  const packages = await db.query<{ id: string; held: number; consumed: number; total: number }>(
    sql`select id, transfers_held as held, transfers_consumed as consumed, transfers_total as total
      from kyc_package`,
  );
  for (const { id, held, consumed, total } of packages) {
    const confirmed = orders
      .filter(({ packageId }) => packageId === id)
      .flatMap(({ history }) => history)
      .filter(({ status }) => status === "CONFIRMED").length;
    assert.deepEqual([held, consumed], [0, confirmed], `credits of the package ${id}`);
    assert.ok(consumed <= total, `the package ${id} is overdrawn`);
  }
}

/** Receivers got every event once at least, as it was announced, first in its order; and nothing else. */
async function checkReceived(
  ctx: OrderEvidence["ctx"],
  received: readonly ReceivedEvent[],
): Promise<void> {
  const events = await ctx.db.query<{ id: string; streamId: string; delivered: number | null }>(sql`
    select id, stream_id as "streamId", delivered_at as delivered
    from webhook_event order by stream_id, sequence`);
  const firsts = new Map<string, number>();
  const bodies = new Map<string, Set<string>>();
  for (const [at, { id, body }] of received.entries()) {
    if (!firsts.has(id)) firsts.set(id, at);
    bodies.set(id, (bodies.get(id) ?? new Set()).add(body));
  }
  for (const [streamId, stream] of Map.groupBy(events, (event) => event.streamId)) {
    let last = -1;
    for (const { id, delivered } of stream) {
      assert.notEqual(delivered, null, `${id} is not delivered`);
      const first = firsts.get(id) ?? -1;
      assert.notEqual(first, -1, `${id} was never received`);
      assert.ok(first > last, `${id} of ${streamId} came out of its order`);
      last = first;
    }
  }
  const known = await readBodies(ctx, [...new Set(events.map(({ streamId }) => streamId))]);
  for (const [id, given] of bodies)
    assert.deepEqual([...given], [known.get(id)], `the body of ${id}`);
}

/** Every delivery, repeated ones included, is good under the signing key of its order's package. */
async function checkSignatures(
  ctx: OrderEvidence["ctx"],
  orders: readonly OrderRow[],
  received: readonly ReceivedEvent[],
): Promise<void> {
  const packages = new Map(orders.map(({ referenceKey, packageId }) => [referenceKey, packageId]));
  const keys = await readSigningKeys(ctx, [...new Set(packages.values())]);
  for (const delivery of received) {
    checkWebhookForm(delivery.body);
    const { data } = JSON.parse(delivery.body) as EventBody;
    checkKycDelivery(delivery, keys.get(packages.get(String(data["referenceKey"])) ?? "") ?? "");
  }
}

async function readBodies(
  ctx: OrderEvidence["ctx"],
  streamIds: readonly string[],
): Promise<Map<string, string | null>> {
  const bodies = new Map<string, string | null>();
  for (const streamId of streamIds) {
    for (let after = 0, count = 1; count > 0; after += count) {
      const { events } = await listEventsOf(ctx, streamId, { after, limit: 100 });
      for (const { id, body } of events) bodies.set(id, body);
      count = events.length;
    }
  }
  return bodies;
}

/** No value waits any more, and no delivery is under way. */
async function checkNothingLeft(db: Db, { isDelivered }: { isDelivered: boolean }): Promise<void> {
  const [left] = await db.query<{ payloads: number; deliveries: number; events: number }>(sql`
    select (select count(*) from kyc_payload) as payloads,
      (select count(*) from webhook_delivery where ${isDelivered}) as deliveries,
      (select count(*) from webhook_event where stream_id not in (select id::text from kyc_order)) as events`);
  assert.deepEqual(left, { payloads: 0, deliveries: 0, events: 0 });
}
