import { bytesOfText, hasTooManyValues, isRecord } from "@svc/protocol";
import { WalletRefusal } from "./refusal.ts";

/** A person waits for the answer. */
const timeoutMs = 15_000;
/** Request objects and acknowledgements are a few kilobytes; a page of logins is the largest. */
const answerBytesMax = 256 * 1024;
/**
 * Only the longest lists, those with images, may be longer than this, and their values take dozens of bytes each. 24 MiB
 * of empty objects would take 1 GiB of memory.
 */
const valuesMax = 2 ** 20;
/**
 * Documents nest at most 32 deep, and are contained in lists. A value with unlimited nesting could not be serialised
 * again.
 */
const depthMax = 64;

/** One HTTP call; with `body` it is a POST of JSON. */
export interface Call {
  readonly url: string;
  readonly method?: "GET" | "POST" | "DELETE";
  readonly body?: Readonly<Record<string, unknown>> | readonly unknown[];
  readonly headers?: Readonly<Record<string, string>>;
  /** The greatest size of the answer; 256 KiB unless given. */
  readonly bytesMax?: number;
}

export interface CallAnswer {
  readonly status: number;
  /** Null if the answer is longer than the call allows, or holds more than a million values. */
  readonly text: string | null;
}

/**
 * Calls somebody by HTTP: https, or http to this machine; 15 s in total; no redirects, cookies or referrer.
 *
 * @throws {WalletRefusal} unreachable
 */
export async function call(
  send: typeof fetch,
  { url, method, body, headers, bytesMax = answerBytesMax }: Call,
): Promise<CallAnswer> {
  requireSecure(url);
  const verb = method ?? (body === undefined ? "GET" : "POST");
  const response = await orRefuse(url, "cannot be reached", async () =>
    send(url, {
      method: verb,
      headers: {
        accept: "application/json, application/jwt",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      redirect: "manual",
      credentials: "omit",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(timeoutMs),
    }),
  );
  // From here on the other side may have what was sent, whatever it answers.
  const told = verb === "GET" ? "" : "was told, and ";
  const { status } = response;
  // Browsers report status 0 for a redirect that is not followed.
  if (status < 200 || (status >= 300 && status < 400)) {
    await response.body?.cancel();
    throw new WalletRefusal(
      "unreachable",
      `${hostOf(url)} ${told}redirects, and redirects are not followed`,
    );
  }
  const unread = `${told}gives no answer that can be read`;
  const text = await orRefuse(url, unread, async () => readText(response, bytesMax));
  return { status, text };
}

async function orRefuse<T>(url: string, fault: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const isLate = cause instanceof Error && cause.name === "TimeoutError";
    const reason = isLate ? `did not answer within ${timeoutMs / 1000} s` : fault;
    throw new WalletRefusal("unreachable", `${hostOf(url)} ${reason}`, { cause });
  }
}

/** Signed or secret data is sent only by https, except to this machine. @throws {WalletRefusal} unreachable */
export function requireSecure(url: string): void {
  const { protocol, hostname, host } = new URL(url);
  const isLocal = hostname === "localhost" || hostname === "127.0.0.1" || hostname === "[::1]";
  if (protocol === "https:" || (protocol === "http:" && isLocal)) return;
  throw new WalletRefusal("unreachable", `${host} is called only over https`);
}

/** The members of a JSON object; none for any other text. */
export function membersOf(text: string | null): Readonly<Record<string, unknown>> {
  const value = valueOf(text);
  return isRecord(value) ? value : {};
}

/** The elements of a JSON list; none for any other text. */
export function elementsOf(text: string | null): readonly unknown[] {
  const value = valueOf(text);
  return Array.isArray(value) ? value : [];
}

function valueOf(text: string | null): unknown {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return isWithin(value, depthMax) ? value : null;
  } catch {
    return null;
  }
}

function isWithin(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((each) => isWithin(each, depth - 1));
}

/** What a gateway answers where the broker behind it gave it no answer (RFC 9110 sections 15.6.3 and 15.6.5). */
const gatewayStatuses: ReadonlySet<number> = new Set([502, 504]);

/** Whether it is the word of a gateway alone: the other side may have taken what was sent. */
export const isUnanswered = ({ status }: CallAnswer): boolean => gatewayStatuses.has(status);

/** What an unsuccessful answer says, from the service's envelope if it has one. */
export function refusalOfAnswer(url: string, answer: CallAnswer): WalletRefusal {
  const { status, text } = answer;
  if (isUnanswered(answer))
    return new WalletRefusal("unreachable", `${hostOf(url)} gave no answer (status ${status})`);
  const { error } = membersOf(text);
  const { reason, message } = isRecord(error) ? error : {};
  const said = typeof message === "string" ? message.slice(0, 300) : `status ${status}`;
  const isNamed = typeof reason !== "string" || said.startsWith(`${reason}: `);
  const named = isNamed ? "" : ` (${reason.slice(0, 60)})`;
  return new WalletRefusal("broker_refused", `${hostOf(url)} refuses: ${said}${named}`);
}

/** Whom a connection leads to, in words: its host with port, or the app behind its scheme. */
export function hostOf(url: string): string {
  return findHost(url) ?? sayApp(new URL(url).protocol);
}

/** The host with port; null for the scheme of an app, which may put any host there. */
export function findHost(url: string): string | null {
  const { host, protocol } = new URL(url);
  return protocol === "https:" || protocol === "http:" ? host : null;
}

export const sayApp = (scheme: string): string => `the app behind ${scheme}`;

async function readText(response: Response, bytesMax: number): Promise<string | null> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const reader = response.body?.getReader();
  let text = "";
  let length = 0;
  for (;;) {
    const part = await reader?.read();
    if (part === undefined || part.done) break;
    length += part.value.length;
    if (length > bytesMax) {
      await reader?.cancel();
      return null;
    }
    text += decoder.decode(part.value, { stream: true });
  }
  text += decoder.decode();
  return text.length > valuesMax && hasTooManyValues(bytesOfText(text), valuesMax) ? null : text;
}
