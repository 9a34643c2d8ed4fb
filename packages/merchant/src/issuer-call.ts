import { type Answer, parseObject, readRetryAfter, readText } from "./answer.ts";
import { MerchantError } from "./merchant-error.ts";

/** The broker is one hop away; a person waits for the answer. */
const timeoutMsDefault = 10_000;

/** Discovery, key sets and token responses are a few kilobytes. */
const bytesMax = 256 * 1024;

/** One request to the broker: POST with a form, else GET. */
export interface IssuerCall {
  url: string;
  form?: URLSearchParams;
  headers?: Record<string, string>;
  /** For one try, answer included. Default 10,000. */
  timeoutMs?: number;
  /**
   * If there is no complete answer, the request is sent once more, unless this time has passed since the first try began;
   * a `Retry-After` is waited for. Any status is an answer, except those after which nobody knows whether the call was
   * carried out: 502, 503 and 504. Default 0: it is never repeated.
   */
  repeatWithinMs?: number;
}

/** What the broker answered: 2xx, or 4xx except 429. The body is null if it is not a JSON object. */
export interface IssuerAnswer {
  status: number;
  body: Record<string, unknown> | null;
}

/**
 * Calls the broker. Redirects are not followed: a request with a secret goes where it was sent, or nowhere.
 *
 * @throws {MerchantError} issuer_unreachable if there is no answer in time, and for more than 256 KiB, 3xx and 5xx;
 * rate_limited for 429
 */
export async function callIssuer(send: typeof fetch, call: IssuerCall): Promise<IssuerAnswer> {
  const { status, headers, text } = await exchange(send, call);
  if (status >= 500) throw unreachable(new Error(`the broker answered ${status}`));
  if (status === 429)
    throw new MerchantError("rate_limited", { retryAfterSeconds: readRetryAfter(headers) });
  return { status, body: parseObject(text) };
}

/**
 * A gateway's statuses for a broker that gave it no answer (502, 504): it may have stopped in the middle of the call. And
 * the broker's own status where its database gave none (503), which may have carried out the statement.
 */
const unanswered: ReadonlySet<number> = new Set([502, 503, 504]);

async function exchange(send: typeof fetch, call: IssuerCall): Promise<Answer> {
  const { repeatWithinMs = 0, ...once } = call;
  // Measured, because a try may outlast its time-out: the machine may sleep, a caller's `fetch` may ignore the signal.
  const beganMs = Date.now();
  const isInTime = (waitMs = 0) => Date.now() - beganMs + waitMs < repeatWithinMs;
  try {
    const answer = await attempt(send, once);
    const waitMs = 1000 * (readRetryAfter(answer.headers) ?? 0);
    if (!unanswered.has(answer.status) || !isInTime(waitMs)) return answer;
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (!isInTime()) return answer;
  } catch (cause) {
    if (!isInTime()) throw unreachable(cause);
  }
  return exchange(send, once);
}

async function attempt(send: typeof fetch, call: IssuerCall): Promise<Answer> {
  const response = await send(call.url, {
    method: call.form === undefined ? "GET" : "POST",
    headers: { accept: "application/json", ...call.headers },
    ...(call.form !== undefined && { body: call.form }),
    redirect: "error",
    signal: AbortSignal.timeout(call.timeoutMs ?? timeoutMsDefault),
  });
  const { status, headers } = response;
  try {
    // Read even for a 5xx: an unread body keeps its connection open.
    return { status, headers, text: await readText(response, bytesMax) };
  } catch (cause) {
    if (status >= 500) return { status, headers, text: "" };
    throw cause;
  }
}

function unreachable(cause: unknown): MerchantError {
  return new MerchantError("issuer_unreachable", { cause });
}
