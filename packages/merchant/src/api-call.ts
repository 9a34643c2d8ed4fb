import { isRecord } from "@svc/protocol";
import { parseObject, readRetryAfter, readText } from "./answer.ts";
import { MerchantError } from "./merchant-error.ts";

/** A receipt of 200 fields. */
const bytesMaxDefault = 2 * 1024 * 1024;

const timeoutMsDefault = 10_000;

/** What calls to the KYC and KYB endpoints need. */
export interface ApiOptions {
  /** The broker's base address, without a slash at its end; https, or http on this machine. */
  issuer: string;
  /** As the dashboard shows it, without `Bearer`. It stays on your server. */
  apiKey: string;
  /** Default: the global fetch. */
  fetch?: typeof fetch;
  /** For a whole call, answer included. Default 10,000. */
  timeoutMs?: number;
}

/** One call: POST with a body, else GET. */
export interface ApiCall {
  path: string;
  /** In place of POST. */
  method?: "PUT";
  /** The same call again with the same key changes nothing. */
  idempotencyKey?: string;
  query?: readonly (readonly [name: string, value: string])[];
  body?: object;
  /** Of the answer; longer ones are an error. Default 2 MiB. */
  bytesMax?: number;
}

/**
 * Calls a KYC endpoint and gives the `data` of its answer (service document, Response envelopes). Redirects are not followed: the key goes where it was sent,
 * or nowhere. Nothing is repeated: whether a call that timed out may be made again is for the caller to know.
 *
 * @throws {MerchantError} apikey_refused, rate_limited, call_refused, issuer_unreachable, response_invalid
 */
export async function callApi(
  options: ApiOptions,
  call: ApiCall,
): Promise<Record<string, unknown>> {
  const body = await callPlain(options, call);
  const data = body["success"] === true ? body["data"] : undefined;
  if (!isRecord(data)) throw new MerchantError("response_invalid");
  return data;
}

/**
 * Calls a KYB endpoint, whose answers are plain records. The rest is as of {@link callApi}.
 *
 * @throws {MerchantError} apikey_refused, rate_limited, call_refused, issuer_unreachable, response_invalid
 */
export async function callPlain(
  options: ApiOptions,
  call: ApiCall,
): Promise<Record<string, unknown>> {
  const { status, headers, text } = await exchange(options, call);
  const body = parseObject(text);
  if (status < 200 || status > 299) throw refusalOf(status, headers, body?.["error"]);
  if (body === null) throw new MerchantError("response_invalid", { status });
  return body;
}

interface Exchange {
  status: number;
  headers: Headers;
  text: string;
}

async function exchange(options: ApiOptions, call: ApiCall): Promise<Exchange> {
  const send = options.fetch ?? fetch;
  const url = new URL(options.issuer + call.path);
  for (const [name, value] of call.query ?? []) url.searchParams.append(name, value);
  const isPost = call.body !== undefined;
  try {
    const response = await send(url, {
      method: isPost ? (call.method ?? "POST") : "GET",
      headers: {
        accept: "application/json",
        authorization: options.apiKey,
        ...(isPost && { "content-type": "application/json" }),
        ...(call.idempotencyKey !== undefined && { "idempotency-key": call.idempotencyKey }),
      },
      ...(isPost && { body: JSON.stringify(call.body) }),
      redirect: "error",
      signal: AbortSignal.timeout(options.timeoutMs ?? timeoutMsDefault),
    });
    const text = await readText(response, call.bytesMax ?? bytesMaxDefault);
    return { status: response.status, headers: response.headers, text };
  } catch (cause) {
    throw new MerchantError("issuer_unreachable", { cause });
  }
}

/** What an error in the envelope means (decisions, section 1, Errors). */
function refusalOf(status: number, headers: Headers, error: unknown): MerchantError {
  const members = isRecord(error) ? error : {};
  const options = {
    status,
    reason: nameOf(members["reason"]),
    requestId: nameOf(members["requestId"]),
    ...(isRecord(members["details"]) && { details: members["details"] }),
  };
  if (status >= 500) return new MerchantError("issuer_unreachable", options);
  if (status === 401) return new MerchantError("apikey_refused", options);
  if (status === 429)
    return new MerchantError("rate_limited", {
      ...options,
      retryAfterSeconds: readRetryAfter(headers),
    });
  return new MerchantError("call_refused", options);
}

/** A reason or id, if it is one: such text reaches logs. */
function nameOf(value: unknown): string | undefined {
  return typeof value === "string" && /^\w{1,64}$/.test(value) ? value : undefined;
}
