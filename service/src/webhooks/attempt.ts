import type { OutboundResult } from "../platform/outbound/outbound.ts";
import { placeIn, type SealedColumn } from "../platform/cryptography/seal.ts";
import { openBody } from "./events.ts";
import { nameOf, nextStepOf, type Outcome } from "./schedule.ts";
import { headersOf } from "./signature.ts";
import type * as store from "./delivery-store.ts";
import type { Target } from "./targets.ts";
import type { WebhooksContext } from "./webhooks-context.ts";

/** From the start of the attempt to the end of the answer's body (decisions section 7). */
const timeoutMs = 15_000;
const answerBytesMax = 16 * 1024;
const answerBytesKept = 4 * 1024;

export const attemptAnswerColumn: SealedColumn = {
  table: "webhook_attempt",
  idColumn: "id",
  column: "answer_sealed",
};

interface Exchange {
  readonly outcome: Outcome;
  readonly answer: Uint8Array | null;
}

/**
 * Makes one attempt.
 *
 * @param given.target null if there is no key to sign with: the attempt fails, and the next one may find a key
 * @returns `outcome` is null if no attempt was made because the body was purged
 * @throws if the outbound client was closed: whether the receiver got the event is then unknown
 */
export async function makeAttempt(
  ctx: WebhooksContext,
  delivery: store.Delivery,
  given: { target: Target | null; lease: string },
): Promise<{ ended: store.Ended; outcome: Outcome | null }> {
  const begunAtMs = Math.floor(ctx.clock.nowMs());
  const number = delivery.attempts + 1;
  const common = {
    eventId: delivery.eventId,
    lease: given.lease,
    number,
    begunAtMs,
    kybEndpointId: delivery.channel === "kyb" ? delivery.endpointId : null,
    kybEndpointResets: given.target?.resets ?? null,
  };
  const { purgeAt } = delivery;
  if (purgeAt === null || purgeAt * 1000 <= begunAtMs)
    return { ended: endedUntried(common), outcome: null };
  const startedMs = performance.now();
  const { outcome, answer } = await exchange(ctx, delivery, {
    target: given.target,
    number,
    begunAtMs,
  });
  const durationMs = Math.round(performance.now() - startedMs);
  const name = nameOf(outcome);
  ctx.metrics.webhookAttempts.inc({ outcome: name });
  const nowMs = Math.floor(ctx.clock.nowMs());
  const { step } = delivery;
  const fraction = ctx.random.fraction();
  const next = nextStepOf(outcome, { step, nowMs, purgeAt, fraction });
  if (next.kind === "given_up") logGivenUp(ctx, delivery);
  const ended: store.Ended = {
    ...common,
    outcome: name,
    status: outcome.kind === "answered" ? outcome.status : null,
    durationMs,
    answerSealed: sealAnswer(ctx, `${delivery.eventId}.${number}`, answer),
    deliveredAt: next.kind === "delivered" ? Math.floor(nowMs / 1000) : null,
    dueAtMs: next.kind === "again" ? next.atMs : null,
  };
  return { ended, outcome };
}

async function exchange(
  ctx: WebhooksContext,
  delivery: store.Delivery,
  { target, number, begunAtMs }: { target: Target | null; number: number; begunAtMs: number },
): Promise<Exchange> {
  const eventId = delivery.eventId;
  if (target === null) return fault(ctx, eventId, new Error("there is no signing key"));
  let body: Buffer;
  try {
    body = Buffer.from(openBody(ctx, { ...delivery, id: eventId }));
  } catch (error) {
    return fault(ctx, eventId, error);
  }
  const timestamp = Math.floor(begunAtMs / 1000);
  const result = await ctx.outbound.send({
    method: "POST",
    url: target.url,
    headers: headersOf(delivery.channel, target.secrets, { eventId, body, number, timestamp }),
    body,
    timeoutMs,
    responseBytesMax: answerBytesMax,
    keepAlive: true,
  });
  if (result.kind === "failed") return { outcome: outcomeOf(result), answer: null };
  return { outcome: answered(result), answer: result.body };
}

/** An answer with another status than 2xx counts even if its body does not end; only a success has to be complete. */
function outcomeOf({ reason, head }: Extract<OutboundResult, { kind: "failed" }>): Outcome {
  const isRefusal = head !== undefined && (head.status < 200 || head.status >= 300);
  return isRefusal
    ? { ...answered(head), isLate: reason === "timeout" }
    : { kind: "failed", reason };
}

function answered({ status, headers }: { status: number; headers: Record<string, string> }) {
  return { kind: "answered", status, retryAfter: headers["retry-after"] ?? null } as const;
}

/** A fault of the service itself: it is logged for the operator, and the delivery is retried on its schedule. */
function fault(ctx: WebhooksContext, eventId: string, error: unknown): Exchange {
  ctx.log.error(
    { err: error, eventId },
    "a webhook could not be prepared; it is tried again on its schedule",
  );
  return { outcome: { kind: "failed", reason: "error" }, answer: null };
}

function endedUntried(
  common: Pick<
    store.Ended,
    "eventId" | "lease" | "number" | "begunAtMs" | "kybEndpointId" | "kybEndpointResets"
  >,
): store.Ended {
  const nothing = { status: null, answerSealed: null, deliveredAt: null, dueAtMs: null };
  return { ...common, ...nothing, outcome: null, durationMs: 0 };
}

function sealAnswer(
  ctx: WebhooksContext,
  attemptId: string,
  answer: Uint8Array | null,
): Buffer | null {
  if (answer === null || answer.length === 0) return null;
  const kept = answer.subarray(0, answerBytesKept);
  return ctx.seal.seal(kept, placeIn(attemptAnswerColumn, attemptId));
}

function logGivenUp(ctx: WebhooksContext, delivery: store.Delivery): void {
  const { eventId, clientDomainId } = delivery;
  ctx.log.warn({ eventId, clientDomainId }, "an event was not delivered by its last attempt");
}
