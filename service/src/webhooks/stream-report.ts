import type { Ctx } from "../platform/context.ts";
import { placeIn } from "../platform/cryptography/seal.ts";
import { attemptAnswerColumn } from "./attempt.ts";
import {
  listNewestAttempts,
  listNewestEvents,
  type ReportedAttemptRow,
  type ReportedEventRow,
} from "./stream-report-store.ts";

/** The length of each list. */
const most = 100;

/** The events of a stream and their delivery, for the operator. Times are Unix seconds; each list is newest first. */
export interface StreamReport {
  readonly events: readonly object[];
  readonly attempts: readonly object[];
}

/**
 * The newest 100 events and attempts of a stream, without the bodies of events. Unlike merchants, an operator sees why
 * an attempt got no answer.
 *
 * @param streamId of an order or a request
 * @param options.withAnswers whether to include the receivers' answers, which may hold personal data
 */
export async function reportStream(
  ctx: Pick<Ctx, "db" | "seal">,
  streamId: string,
  options: { withAnswers: boolean },
): Promise<StreamReport> {
  const events = await listNewestEvents(ctx.db, streamId, most);
  const attempts = await listNewestAttempts(ctx.db, streamId, most);
  return {
    events: events.map(shownEvent),
    attempts: attempts.map((row) =>
      options.withAnswers
        ? Object.assign(shownAttempt(row), { answer: openAnswer(ctx, row) })
        : shownAttempt(row),
    ),
  };
}

function shownEvent({ dueAtMs, isHeld, purgeAt, url, ...event }: ReportedEventRow) {
  const isToCome = dueAtMs !== null && !isHeld;
  return {
    ...event,
    to: url === null ? "endpoint" : withoutQuery(url),
    nextAttemptAt: isToCome ? Math.floor(dueAtMs / 1000) : null,
    isHeld,
    isPurged: purgeAt === null,
  };
}

/** The query of a callback may hold a secret of the merchant's. */
function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

function shownAttempt({
  sequence,
  number,
  begunAtMs,
  durationMs,
  outcome,
  status,
}: ReportedAttemptRow) {
  return {
    sequence,
    attempt: number,
    beganAt: Math.floor(begunAtMs / 1000),
    durationMs,
    outcome,
    status,
  };
}

function openAnswer(
  ctx: Pick<Ctx, "seal">,
  { id, answerSealed }: ReportedAttemptRow,
): string | null {
  if (answerSealed === null) return null;
  return ctx.seal.open(answerSealed, placeIn(attemptAnswerColumn, id)).toString();
}
