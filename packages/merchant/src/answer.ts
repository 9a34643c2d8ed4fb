import { isRecord, isShowable } from "@svc/protocol";

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

/** The seconds of a `Retry-After`; undefined if it is absent or a date. */
export function readRetryAfter(headers: Headers): number | undefined {
  const text = headers.get("retry-after") ?? "";
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

const explanationLengthMax = 500;

/** The message of an answer, as one line; undefined if it cannot be shown as it is. */
export function explanationOf(value: unknown): string | undefined {
  if (typeof value !== "string" || !isShowable(value)) return undefined;
  return value.replaceAll("\n", " ").slice(0, explanationLengthMax);
}
