import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { parseConfig } from "../platform/config/config.ts";
import { openDb } from "../platform/database/db.ts";
import { createLog } from "../platform/telemetry/log.ts";
import { createMetrics } from "../platform/telemetry/metrics.ts";
import { createOutbound } from "../platform/outbound/outbound.ts";
import { createRandom } from "../platform/cryptography/random.ts";
import { createSeal } from "../platform/cryptography/seal.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { ulid } from "../platform/ids.ts";
import { getEndpoint, reactivateEndpoint, registerEndpoint } from "./endpoints.ts";
import type { KybEvent, KycEvent, NewEvent } from "./event.ts";
import { enqueueEvents, listEventsOf, newEventId, redeliverEvents } from "./events.ts";
import { Sender } from "./sender.ts";
import type { WebhooksContext } from "./webhooks-context.ts";
import { emptyWebhooks, insertClientDomain } from "./test-endpoint-store.ts";

export const signingKey = "whk_2ZkN0tBq4l";

/** Senders over one database, with a clock that the test moves. */
export interface TestWebhooks extends AsyncDisposable, ReturnType<typeof verbsOn> {
  readonly ctx: WebhooksContext;
  readonly clientDomainId: string;
  advance(seconds: number): void;
  /** Makes all deliveries that are due, and waits for their end. @param by the sender; by default the first */
  deliver(by?: Sender): Promise<void>;
  /** Opens a further sender, as another process would. */
  openSender(changed?: Partial<WebhooksContext>, bounds?: { underWayMax: number }): Sender;
  openReceiver(answer?: Answer): Promise<Receiver>;
  /** Closes senders and receivers and deletes events and endpoints, so that the next test begins afresh. */
  empty(): Promise<void>;
}

export type Answer = (request: Received, response: ServerResponse) => void;

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** As they were spelled. */
  readonly headerNames: readonly string[];
  readonly body: string;
}

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  setAnswer(answer: Answer): void;
}

export const ok: Answer = (_request, response) => void response.writeHead(200).end("thanks");
export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    void response.writeHead(code, headers).end();

const oneKey = async (ids: readonly string[]): Promise<Map<string, string>> =>
  new Map(ids.map((id) => [id, signingKey]));

export async function openTestWebhooks(): Promise<TestWebhooks> {
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await openTestDatabase());
  let nowMs = Date.now();
  const clock = { nowMs: () => nowMs, now: () => Math.floor(nowMs / 1000) };
  const db = stack.use(openDb({ ...database.connection, connections: 6 }));
  const outbound = createOutbound({ profile: "dev", ownHosts: [] });
  stack.defer(async () => outbound.close());
  const used: Partial<WebhooksContext> = {
    config: parseConfig({ PORT: "4000", DRAIN_SECONDS: "1" }),
    db,
    clock,
    random: { ...createRandom(), fraction: () => 0 },
    seal: createSeal(["5a".repeat(32)]),
    log: createLog({ level: "silent" }),
    metrics: createMetrics(),
    outbound,
    signingKeys: oneKey,
  };
  // This slice uses nothing else of the context.
  const ctx = used as WebhooksContext;
  const clientDomainId = randomUUID();
  await insertClientDomain(db, clientDomainId);
  const opened = stack.move();
  const receivers: Server[] = [];
  let senders = [new Sender(ctx)];
  async function closeAll(): Promise<void> {
    for (const each of senders) await each[Symbol.asyncDispose]();
    for (const server of receivers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  }
  return {
    ctx,
    clientDomainId,
    ...verbsOn(ctx, clientDomainId),
    advance(seconds) {
      nowMs += seconds * 1000;
    },
    async deliver(sender = senders[0]) {
      await sender?.pump();
      await sender?.idle();
    },
    openSender(more = {}, bounds) {
      const another = new Sender({ ...ctx, ...more }, bounds);
      senders.push(another);
      return another;
    },
    async openReceiver(answer = ok) {
      const { receiver, server } = await startReceiver(answer);
      receivers.push(server);
      return receiver;
    },
    async empty() {
      await closeAll();
      senders = [new Sender(ctx)];
      await emptyWebhooks(db);
      nowMs = Date.now();
    },
    async [Symbol.asyncDispose]() {
      await closeAll();
      await opened.disposeAsync();
    },
  };
}

/** What a test does with the events and the endpoint of one client domain. */
function verbsOn(ctx: WebhooksContext, clientDomainId: string) {
  return {
    /** An event of a stream of its own unless told otherwise. */
    event: (given: Partial<KycEvent> & { url: string }) =>
      eventOf(ctx, { clientDomainId, ...given }),
    /** The same for the KYB endpoint of the client domain. */
    kybEvent: (given: Partial<KybEvent> = {}) => kybEventOf(ctx, { clientDomainId, ...given }),
    enqueue: async (...events: NewEvent[]) =>
      ctx.db.transaction(async (tx) => enqueueEvents(ctx, tx, events)),
    async firstEvent(streamId: string) {
      const { events } = await listEventsOf(ctx, streamId, { after: 0, limit: 1 });
      const [event] = events;
      assert.ok(event);
      return event;
    },
    redeliver: async (of: Parameters<typeof redeliverEvents>[2]) =>
      ctx.db.transaction(async (tx) => redeliverEvents(ctx, tx, of)),
    /** Registers or replaces the KYB endpoint of the client domain. */
    register: async (url: string) =>
      ctx.db.transaction(async (tx) => registerEndpoint(ctx, tx, { clientDomainId, url })),
    /** Whether that endpoint is in use, rather than in quarantine. */
    isActive: async () => (await getEndpoint(ctx.db, clientDomainId)).active,
    async reactivate() {
      await ctx.db.transaction(async (tx) => reactivateEndpoint(ctx, tx, clientDomainId));
    },
  };
}

function eventOf(
  ctx: WebhooksContext,
  given: Partial<KycEvent> & { url: string; clientDomainId: string },
): KycEvent {
  const id = newEventId(ctx);
  return {
    id,
    streamId: randomUUID(),
    sequence: 1,
    kind: "status.updated",
    channel: "kyc",
    keyId: "package",
    body: JSON.stringify({ event: "status.updated", event_id: id, data: { reference: "Zoë" } }),
    isPersonal: false,
    payloadExpiresAt: null,
    ...given,
  };
}

function kybEventOf(
  ctx: WebhooksContext,
  given: Partial<KybEvent> & { clientDomainId: string },
): KybEvent {
  const id = ulid(ctx.clock, ctx.random);
  return {
    id,
    streamId: randomUUID(),
    sequence: 1,
    kind: "kyb.endpoint.test",
    channel: "kyb",
    body: JSON.stringify({ event: "kyb.endpoint.test", event_id: id }),
    isPersonal: false,
    payloadExpiresAt: null,
    ...given,
  };
}

async function startReceiver(first: Answer) {
  const received: Received[] = [];
  let answer = first;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const { headers, rawHeaders } = request;
      const headerNames = rawHeaders.filter((_, index) => index % 2 === 0);
      const seen = { path: request.url ?? "", headers, headerNames, body };
      received.push(seen);
      answer(seen, response);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    setAnswer(next) {
      answer = next;
    },
  };
  return { receiver, server };
}
