import { type Address, parseAddress } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";

/** A person is waiting for the wallet. */
const timeoutMs = 15_000;
/** The greatest size of the answer, of which a wallet reads the status and one line. */
const answerBytesMax = 64 * 1024;

/** An answer that a wallet in a browser wants to have sent. */
export interface RelayedAnswer {
  /** `conn` of a link. */
  readonly url: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/**
 * Sends a wallet's answer to a `conn` that a page may not call, once, by the guarded client of decisions section 7.
 * Nothing of it is stored. Only answers of the session's own identity are sent, so that this is not a proxy for others.
 *
 * @returns status and text of the other side; no text if it is not valid text or has more than 64 KiB
 * @throws {Problem} invalid_request for somebody else's answer; not_delivered whatever the cause, because a more
 * precise answer would help to map networks
 */
export async function relayAnswer(
  ctx: Ctx,
  user: Address,
  { url, body }: RelayedAnswer,
): Promise<{ status: number; text?: string }> {
  const { svcID } = body;
  const isOwn = svcID === undefined || (typeof svcID === "string" && parseAddress(svcID) === user);
  if (!isOwn) throw invalidRequest("svcID must be the identity of the session");
  const result = await ctx.outbound.send({
    method: "POST",
    url,
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
    timeoutMs,
    responseBytesMax: answerBytesMax,
  });
  if (result.kind === "failed") throw new Problem("not_delivered");
  const text = textOf(result.body);
  return { status: result.status, ...(text === null ? {} : { text }) };
}

function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
