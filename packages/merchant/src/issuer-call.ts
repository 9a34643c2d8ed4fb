import { parseObject, readRetryAfter, readText } from "./answer.ts";
import { MerchantError } from "./merchant-error.ts";

/** The broker is one hop away; a person waits for the answer. */
const timeoutMs = 10_000;

/** Discovery, key sets and token responses are a few kilobytes. */
const bytesMax = 256 * 1024;

/** One request to the broker: POST with a form, else GET. */
export interface IssuerCall {
  url: string;
  form?: URLSearchParams;
  headers?: Record<string, string>;
}

/** What the broker answered: 2xx, or 4xx except 429. The body is null if it is not a JSON object. */
export interface IssuerAnswer {
  status: number;
  body: Record<string, unknown> | null;
}

/**
 * Calls the broker. Redirects are not followed: a request with a secret goes where it was sent, or nowhere.
 *
 * @throws {MerchantError} issuer_unreachable if there is no answer in 10 s, and for more than 256 KiB, 3xx and 5xx;
 * rate_limited for 429
 */
export async function callIssuer(send: typeof fetch, call: IssuerCall): Promise<IssuerAnswer> {
  const { status, headers, body } = await exchange(send, call);
  if (status === 429)
    throw new MerchantError("rate_limited", { retryAfterSeconds: readRetryAfter(headers) });
  return { status, body };
}

async function exchange(
  send: typeof fetch,
  call: IssuerCall,
): Promise<IssuerAnswer & { headers: Headers }> {
  try {
    const response = await send(call.url, {
      method: call.form === undefined ? "GET" : "POST",
      headers: { accept: "application/json", ...call.headers },
      ...(call.form !== undefined && { body: call.form }),
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs),
    });
    const { status, headers } = response;
    // Read in any case: a body that nobody reads keeps its connection.
    const text = await readText(response, bytesMax);
    if (status >= 500) throw new Error(`the broker answered ${status}`);
    return { status, headers, body: parseObject(text) };
  } catch (cause) {
    throw new MerchantError("issuer_unreachable", { cause });
  }
}
