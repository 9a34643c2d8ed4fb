import type { FastifyReply } from "fastify";

const reasons = new WeakMap<FastifyReply, string>();

/**
 * Notes why a call is refused, for its line in the log.
 *
 * @param reason from the tables of errors; never a message, which may repeat what the caller sent
 */
export function noteRefusal(reply: FastifyReply, reason: string): void {
  reasons.set(reply, reason);
}

/** Why the call was refused; undefined if it was not. */
export function refusalOf(reply: FastifyReply): string | undefined {
  return reasons.get(reply);
}
