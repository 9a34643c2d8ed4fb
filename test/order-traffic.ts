// Merchants, wallets and a receiver that carry on whatever dies: a call without an answer is repeated.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { declineDigest } from "@svc/protocol";
import type { OpenContext } from "../service/src/compose.ts";
import { sql } from "../service/src/platform/database/db.ts";
import { openRequest, type Person, scanRequest, shareResult } from "./kyc-world.ts";
import type { Acknowledged, ReceivedEvent } from "./order-invariants.ts";
import { post } from "./raw-wallet.ts";
import { patienceMs, until } from "./patience.ts";
import { signDigest } from "./signing.ts";

/** The person and the package of an order. */
export interface Asked {
  readonly person: Person;
  readonly sourceKey: string;
  /** Where the events go; default: the traffic's own receiver. */
  readonly callback?: string;
}

export interface Traffic extends AsyncDisposable {
  readonly acknowledged: Acknowledged;
  readonly received: readonly ReceivedEvent[];
  /** Asks until it gets an answer; waits if the attempt before is still under way. */
  ask(asked: Asked): Promise<Requested>;
  /** Opens the link until that is answered. @returns what `approve` sends */
  open(person: Person, link: string): Promise<Approval>;
  /** Sends what was signed until it is answered. */
  approve(requested: Requested, approval: Approval): Promise<void>;
  decline(requested: Requested): Promise<void>;
  cancel(requested: Requested): Promise<void>;
  /** How the receiver answers from now on. */
  answer(rule: (response: ServerResponse) => void): void;
}

interface Requested {
  readonly person: Person;
  readonly referenceKey: string;
  readonly link: string;
}

interface Approval {
  readonly connection: string;
  readonly result: Readonly<Record<string, unknown>>;
}

/** Where the service is: processes come and go under these addresses. */
export interface TrafficTarget {
  readonly apiKey: string;
  readonly ctx: Pick<OpenContext, "clock">;
  /** Where the next call of a merchant goes. */
  baseUrl(): string;
}

/** Nobody answered, or the answer was to try again later. */
class NoAnswer extends Error {}

/** The attempt before has not ended: that takes batches and blocks, so this is repeated less often. */
class StillOngoing extends NoAnswer {}

/** Repeats a call until somebody answers. */
async function insist<T>(send: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      return await send();
    } catch (error) {
      const isAway = error instanceof NoAnswer || error instanceof TypeError || isOpening503(error);
      if (!isAway || performance.now() > deadline) throw error;
      await delay(error instanceof StillOngoing ? 300 : 50);
    }
  }
}

const isOpening503 = (error: unknown): boolean =>
  error instanceof Error && error.message === "open answered 503";

/** @throws {NoAnswer} where the service is away */
async function readAnswer(response: Response): Promise<{ status: number; body: unknown }> {
  const { status } = response;
  const text = await response.text();
  if (status === 503) throw new NoAnswer(text);
  assert.ok(status < 500, text);
  return { status, body: JSON.parse(text) as unknown };
}

const reasonOf = (body: unknown): unknown =>
  (body as { error?: { reason?: unknown } }).error?.reason;

export async function openTraffic(target: TrafficTarget): Promise<Traffic> {
  const orders = new Set<string>();
  const approvals = new Map<string, { referenceKey: string; infos: string }>();
  const ends: { referenceKey: string; failureReason: string }[] = [];
  const receiver = await openReceiver();
  const callMerchant = async (path: string, body: object) => {
    const answer = await fetch(`${target.baseUrl()}/api/v2/kyc/${path}`, {
      method: "POST",
      headers: { authorization: target.apiKey, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return readAnswer(answer);
  };
  const traffic: Omit<Traffic, keyof AsyncDisposable> = {
    acknowledged: { orders, approvals, ends },
    received: receiver.received,
    async ask({ person, sourceKey, callback = receiver.url }) {
      const { status, body } = await insist(async () => {
        const answer = await callMerchant("qrcode", {
          user: person.address,
          sourceKey,
          callback,
          expiration: target.ctx.clock.now() + 800,
          fields: ["IDCARD_DOB", "EMAIL"],
        });
        if (reasonOf(answer.body) === "order_ongoing") throw new StillOngoing();
        return answer;
      });
      assert.equal(status, 200, JSON.stringify(body));
      const { data } = body as { data: { referenceKey: string; link: string } };
      orders.add(data.referenceKey);
      return { person, referenceKey: data.referenceKey, link: data.link };
    },
    async open(person, link) {
      const opened = await insist(async () => openRequest(link));
      return { connection: opened.connection, result: shareResult(person, opened) };
    },
    async approve({ referenceKey }, { connection, result }) {
      const send = async () => readAnswer(await post(connection, result));
      const { status, body } = await insist(send);
      assert.equal(status, 200, JSON.stringify(body));
      approvals.set(String(result["signature"]), { referenceKey, infos: String(result["infos"]) });
    },
    async decline({ person, referenceKey, link }) {
      const { connection, id } = scanRequest(link);
      const signature = signDigest(declineDigest({ request: id, connection }), person.privateKey);
      const refusal = { error: "access_denied", id, svcID: person.address, signature };
      const { status, body } = await insist(async () =>
        readAnswer(await post(connection, refusal)),
      );
      // The first try may have counted without its answer arriving: then the repeat is told that the request is over.
      assert.ok(status === 200 || reasonOf(body) === "request_over", JSON.stringify(body));
      if (status === 200) ends.push({ referenceKey, failureReason: "USER_DECLINED" });
    },
    async cancel({ referenceKey }) {
      const { status, body } = await insist(async () => callMerchant("cancel", { referenceKey }));
      assert.ok(status === 200 || reasonOf(body) === "order_not_cancellable", JSON.stringify(body));
      if (status === 200) ends.push({ referenceKey, failureReason: "CANCELLED" });
    },
    answer: receiver.answer,
  };
  return Object.assign(traffic, {
    [Symbol.asyncDispose]: async () => receiver.close(),
  });
}

const thank = (response: ServerResponse): void => void response.end();

/** The headers of a delivery, each as one text. */
export function textHeaders(request: IncomingMessage): Record<string, string> {
  const entries = Object.entries(request.headers);
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

async function openReceiver() {
  const received: ReceivedEvent[] = [];
  let answer = thank;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const headers = textHeaders(request);
      received.push({ id: String(headers["svc-event-id"]), headers, body });
      answer(response);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    answer: (rule: (response: ServerResponse) => void): void => {
      answer = rule;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Waits until every order has ended and every event is delivered; time runs ahead for what waits for another try. */
export async function untilOver(world: {
  readonly ctx: Pick<OpenContext, "db">;
  advance(seconds: number): Promise<unknown>;
}): Promise<void> {
  let moved = performance.now();
  await until("every order has ended and every event is delivered", async () => {
    const [open] = await world.ctx.db.query<{
      orders: number;
      deliveries: number;
      chain: number;
    }>(sql`
      select (select count(*) from kyc_order where status not in ('CONFIRMED', 'FAILED')) as orders,
        (select count(*) from webhook_delivery) as deliveries,
        (select count(*) from chain_transaction where finished_at is null) as chain`);
    if (open?.orders === 0 && open.deliveries === 0 && open.chain === 0) return true;
    if (performance.now() - moved > 1000) {
      moved = performance.now();
      await world.advance(31);
    }
    return null;
  });
}
