// Receivers that fail in every way: their orders end all the same, nobody else waits for them, and when they are well
// again they are sent every event, as it was announced.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { sql } from "../../service/src/platform/database/db.ts";
import { until } from "../patience.ts";
import { openKillableOrders } from "../killable-orders.ts";
import { checkOrders, type ReceivedEvent } from "../order-invariants.ts";
import { textHeaders, untilOver } from "../order-traffic.ts";
import { freePort } from "../world.ts";

type Behaviour = (request: IncomingMessage, response: ServerResponse) => void;

const statusOf =
  (code: number, headers: Record<string, string> = {}): Behaviour =>
  (_request, response) =>
    void response.writeHead(code, headers).end();

function stream(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200);
  const write = (): void => {
    while (response.writable && response.write(Buffer.alloc(4096)));
    if (response.writable) response.once("drain", write);
  };
  write();
}

interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly received: ReceivedEvent[];
  readonly wasAway: boolean;
  /** From now on it takes everything. */
  recover(): Promise<void>;
}

/** @param behaviour null for an address at which nobody listens */
async function openReceiver(behaviour: Behaviour | null): Promise<Receiver> {
  const received: ReceivedEvent[] = [];
  const port = await freePort();
  let isWell = false;
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const headers = textHeaders(request);
      received.push({ id: String(headers["svc-event-id"]), headers, body });
      if (isWell || behaviour === null) response.end();
      else behaviour(request, response);
    });
  });
  const listen = async (): Promise<void> => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  if (behaviour !== null) await listen();
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    wasAway: behaviour === null,
    async recover() {
      isWell = true;
      if (behaviour === null) await listen();
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const sequenceOf = ({ body }: ReceivedEvent): number =>
  (JSON.parse(body) as { sequence: number }).sequence;

/** First attempts arrive in order; retries to a receiver that was away arrive in any order. */
function inOrder({ received, wasAway }: Receiver): readonly ReceivedEvent[] {
  return wasAway ? received.toSorted((a, b) => sequenceOf(a) - sequenceOf(b)) : received;
}

test("receivers that refuse, hang, stream, redirect or answer an error delay nobody and miss nothing", async () => {
  const canary = createServer((_request, response) => void response.end());
  let canaryCalls = 0;
  canary.on("connection", () => (canaryCalls += 1));
  canary.listen(0, "127.0.0.1");
  await once(canary, "listening");
  const location = `http://127.0.0.1:${(canary.address() as AddressInfo).port}/`;
  const behaviours: readonly [string, Behaviour | null, outcome: string][] = [
    ["refuses", null, "unreachable"],
    ["breaks off", (request) => void request.socket.destroy(), "unreachable"],
    ["hangs", () => undefined, "timeout"],
    [
      "answers after 16 s",
      (_request, response) => void setTimeout(() => response.end(), 16_000).unref(),
      "timeout",
    ],
    ["streams for ever", stream, "too_large"],
    ["redirects", statusOf(307, { location }), "redirect"],
    ["answers 410", statusOf(410), "refused"],
    ["answers 429", statusOf(429, { "retry-after": "5" }), "refused"],
    ["answers 500", statusOf(500), "refused"],
  ];
  await using stack = new AsyncDisposableStack();
  const world = stack.use(
    await openKillableOrders({ persons: 1, packages: behaviours.length + 1 }),
  );
  stack.defer(() => void canary.close());
  await world.startMain();
  const { ctx, traffic } = world;
  const order = async (index: number, callback?: string): Promise<string> => {
    const [asked] = world.asked.slice(index);
    assert.ok(asked);
    const requested = await traffic.ask({
      ...asked,
      ...(callback === undefined ? {} : { callback }),
    });
    await traffic.approve(requested, await traffic.open(asked.person, requested.link));
    return requested.referenceKey;
  };
  const receivers = await Promise.all(
    behaviours.map(async ([, behaviour]) => stack.use(await openReceiver(behaviour))),
  );
  const orders = await Promise.all(receivers.map(async ({ url }, at) => order(at, url)));
  await order(behaviours.length);
  // Well before a delivery to any of the sick receivers is given up.
  await until("the healthy receiver has everything", async () =>
    traffic.received.length === 6 ? true : null,
  );
  await until("every order is confirmed", async () => {
    const rows = await ctx.db.query(sql`select from kyc_order where status <> 'CONFIRMED'`);
    return rows.length === 0 ? true : null;
  });
  const firsts = sql`
    select encode(reference_key, 'hex') as key, min(outcome) as outcome, count(distinct outcome)::integer as outcomes
    from kyc_order join webhook_event on stream_id = kyc_order.id::text
      join webhook_attempt on webhook_attempt.id like webhook_event.id || '.%'
    group by reference_key`;
  interface First {
    key: string;
    outcome: string;
    outcomes: number;
  }
  await until("every receiver has failed", async () =>
    (await ctx.db.query<First>(firsts)).length === behaviours.length + 1 ? true : null,
  );
  const found = new Map((await ctx.db.query<First>(firsts)).map((row) => [row.key, row]));
  for (const [at, [name, , outcome]] of behaviours.entries())
    assert.deepEqual(
      [found.get(orders[at] ?? "")?.outcome, found.get(orders[at] ?? "")?.outcomes],
      [outcome, 1],
      name,
    );
  for (const receiver of receivers) await receiver.recover();
  await untilOver(world);
  const received = [...traffic.received, ...receivers.flatMap((each) => inOrder(each))];
  const tally = await checkOrders({ ...world.evidence, received });
  assert.equal(tally.confirmed, behaviours.length + 1);
  assert.equal(canaryCalls, 0);
});
