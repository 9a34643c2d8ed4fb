import {
  type ChainContext,
  enqueueTransaction,
  type FinalHandlers,
  type FinalTransaction,
} from "../chain/index.ts";
import type { Log } from "../platform/log.ts";
import type { Queryable } from "../platform/db.ts";
import { uuidv7 } from "../platform/ids.ts";
import * as store from "./batch-store.ts";
import { grantRoles, lockIssuersDue, noteIssuerSent } from "./issuer-store.ts";
import { loadRegistryCalls, type RegistryCalls } from "./registry-calls.ts";

/** Roots in one transaction: at 25 k gas each it stays well below what a transaction may use (2^24, EIP-7825). */
const rootsMax = 500;
/** A batch that the chain refuses so often is left alone: something is wrong that repeating does not mend. */
const triesMax = 3;

/**
 * Hands everything that waits to the chain: roles of new issuers, distrust, roots to attest and to revoke, one
 * transaction for an issuer and kind. What comes together within the pause of the job shares its transaction. Without
 * work it costs one database call.
 */
export async function sendToRegistry(ctx: ChainContext): Promise<void> {
  if (!(await store.hasWaitingRoots(ctx.db, triesMax))) return;
  const calls = await loadRegistryCalls();
  await ctx.db.transaction(async (tx) => {
    await sendIssuers(ctx, tx, calls);
    await sendRoots(ctx, tx, {
      kind: "attest",
      waiting: await store.lockUnattested(tx, { limit: rootsMax, triesMax }),
      encode: (issuer, roots) => calls.attest(issuer, roots),
    });
    await sendRoots(ctx, tx, {
      kind: "revoke",
      waiting: await store.lockUnrevoked(tx, { limit: rootsMax, triesMax }),
      encode: (issuer, roots) => calls.revoke(issuer, roots),
    });
  });
}

async function sendIssuers(ctx: ChainContext, tx: Queryable, calls: RegistryCalls): Promise<void> {
  const { registry: to } = ctx.chain.contracts;
  for (const issuer of await lockIssuersDue(tx)) {
    if (issuer.needsRole) {
      const data = calls.grantRole(issuer.address, ctx.chain.operator);
      await enqueueTransaction(ctx, tx, { kind: "registry.role", subjectId: issuer.id, to, data });
    }
    if (issuer.distrustedFrom !== null) {
      const subjectId = `${issuer.id}:${issuer.distrustedFrom}`;
      const data = calls.distrust(issuer.address, issuer.distrustedFrom);
      await enqueueTransaction(ctx, tx, { kind: "registry.distrust", subjectId, to, data });
    }
    await noteIssuerSent(tx, issuer.id, ctx.clock.now());
  }
}

async function sendRoots(
  ctx: ChainContext,
  tx: Queryable,
  work: {
    kind: store.BatchKind;
    waiting: readonly store.WaitingRoots[];
    encode: RegistryCalls["attest"];
  },
): Promise<void> {
  const { kind } = work;
  const { registry: to } = ctx.chain.contracts;
  for (const { issuerId, address, roots } of work.waiting) {
    const id = uuidv7(ctx.clock, ctx.random);
    await store.insertBatch(tx, { id, kind, issuerId, roots, now: ctx.clock.now() });
    const data = work.encode(address, roots);
    await enqueueTransaction(ctx, tx, { kind: `credential.${kind}`, subjectId: id, to, data });
  }
}

/** What becomes of the transactions of this slice once they are final; none of it needs the chain. */
export function credentialFinalHandlers(ctx: { readonly log: Log }): FinalHandlers {
  const handle =
    (finish: (tx: Queryable, done: readonly store.FinalBatch[]) => Promise<void>) =>
    async (tx: Queryable, done: readonly FinalTransaction[]): Promise<void> => {
      const failed = reverted(ctx, done).map((each) => each.subjectId);
      if (failed.length > 0) await store.releaseBatches(tx, failed);
      const finished = done
        .filter(({ status }) => status === "succeeded")
        .map(({ subjectId: id, hash, blockTime }) => ({ id, hash, blockTime }));
      if (finished.length > 0) await finish(tx, finished);
    };
  return {
    "credential.attest": handle(store.finishAttested),
    "credential.revoke": handle(store.finishRevoked),
    "registry.role": async (tx, done) => {
      reverted(ctx, done);
      const granted = done.filter(({ status }) => status === "succeeded");
      await grantRoles(
        tx,
        granted.map(({ subjectId: id, blockTime: at }) => ({ id, at })),
      );
    },
    // The index has known of it since the operator said so.
    "registry.distrust": async (_tx, done) => void reverted(ctx, done),
  };
}

function reverted(
  { log }: { readonly log: Log },
  done: readonly FinalTransaction[],
): FinalTransaction[] {
  const failed = done.filter(({ status }) => status === "reverted");
  for (const { id, kind, subjectId, hash } of failed) {
    log.error({ transaction: id, kind, subjectId, hash }, "the registry refused a transaction");
  }
  return failed;
}
