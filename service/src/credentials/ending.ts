import type { Address } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import { purgeInBatches } from "../platform/database/purge.ts";
import type { Queryable } from "../platform/database/db.ts";
import { workInTransactions } from "../platform/database/work-in-batches.ts";
import { Problem } from "../platform/http/problems.ts";
import type { EndedReason } from "./credential.ts";
import * as store from "./credential-store.ts";
import type { CredentialsContext, InvalidLeaf } from "./credentials-context.ts";
import { forgetAskedCodes } from "./email.ts";
import { idempotencySeconds } from "./issue.ts";
import type { Issuer } from "./issuer.ts";

type EndingContext = Pick<Ctx, "db" | "clock" | "audit"> &
  Pick<CredentialsContext, "onInvalidated">;

/**
 * After this long, values that no wallet has collected are deleted. Their credential ends too: without the values
 * nobody can present it.
 */
const uncollectedSeconds = 30 * 86_400;
const batchMax = 200;

/**
 * Revokes a credential at once and for good; a job then revokes its root on chain. Does nothing if it has ended
 * already.
 *
 * @throws {Problem} credential_not_found, also for a credential of another issuer
 */
export async function revokeCredential(
  ctx: EndingContext,
  issuer: Pick<Issuer, "id">,
  id: string,
): Promise<void> {
  const found = await store.findCredential(ctx.db, id);
  if (found?.issuerId !== issuer.id) throw new Problem("credential_not_found");
  await endOne(ctx, id, { reason: "revoked", actor: `issuer:${issuer.id}` });
}

/**
 * Ends a credential at the request of its user, as {@link revokeCredential} does.
 *
 * @throws {Problem} credential_not_found
 */
export async function withdrawCredential(
  ctx: EndingContext,
  user: Address,
  id: string,
): Promise<void> {
  const found = await store.findCredential(ctx.db, id);
  if (found?.user !== user) throw new Problem("credential_not_found");
  await endOne(ctx, id, { reason: "withdrawn", actor: user });
}

async function endOne(
  ctx: EndingContext,
  id: string,
  { reason, actor }: { reason: EndedReason; actor: string },
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const ended = await store.endCredentials(tx, { ids: [id], reason, now: ctx.clock.now() });
    if (ended === 0) return;
    await ctx.audit.record(tx, { actor, action: `credential.${verbOf[reason]}`, subject: id });
    await announce(ctx, tx, [id]);
  });
}

const verbOf: Record<EndedReason, string> = {
  revoked: "revoke",
  withdrawn: "withdraw",
  lapsed: "lapse",
};

async function announce(ctx: EndingContext, tx: Queryable, ids: readonly string[]): Promise<void> {
  const leaves: InvalidLeaf[] = await store.listAttestedLeaves(tx, ids);
  if (leaves.length > 0) await ctx.onInvalidated(tx, leaves);
}

/**
 * Deletes everything stored about a user's fields, in the caller's transaction.
 *
 * @returns how many credentials were deleted, and their attested leaves, of which the caller has to notify merchants
 */
export async function forgetUser(
  tx: Queryable,
  user: Address,
  now: number,
): Promise<{ credentials: number; leaves: readonly InvalidLeaf[] }> {
  const leaves = await store.listAttestedLeaves(tx, await store.lockOfUser(tx, user));
  await forgetAskedCodes(tx, user);
  return { credentials: await store.deleteOfUser(tx, user, now), leaves };
}

/** Ends credentials that nobody has collected in 30 days, and deletes idempotency keys after a day. */
export async function purgeCredentials(ctx: EndingContext): Promise<void> {
  const now = ctx.clock.now();
  await workInTransactions(ctx.db, batchMax, async (tx, limit) => {
    const before = now - uncollectedSeconds;
    const ids = await store.lockUncollected(tx, { before, limit });
    if (ids.length === 0) return 0;
    await store.endCredentials(tx, { ids, reason: "lapsed", now });
    for (const id of ids) {
      await ctx.audit.record(tx, { actor: "system", action: "credential.lapse", subject: id });
    }
    await announce(ctx, tx, ids);
    return ids.length;
  });
  const before = now - idempotencySeconds;
  await purgeInBatches(async (limit) => store.deleteIdempotencyKeys(ctx.db, before, limit));
}

/** Announces the leaves that a distrust of their issuer has invalidated. */
export async function announceDistrusted(ctx: EndingContext): Promise<void> {
  await workInTransactions(ctx.db, batchMax, async (tx, limit) => {
    const ids = await store.lockDistrusted(tx, limit);
    if (ids.length === 0) return 0;
    await store.noteInvalidated(tx, ids, ctx.clock.now());
    await announce(ctx, tx, ids);
    return ids.length;
  });
}
