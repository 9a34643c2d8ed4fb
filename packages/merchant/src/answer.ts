import { isRecord, isShowable } from "@svc/protocol";

/** An answer of the broker, read to its end. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/** The body of an answer, in UTF-8. @throws {Error} as soon as it is longer than `bytesMax` */
export async function readText(response: Response, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > bytesMax) throw new Error("the broker's answer is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The JSON object that a text spells, or null. */
export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

/**
 * How many seconds `Retry-After` says to wait (RFC 9110 section 10.2.3). A date is compared with the answer's own
 * `Date`, so that it does not matter how far the clocks are apart. Undefined if it is absent or says nothing.
 */
export function readRetryAfter(headers: Headers): number | undefined {
  const text = headers.get("retry-after") ?? "";
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const until = readHttpDate(text);
  if (until === undefined) return undefined;
  const from = readHttpDate(headers.get("date") ?? "") ?? Date.now();
  return Math.max(0, Math.ceil((until - from) / 1000));
}

/** Milliseconds; in the form that HTTP writes, or one of the two older ones (RFC 9110 section 5.6.7). */
function readHttpDate(text: string): number | undefined {
  if (!/^[A-Z][a-z]+,? .*\d\d:\d\d:\d\d/.test(text)) return undefined;
  // The oldest form, that of asctime, names no zone; it is GMT too.
  const ms = Date.parse(text.endsWith(" GMT") ? text : `${text} GMT`);
  return Number.isNaN(ms) ? undefined : ms;
}

const explanationLengthMax = 500;

/** The message of an answer, as one line; undefined if it cannot be shown as it is. */
export function explanationOf(value: unknown): string | undefined {
  if (typeof value !== "string" || !isShowable(value)) return undefined;
  return value.replaceAll("\n", " ").slice(0, explanationLengthMax);
}
