import { parseObject, readRetryAfter, readText } from "./answer.ts";
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
   * It is sent once more if no whole answer came and no more time has passed, `Retry-After` included. A status is an
   * answer, 5xx included, but for those after which nobody knows whether the call was carried out. Default 0.
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

interface Exchange {
  status: number;
  headers: Headers;
  text: string;
}

/**
 * What a gateway answers where the broker behind it gave it no answer: it may have ended in the middle of the call. And
 * what the broker itself answers (503) where its database gave none, which may have carried out what it was told.
 */
const unanswered: ReadonlySet<number> = new Set([502, 503, 504]);

async function exchange(send: typeof fetch, call: IssuerCall): Promise<Exchange> {
  const { repeatWithinMs = 0, ...once } = call;
  // Time also passes while the machine sleeps, and for a `fetch` that heeds no signal.
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

async function attempt(send: typeof fetch, call: IssuerCall): Promise<Exchange> {
  const response = await send(call.url, {
    method: call.form === undefined ? "GET" : "POST",
    headers: { accept: "application/json", ...call.headers },
    ...(call.form !== undefined && { body: call.form }),
    redirect: "error",
    signal: AbortSignal.timeout(call.timeoutMs ?? timeoutMsDefault),
  });
  const { status, headers } = response;
  try {
    // Read in any case: a body that nobody reads keeps its connection.
    return { status, headers, text: await readText(response, bytesMax) };
  } catch (cause) {
    if (status >= 500) return { status, headers, text: "" };
    throw cause;
  }
}

function unreachable(cause: unknown): MerchantError {
  return new MerchantError("issuer_unreachable", { cause });
}
