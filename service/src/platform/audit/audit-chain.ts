import type { EntryRow, LinkedEntry, SealedEnd } from "./audit-store.ts";
import type { Ctx } from "../context.ts";
import { equalBytes } from "../cryptography/mac.ts";
import { sha256 } from "../cryptography/sha256.ts";

export type AuditContext = Pick<Ctx, "db" | "clock" | "keys">;

/**
 * A place in the chain: the hash of the link at `position`, which covers everything before it; position 0 is before the
 * first link.
 */
export interface ChainEnd {
  readonly position: number;
  readonly hash: Buffer;
}

/** SHA-256 over the previous hash and the entry in its canonical form. */
export function linkHash(previous: ChainEnd, entry: EntryRow): Buffer {
  const { id, at, actor, action, subject, details } = entry;
  const canonical = JSON.stringify([
    "svc-audit-v1",
    previous.hash.toString("hex"),
    previous.position + 1,
    id,
    at,
    actor,
    action,
    subject,
    details,
  ]);
  return sha256(canonical);
}

/**
 * Only the service can make a seal: somebody who can write to the database but lacks the keys cannot build another
 * chain.
 */
export function sealLink(
  ctx: AuditContext,
  kind: "link" | "head" | "checkpoint",
  { position, hash }: ChainEnd,
): Buffer {
  return ctx.keys.mac("audit-seal", JSON.stringify([kind, position, hash.toString("hex")]));
}

/** The beginning has no seal, since there is nothing before it. */
export function isSealed(ctx: AuditContext, kind: "head" | "checkpoint", end: SealedEnd): boolean {
  if (end.seal === null) return end.position === 0 && end.hash.every((byte) => byte === 0);
  return equalBytes(end.seal, sealLink(ctx, kind, end));
}

/** Whether this link follows `previous`, and both it and its entry are as the service wrote them. */
export function isLinkIntact(
  ctx: AuditContext,
  previous: ChainEnd,
  link: LinkedEntry,
): link is LinkedEntry & { entry: EntryRow } {
  return (
    link.position === previous.position + 1 &&
    link.entry !== null &&
    equalBytes(link.seal, sealLink(ctx, "link", link)) &&
    equalBytes(link.hash, linkHash(previous, link.entry))
  );
}
