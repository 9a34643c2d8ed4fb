import type { Ctx } from "../../platform/context.ts";
import {
  type KeyRecord,
  planRotation,
  planTakeover,
  statusOf,
} from "../../platform/cryptography/key-schedule.ts";
import { Problem } from "../../platform/http/problems.ts";
import { createAttestationKeys } from "./attestation-keys.ts";
import * as store from "./attestation-key-store.ts";

/** The purpose of these keys in the operator's key list, beside those that sign tokens. */
export const attestationKeyPurpose = "kyb-attestation";

/** Every attestation key that has not been revoked, by its start; none before the first attestation. */
export async function listAttestationKeys(
  ctx: Ctx,
): Promise<KeyRecord<typeof attestationKeyPurpose>[]> {
  const now = ctx.clock.now();
  const rows = await store.listKeys(ctx.db);
  return rows.map((row) => {
    const { kid, createdAt, startsAt } = row;
    const status = statusOf(rows, row, now);
    return { kid, purpose: attestationKeyPurpose, status, createdAt, startsAt };
  });
}

/**
 * Lets the published successor sign attestations from now on, and makes the next successor. Attestations of the old key
 * stay valid.
 *
 * @returns the kid that signs now
 */
export async function rotateAttestationKey(ctx: Ctx, actor: string): Promise<string> {
  const keys = createAttestationKeys(ctx);
  await keys.rotate();
  const now = ctx.clock.now();
  const kid = await ctx.db.transaction(async (tx) => {
    const known = await store.listKeys(tx);
    if (known.length === 0) throw new Error("the first attestation makes the first key");
    const next = planRotation(known, now);
    // Another call may have been faster.
    if (next === null || !(await store.startKey(tx, next.kid, now)))
      throw new Error(`${attestationKeyPurpose} was rotated a moment ago`);
    await ctx.audit.record(tx, { actor, action: "attestation-key.rotate", subject: next.kid });
    return next.kid;
  });
  await keys.rotate();
  return kid;
}

/**
 * Revokes a stolen key at once: it is no longer published, so its attestations can no longer be verified, and its
 * published successor takes over.
 *
 * @throws {Problem} key_not_found
 */
export async function revokeAttestationKey(ctx: Ctx, kid: string, actor: string): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const keys = await store.listKeys(tx);
    if (!(await store.revokeKey(tx, kid, ctx.clock.now()))) throw new Problem("key_not_found");
    const signer = planTakeover(keys, kid, ctx.clock);
    if (signer.kid !== null) await store.startKey(tx, signer.kid, signer.startsAt);
    await ctx.audit.record(tx, { actor, action: "attestation-key.revoke", subject: kid });
  });
  await createAttestationKeys(ctx).rotate();
}
