import type { Ctx } from "../platform/context.ts";
import { uuidv7 } from "../platform/ids.ts";
import { bodyPlace, type Channel } from "./event.ts";
import { isSuccess, nextAttemptAt, type Outcome } from "./schedule.ts";
import { headersOf } from "./signature.ts";
import * as store from "./store.ts";

/** What the engine works with besides the context. */
export interface WebhooksContext extends Ctx {
  /** The keys that sign now, by id; asked once for each batch of tries. */
  readonly signingKeys: Record<
    Channel,
    (keyIds: readonly string[]) => Promise<ReadonlyMap<string, string>>
  >;
}

/** Decisions section 7: success is the end of the body inside this. */
const timeoutMs = 15_000;
const responseBytesMax = 16 * 1024;
const responseKeptBytes = 4 * 1024;
/** Longer than a try and its bookkeeping can take. */
const leaseSeconds = 45;
const inFlightPerEndpoint = 8;
const perEndpointSecond = 50;
/** Tries that one process has under way; a receiver that hangs takes eight of them for 15 s. */
const inFlightMax = 2_000;
const claimMax = 250;
/** Ends of tries are gathered for so long, so that a thousand of them cost a few statements. */
const gatherMs = 10;
const finishMax = 250;

/** Sends what is due and keeps what came of it; one for each process. */
export interface Sender extends AsyncDisposable {
  /** Starts tries of everything that is due now, and of what becomes due by their ends; does not wait for them. */
  pump(): Promise<void>;
  /** Settles when nothing is under way in this process. */
  idle(): Promise<void>;
}

export function openSender(ctx: WebhooksContext): Sender {
  const underWay = new Set<Promise<void>>();
  const done: store.Finished[] = [];
  const paces = new Map<string, { second: number; count: number }>();
  let flushing: Promise<void> | null = null;
  let pumping: Promise<void> | null = null;
  let isAsked = false;
  let isClosed = false;

  const flush = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, gatherMs));
    while (done.length > 0) {
      const part = done.splice(0, finishMax);
      // What cannot be kept is tried again when its lease ends: at least once.
      await store.finishAttempts(ctx.db, part).catch((error: unknown) => {
        ctx.log.error({ err: error }, "ends of webhook attempts could not be kept");
      });
    }
    flushing = null;
    void pump();
  };
  const start = (claimed: store.Claimed, key: string, leaseId: string): void => {
    const work = attempt(ctx, { claimed, key, leaseId }).then((finished) => {
      if (finished !== null) done.push(finished);
      flushing ??= flush();
    });
    const tracked = work.finally(() => underWay.delete(tracked));
    underWay.add(tracked);
  };
  const claim = async (): Promise<number> => {
    const room = Math.min(claimMax, inFlightMax - underWay.size);
    if (room <= 0) return 0;
    const now = ctx.clock.now();
    const leaseId = uuidv7(ctx.clock, ctx.random);
    const claimed = await store.claimDue(ctx.db, {
      now,
      leaseId,
      leasedUntil: now + leaseSeconds,
      limit: room,
      perEndpoint: inFlightPerEndpoint,
      except: pausedOf(paces, now),
    });
    const keys = await readKeys(ctx, claimed);
    for (const each of claimed) {
      notePace(paces, each.endpoint, now);
      start(each, keys.get(each.key_id) ?? "", leaseId);
    }
    return claimed.length;
  };
  const drain = async (): Promise<void> => {
    do {
      isAsked = false;
      while (!isClosed && (await claim()) > 0);
    } while (isAsked && !isClosed);
    pumping = null;
  };
  const pump = async (): Promise<void> => {
    isAsked = true;
    pumping ??= drain().catch((error: unknown) => {
      pumping = null;
      throw error;
    });
    return pumping;
  };
  const idle = async (): Promise<void> => {
    while (underWay.size > 0 || flushing !== null || pumping !== null) {
      await Promise.allSettled([...underWay]);
      await flushing;
      await pumping;
    }
  };
  return {
    pump,
    idle,
    async [Symbol.asyncDispose]() {
      isClosed = true;
      await flushing;
    },
  };
}

async function readKeys(
  ctx: WebhooksContext,
  claimed: readonly store.Claimed[],
): Promise<ReadonlyMap<string, string>> {
  if (claimed.length === 0) return new Map();
  const channels = [...new Set(claimed.map(({ channel }) => channel))];
  const found = await Promise.all(
    channels.map(async (channel) => {
      const ids = claimed.filter((each) => each.channel === channel).map((each) => each.key_id);
      return ctx.signingKeys[channel]([...new Set(ids)]);
    }),
  );
  return new Map(found.flatMap((keys) => [...keys]));
}

/** One try. @returns null where the process was cut off: then the lease ends and somebody tries again */
async function attempt(
  ctx: WebhooksContext,
  { claimed, key, leaseId }: { claimed: store.Claimed; key: string; leaseId: string },
): Promise<store.Finished | null> {
  const startedMs = performance.now();
  const at = ctx.clock.now();
  const outcome = await send(ctx, { claimed, key, at });
  if (outcome === null) return null;
  const isDelivered = isSuccess(outcome);
  ctx.metrics.webhookAttempts.inc({
    outcome: isDelivered ? "delivered" : outcome.status === null ? "unanswered" : "refused",
  });
  const attemptId = uuidv7(ctx.clock, ctx.random);
  const { response } = outcome;
  return {
    id: claimed.id,
    leaseId,
    attemptId,
    at,
    durationMs: Math.round(performance.now() - startedMs),
    status: outcome.status,
    responseSealed:
      response === null || response.length === 0
        ? null
        : ctx.seal.seal(response.subarray(0, responseKeptBytes), {
            table: "webhook_attempt",
            id: attemptId,
            column: "response_sealed",
          }),
    isDelivered,
    nextAt: isDelivered
      ? null
      : nextAttemptAt(outcome, {
          made: claimed.round_attempts + 1,
          now: ctx.clock.now(),
          fraction: ctx.random.fraction(),
          before: claimed.payload_expires_at,
        }),
  };
}

async function send(
  ctx: WebhooksContext,
  { claimed, key, at }: { claimed: store.Claimed; key: string; at: number },
): Promise<(Outcome & { response: Uint8Array | null }) | null> {
  const unanswered = { status: null, isTimeout: false, response: null };
  const { body_sealed: sealed } = claimed;
  const body =
    sealed === null ? claimed.body : ctx.seal.open(sealed, bodyPlace(claimed.id)).toString();
  // The data went while it waited; the tombstone is not sent.
  if (body === null || key === "") return unanswered;
  const attemptNumber = claimed.attempts + 1;
  const given = { eventId: claimed.id, body, attempt: attemptNumber, at };
  try {
    const result = await ctx.outbound.send({
      method: "POST",
      url: claimed.url,
      headers: headersOf(claimed.channel, key, given),
      body,
      timeoutMs,
      responseBytesMax,
    });
    if (result.kind === "failed")
      return { ...unanswered, isTimeout: result.reason === "timeout" };
    const retryAfter = result.headers["retry-after"];
    return {
      status: result.status,
      isTimeout: false,
      response: result.body,
      ...(retryAfter === undefined ? {} : { retryAfter }),
    };
  } catch {
    // Our own end: the client was closed while the process drains.
    return null;
  }
}

type Paces = Map<string, { second: number; count: number }>;

function notePace(paces: Paces, endpoint: Buffer, now: number): void {
  const id = endpoint.toString("hex");
  const pace = paces.get(id);
  if (pace?.second === now) pace.count += 1;
  else paces.set(id, { second: now, count: 1 });
}

/** Endpoints that were given their share of this second; those of other seconds are forgotten. */
function pausedOf(paces: Paces, now: number): Buffer[] {
  const paused: Buffer[] = [];
  for (const [id, { second, count }] of paces) {
    if (second !== now) paces.delete(id);
    else if (count >= perEndpointSecond) paused.push(Buffer.from(id, "hex"));
  }
  return paused;
}
