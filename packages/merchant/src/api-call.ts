import { isRecord } from "@svc/protocol";
import { type Answer, explanationOf, parseObject, readRetryAfter, readText } from "./answer.ts";
import { isTimeout } from "./timeout.ts";
import { isIssuerUrl } from "./issuer.ts";
import { MerchantError, misconfigured } from "./merchant-error.ts";

/** Enough for a receipt of 200 fields. */
const bytesMaxDefault = 2 * 1024 * 1024;

const timeoutMsDefault = 10_000;

/** What calls to the KYC and KYB endpoints need. */
export interface ApiOptions {
  /** The broker's base address, without a slash at its end; https, or http on this machine. */
  issuer: string;
  /** As you were given it, without `Bearer`. Keep it on your server. */
  apiKey: string;
  /** Default: the global fetch. */
  fetch?: typeof fetch;
  /** For a whole call, answer included. Default 10,000. */
  timeoutMs?: number;
}

/** Undefined members are left out, a list is repeated. */
export type Query = Record<string, string | number | readonly string[] | undefined>;

/** One call: POST with a body, else GET. */
export interface ApiCall {
  path: string;
  /** The method, if not POST. */
  method?: "PUT";
  /** The same call again with the same key changes nothing. */
  idempotencyKey?: string;
  query?: Query;
  body?: object;
  /** The greatest size of the answer; a longer one is an error. Default 2 MiB. */
  bytesMax?: number;
}

/** @throws {MerchantError} configuration_invalid; its `reason` names the option */
export function checkOptions({ issuer, apiKey, timeoutMs = timeoutMsDefault }: ApiOptions): void {
  if (!isIssuerUrl(issuer)) throw misconfigured("issuer");
  // A space means that the key was given with `Bearer `, which these endpoints refuse.
  if (typeof apiKey !== "string" || !/^[\x21-\x7e]+$/.test(apiKey)) throw misconfigured("apiKey");
  if (!isTimeout(timeoutMs)) throw misconfigured("timeoutMs");
}

/**
 * Calls a KYC endpoint and returns the `data` of its answer (service document, Response envelopes). Redirects are not
 * followed, so that the key reaches nobody else. No call is repeated: only the caller knows whether a call that timed
 * out may be made again.
 *
 * @throws {MerchantError} apikey_refused, rate_limited, call_refused, issuer_unreachable, response_invalid
 */
export async function callKyc(
  options: ApiOptions,
  call: ApiCall,
): Promise<Record<string, unknown>> {
  const body = await callKyb(options, call);
  const data = body["success"] === true ? body["data"] : undefined;
  if (!isRecord(data)) throw new MerchantError("response_invalid");
  return data;
}

/**
 * Calls a KYB endpoint, whose answers have no envelope. Otherwise as {@link callKyc}.
 *
 * @throws {MerchantError} apikey_refused, rate_limited, call_refused, issuer_unreachable, response_invalid
 */
export async function callKyb(
  options: ApiOptions,
  call: ApiCall,
): Promise<Record<string, unknown>> {
  const { status, headers, text } = await exchange(options, call);
  const body = parseObject(text);
  if (status < 200 || status > 299) throw refusalOf(status, headers, body?.["error"]);
  if (body === null) throw new MerchantError("response_invalid", { status });
  return body;
}

async function exchange(options: ApiOptions, call: ApiCall): Promise<Answer> {
  const send = options.fetch ?? fetch;
  const url = new URL(options.issuer + call.path);
  for (const [name, values] of Object.entries(call.query ?? {}))
    for (const value of [values].flat())
      if (value !== undefined) url.searchParams.append(name, String(value));
  checkIdempotencyKey(call);
  // Serialised before anything is sent: a body that cannot be serialised is not a failure of the broker.
  const body = JSON.stringify(call.body, writeBigInt);
  const hasBody = body !== undefined;
  try {
    const response = await send(url, {
      method: hasBody ? (call.method ?? "POST") : "GET",
      headers: {
        accept: "application/json",
        authorization: options.apiKey,
        ...(hasBody && { "content-type": "application/json" }),
        ...(call.idempotencyKey !== undefined && { "idempotency-key": call.idempotencyKey }),
      },
      ...(hasBody && { body }),
      redirect: "error",
      signal: AbortSignal.timeout(options.timeoutMs ?? timeoutMsDefault),
    });
    const text = await readText(response, call.bytesMax ?? bytesMaxDefault);
    return { status: response.status, headers: response.headers, text };
  } catch (cause) {
    throw new MerchantError("issuer_unreachable", { cause });
  }
}

/** A header cannot hold other characters, and the service accepts no more of them. */
function checkIdempotencyKey(call: ApiCall): void {
  const key: unknown = call.idempotencyKey;
  // An undefined key must not switch the protection off; null would be sent as `null`, the same key for every call.
  const isKey = typeof key === "string" && /^[\x21-\x7e]{1,255}$/.test(key);
  if ("idempotencyKey" in call && !isKey) throw misconfigured("idempotencyKey");
}

/** Most programs hold integers of typed data as bigints; as decimal text they have the same digest. */
function writeBigInt(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

/** What an error in the envelope means (decisions, section 1, Errors). */
function refusalOf(status: number, headers: Headers, error: unknown): MerchantError {
  const members = isRecord(error) ? error : {};
  const options = {
    status,
    reason: nameOf(members["reason"]),
    requestId: nameOf(members["requestId"]),
    explanation: explanationOf(members["message"]),
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

/** A reason or id, if the value looks like one, because it will be logged. */
function nameOf(value: unknown): string | undefined {
  return typeof value === "string" && /^\w{1,64}$/.test(value) ? value : undefined;
}
