import type { Ctx } from "../../platform/context.ts";
import {
  type KeyRecord,
  planRotation,
  planTakeover,
  statusOf,
} from "../../platform/cryptography/key-schedule.ts";
import { Problem } from "../../platform/http/problems.ts";
import { type KeyPurpose, keysOf } from "./signing-key.ts";
import * as store from "./signing-key-store.ts";
import { ensureKeys, makeKey } from "./signing-keys.ts";

/** Every signing key that was not revoked, by purpose and start. */
export async function listSigningKeys(ctx: Ctx): Promise<KeyRecord<KeyPurpose>[]> {
  const now = ctx.clock.now();
  const rows = await store.listKeys(ctx.db);
  return rows.map((row) => {
    const { kid, purpose, createdAt, startsAt } = row;
    return { kid, purpose, status: statusOf(keysOf(rows, purpose), row, now), createdAt, startsAt };
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
    const next = planRotation(keysOf(await store.listKeys(tx), purpose), now);
    // Another call may have been faster.
    if (next === null || !(await store.startKey(tx, next.kid, now)))
      throw new Error(`${purpose} was rotated a moment ago`);
    const details = { purpose };
    await ctx.audit.record(tx, { actor, action: "signing-key.rotate", subject: next.kid, details });
    return next.kid;
  });
  await ensureKeys(ctx);
  return kid;
}

/**
 * Revokes a key at once, after it got into other hands: it is no longer published, what it signed no longer counts here,
 * and its published successor takes over, or a new key where that was revoked too.
 *
 * @throws {Problem} key_not_found
 */
export async function revokeSigningKey(ctx: Ctx, kid: string, actor: string): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const keys = await store.lockKeys(tx);
    const key = keys.find((each) => each.kid === kid);
    if (key === undefined) throw new Problem("key_not_found");
    const { purpose } = key;
    const now = ctx.clock.now();
    await store.revokeKey(tx, kid, now);
    const signer = planTakeover(keysOf(keys, purpose), kid, ctx.clock);
    const { startsAt } = signer;
    if (signer.kid !== null) await store.startKey(tx, signer.kid, startsAt);
    // The successor was revoked a moment ago: without a key, each request for a token would fail, and end its code.
    else await store.insertKey(tx, await makeKey(ctx, purpose, { now, startsAt }));
    const details = { purpose };
    await ctx.audit.record(tx, { actor, action: "signing-key.revoke", subject: kid, details });
  });
  await ensureKeys(ctx);
}
