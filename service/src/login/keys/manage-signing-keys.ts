import { endedForAll } from "../../platform/clock.ts";
import type { Ctx } from "../../platform/context.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { Problem } from "../../platform/http/problems.ts";
import { currentOf, type KeyPurpose } from "./signing-key.ts";
import * as store from "./signing-key-store.ts";
import { ensureKeys } from "./signing-keys.ts";

/** A signing key as operators see it. */
interface SigningKeyRecord {
  readonly kid: string;
  readonly purpose: KeyPurpose;
  /** `next` is published already and signs from `startsAt`; what a `retired` one signed may still be good. */
  readonly status: "retired" | "current" | "next";
  readonly createdAt: number;
  readonly startsAt: number;
}

/** Every signing key that was not revoked, by purpose and start. */
export async function listSigningKeys(ctx: Ctx): Promise<SigningKeyRecord[]> {
  const now = ctx.clock.now();
  const rows = await store.listKeys(ctx.db);
  return rows.map((row) => {
    const isCurrent = currentOf(rows, row.purpose, now)?.kid === row.kid;
    const status = isCurrent ? "current" : row.startsAt > now ? "next" : "retired";
    const { kid, purpose, createdAt, startsAt } = row;
    return { kid, purpose, status, createdAt, startsAt };
  });
}

/**
 * Lets the published successor of a purpose sign from now on, and makes the one after it. What the old key signed stays
 * good; nobody has to fetch anything.
 *
 * @returns the kid that signs now
 */
export async function rotateSigningKey(
  ctx: Ctx,
  purpose: KeyPurpose,
  actor: string,
): Promise<string> {
  await ensureKeys(ctx);
  const now = ctx.clock.now();
  const kid = await ctx.db.transaction(async (tx) => {
    const keys = await store.listKeys(tx);
    // Two keys of one purpose never start in the same second.
    const next = nextOf(keys, purpose, now);
    if (next === null || currentOf(keys, purpose, now)?.startsAt === now)
      throw new Error(`${purpose} was rotated a moment ago`);
    await store.startKey(tx, next.kid, now);
    const details = { purpose };
    await ctx.audit.record(tx, { actor, action: "signing-key.rotate", subject: next.kid, details });
    return next.kid;
  });
  await ensureKeys(ctx);
  return kid;
}

/**
 * Revokes a key at once, after it got into other hands: it is no longer published, what it signed no longer counts here,
 * and its published successor takes over.
 *
 * @throws {Problem} key_not_found
 */
export async function revokeSigningKey(ctx: Ctx, kid: string, actor: string): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const now = ctx.clock.now();
    const keys = await store.listKeys(tx);
    const key = keys.find((each) => each.kid === kid);
    if (key === undefined || !(await store.revokeKey(tx, kid, now)))
      throw new Problem("key_not_found");
    const isSigner = currentOf(keys, key.purpose, now)?.kid === kid;
    const left = keys.filter((each) => each.kid !== kid);
    const signer = (isSigner ? nextOf : currentOf)(left, key.purpose, now);
    if (signer !== null) {
      const others = left.filter((each) => each.kid !== signer.kid);
      await startForAll(ctx, tx, { signer, others });
    }
    const details = { purpose: key.purpose };
    await ctx.audit.record(tx, { actor, action: "signing-key.revoke", subject: kid, details });
  });
  await ensureKeys(ctx);
}

/**
 * Lets a key sign in every process, also where the clock is late: without it an older key would sign there, which others
 * may have forgotten already, or none.
 */
async function startForAll(
  ctx: Ctx,
  tx: Queryable,
  { signer, others }: { signer: store.SigningKeyRow; others: readonly store.SigningKeyRow[] },
): Promise<void> {
  const before = currentOf(others, signer.purpose, ctx.clock.now());
  // Two keys of one purpose never start in the same second.
  const free = before === null ? 0 : before.startsAt + 1;
  await store.startKey(tx, signer.kid, Math.max(endedForAll(ctx.clock), free));
}

/** The published key of a purpose that signs after the current one. */
function nextOf(
  keys: readonly store.SigningKeyRow[],
  purpose: KeyPurpose,
  now: number,
): store.SigningKeyRow | null {
  const ahead = keys.filter((key) => key.purpose === purpose && key.startsAt > now);
  return ahead.toSorted((a, b) => a.startsAt - b.startsAt)[0] ?? null;
}
