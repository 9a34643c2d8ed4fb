import type { Address } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import { randomId } from "../platform/ids.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import { purgeInBatches } from "../platform/database/purge.ts";
import { sha256 } from "../platform/cryptography/sha256.ts";
import * as store from "./mailbox-store.ts";

/** `exp` of a data transfer is at most 60 minutes; a wallet's clock may be ahead. */
const lifetimeSecondsMax = 3660;
/** More hand-overs at a time than a person makes. */
const boxesPerUserMax = 20;
/** How long a reader may take its box again: our answer may be lost on the way. */
const againSeconds = 60;

/** A box that waits to be taken. */
export interface Mailbox {
  /** 192 random bits: anyone who knows the id may take the box. */
  readonly id: string;
  /** Unix seconds. */
  readonly expiresAt: number;
  /** The page of the web wallet that reads the fragment of a pick-up link. */
  readonly pickUpUrl: string;
}

/**
 * Stores a sealed box until it is taken or its time is over (decisions section 3, `p2p`).
 *
 * @throws {Problem} invalid_request for a time that has passed or is more than 61 minutes ahead; too_many for a 21st
 * box at the same time
 */
export async function leaveBox(
  ctx: Ctx,
  user: Address,
  { box, expiresAt }: { box: string; expiresAt: number },
): Promise<Mailbox> {
  const now = ctx.clock.now();
  if (expiresAt <= now || expiresAt > now + lifetimeSecondsMax)
    throw invalidRequest("expiresAt must lie ahead, at most an hour");
  const id = randomId(ctx.random, 24);
  const made = { idSha256: sha256(id), user, box, createdAt: now, expiresAt };
  const isKept = await ctx.db.transaction(async (tx) => store.insertBox(tx, made, boxesPerUserMax));
  if (!isKept) throw new Problem("too_many");
  return { id, expiresAt, pickUpUrl: `${ctx.config.walletOrigin}/p` };
}

/**
 * Gives a box to the first caller who asks for it in time, then only to that reader again, for a minute.
 *
 * @param reader a secret that the reader made up; without one, a box is gone once it was taken
 * @throws {Problem} mailbox_empty
 */
export async function takeBox(
  ctx: Ctx,
  { id, reader }: { id: string; reader: string | undefined },
): Promise<{ box: string }> {
  const [idSha256, now] = [sha256(id), ctx.clock.now()];
  const box =
    reader === undefined
      ? await store.takeBox(ctx.db, idSha256, now)
      : await store.takeBoxAgain(
          ctx.db,
          { idSha256, readerSha256: sha256(`${id}.${reader}`) },
          { now, againSeconds },
        );
  if (box === null) throw new Problem("mailbox_empty");
  return { box };
}

/** Deletes boxes whose time is over. */
export async function purgeMailbox(ctx: Ctx): Promise<void> {
  const now = ctx.clock.now();
  await purgeInBatches(async (limit) => store.deleteBoxes(ctx.db, now, limit));
}
