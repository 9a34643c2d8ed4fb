import { databaseNowMs, endedForAll } from "../../platform/clock.ts";
import { forgetOldest } from "../../platform/forget-oldest.ts";
import { purgeByPages } from "../../platform/database/purge.ts";
import { SealBroken, openWith, sealWith } from "../../platform/cryptography/seal.ts";
import type { RefreshToken } from "./refresh-token.ts";
import * as store from "./refresh-successor-store.ts";
import type { TokenContext } from "../token-context.ts";

/**
 * Successors of refresh tokens, each sealed under the token that it replaces, so that the database alone cannot open
 * them. They are deleted as soon as the grace is over.
 */
export interface RefreshSuccessors {
  seal(previous: RefreshToken, successor: RefreshToken): Buffer;
  /** Null when there is none, or it was sealed for another token. */
  open(previous: RefreshToken, sealed: Buffer | null): string | null;
  /** Remembers that this family has held a sealed successor since then. */
  note(familyId: string, rotatedAtMs: number): void;
  /** Deletes successors of this process whose grace is over, in one statement. */
  sweep(): Promise<void>;
  /** Deletes such successors of every process, since one that was killed leaves them behind. Reads the whole table. */
  sweepAll(): Promise<void>;
}

const context = "refresh-successor";
/** Above this, the oldest are left to `sweepAll`. */
const notedMax = 100_000;

/** Keeps the families in memory: an index to find their successors would cost every refresh a write. */
export function createRefreshSuccessors(
  ctx: Pick<TokenContext, "config" | "db" | "clock">,
): RefreshSuccessors {
  const noted = new Map<string, number>();
  const graceMs = ctx.config.refreshGraceSeconds * 1000;
  return {
    seal: (previous, successor) =>
      sealWith(Buffer.from(previous.text), Buffer.from(successor.text), context),
    open(previous, sealed) {
      if (sealed === null) return null;
      try {
        return openWith(Buffer.from(previous.text), sealed, context).toString("utf8");
      } catch (error) {
        if (error instanceof SealBroken) return null;
        throw error;
      }
    },
    note(familyId, rotatedAtMs) {
      noted.delete(familyId);
      noted.set(familyId, rotatedAtMs);
      forgetOldest(noted, notedMax);
    },
    async sweep() {
      const before = databaseNowMs(ctx.clock) - graceMs;
      const due = [...noted].filter(([, at]) => at <= before).map(([id]) => id);
      if (due.length === 0) return;
      await store.deleteSuccessors(ctx.db, due, before);
      for (const id of due) if ((noted.get(id) ?? Infinity) <= before) noted.delete(id);
    },
    async sweepAll() {
      const beforeMs = endedForAll(ctx.clock) * 1000 - graceMs;
      await purgeByPages(async (page) =>
        store.deleteSuccessorsOfPage(ctx.db, { beforeMs, ...page }),
      );
    },
  };
}
