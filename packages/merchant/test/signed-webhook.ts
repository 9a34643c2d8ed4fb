// Webhooks as the service document describes them, written from the document alone: the far end for tests of the SDK and
// the shop.
import { createHmac } from "node:crypto";

export const alice = "0x00000000000000000000000000000000000a11ce";
export const signingKey = "whk_a-signing-key-of-the-package";
export const referenceKey = "ab".repeat(32);

/** The headers of a delivery at this time. */
export function signedHeaders(
  body: string,
  { t, key = signingKey }: { t: number; key?: string },
): Record<string, string> {
  const s = createHmac("sha256", key).update(`${t}.${body}`).digest("hex");
  return { "svc-signature": `t=${t},s=${s}` };
}

interface Envelope {
  event: string;
  sequence: number;
  data: Record<string, unknown>;
}

/** A body; the event id follows from the sequence. */
export function bodyOf({ event, sequence, data }: Envelope): string {
  const event_id = `evt_01J${String(sequence).padStart(23, "0")}`;
  const timestamp = 1_800_000_000 + sequence;
  return JSON.stringify({ event, event_id, sequence, timestamp, livemode: true, data });
}

export function statusBody(sequence: number, status: string, more: object = {}): string {
  const data = {
    referenceKey,
    attempt: 1,
    user: alice,
    fields: ["IDCARD_DOB", "EMAIL", "ADDRESS_CITY"],
    status,
    createdAt: 1_800_000_000 + sequence,
    expiration: 1_800_000_600,
    ...more,
  };
  return bodyOf({ event: "status.updated", sequence, data });
}

/** @param triples field, text and pepper as hex */
export function dataBody(
  sequence: number,
  triples: readonly { field: string; data: string; pepper: string }[],
  more: object = {},
): string {
  const infos = triples.map(({ field, data, pepper }) => ({
    field,
    data: base64(Buffer.from(data)),
    pepper: base64(Buffer.from(pepper.slice(2), "hex")),
  }));
  const data = {
    referenceKey,
    attempt: 1,
    user: alice,
    infos: base64(Buffer.from(JSON.stringify(infos))),
    expiration: 1_800_000_600,
    initiatedTxHash: `0x${"11".repeat(32)}`,
    ...more,
  };
  return bodyOf({ event: "data.transferred", sequence, data });
}

export function invalidatedBody(
  sequence: number,
  fields: readonly string[],
  more: object = {},
): string {
  const data = { referenceKey, attempt: 1, user: alice, fields, ...more };
  return bodyOf({ event: "data.invalidated", sequence, data });
}

function base64(bytes: Buffer): string {
  return bytes.toString("base64");
}
