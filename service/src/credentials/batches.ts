import {
  type ChainContext,
  enqueueTransaction,
  failuresBefore,
  type FinalHandlers,
  type FinalTransaction,
  subjectOfAttempt,
  withdrawUnsigned,
} from "../chain/index.ts";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { uuidv7 } from "../platform/ids.ts";
import * as store from "./batch-store.ts";
import * as issuers from "./issuer-store.ts";
import { loadRegistryCalls, type RegistryCalls } from "./registry-calls.ts";

/** The most roots in one transaction: at 25,000 gas each, well below the limit of a transaction (2^24, EIP-7825). */
const rootsMax = 500;
/**
 * Seconds from a revert to the next attempt, by the number of reverts. The attempts never stop: the cause, such as a
 * role that the operator lacked, may be fixed any day, and an attempt per hour costs next to nothing.
 */
const pauses = [120, 240, 480, 960, 1920, 3600];

/**
 * Queues transactions for everything that is due on chain: roles of new issuers, distrust, roots to attest and to
 * revoke, one transaction per issuer and kind. Without work it costs one database call.
 */
export async function sendToRegistry(ctx: ChainContext): Promise<void> {
  const now = ctx.clock.now();
  const { operator } = ctx.chain;
  if (!(await store.hasWaitingRoots(ctx.db, { now, operator }))) return;
  const calls = await loadRegistryCalls();
  await moveRoles(ctx, calls);
  await noteKnownDistrust(ctx, calls);
  await ctx.db.transaction(async (tx) => {
    await sendIssuers(ctx, tx, calls);
    await sendRoots(ctx, tx, {
      kind: "attest",
      waiting: await store.lockUnattested(tx, { limit: rootsMax, now }),
      encode: (issuer, roots) => calls.attest(issuer, roots),
    });
    await sendRoots(ctx, tx, {
      kind: "revoke",
      waiting: await store.lockUnrevoked(tx, { limit: rootsMax, now }),
      encode: (issuer, roots) => calls.revoke(issuer, roots),
    });
  });
}

/**
 * Moves the roles of issuers from a former account of the operator to this one, if this one is the registry's admin:
 * during a change of accounts, processes with both may run.
 */
async function moveRoles(ctx: ChainContext, calls: RegistryCalls): Promise<void> {
  const { operator, contracts } = ctx.chain;
  if (!(await issuers.hasForeignRoles(ctx.db, operator))) return;
  if ((await calls.admin(ctx)) !== operator) return;
  await ctx.db.transaction(async (tx) => {
    for (const role of await issuers.takeForeignRoles(tx, operator)) {
      const { id, address, account, failures } = role;
      if (account === null) continue;
      // If this were signed after the role's end, it would give the role back to the former account.
      const asked = subjectOfAttempt([id], failures - 1);
      await withdrawUnsigned(tx, { kind: "registry.role", subjectId: asked });
      const subjectId = subjectOfAttempt([id], failures);
      const data = calls.revokeRole(address, account);
      await enqueueTransaction(ctx, tx, {
        kind: "registry.role-end",
        subjectId,
        to: contracts.registry,
        data,
      });
    }
  });
}

/**
 * Marks distrusts that the chain has already. The registry only accepts one that reaches further back than its own, so
 * sending these would revert for ever.
 */
async function noteKnownDistrust(ctx: ChainContext, calls: RegistryCalls): Promise<void> {
  for (const { id, address } of await issuers.listDistrustDue(ctx.db, ctx.clock.now())) {
    const from = await calls.distrustedFrom(ctx, address);
    if (from !== null) await issuers.noteDistrustKnown(ctx.db, { id, from });
  }
}

async function sendIssuers(ctx: ChainContext, tx: Queryable, calls: RegistryCalls): Promise<void> {
  const { registry: to } = ctx.chain.contracts;
  const now = ctx.clock.now();
  for (const issuer of await issuers.lockIssuersDue(tx, now)) {
    const { id, address, distrustedFrom: from } = issuer;
    if (issuer.needsRole) {
      const subjectId = subjectOfAttempt([id], issuer.roleFailures);
      const data = calls.grantRole(address, ctx.chain.operator);
      await enqueueTransaction(ctx, tx, { kind: "registry.role", subjectId, to, data });
    }
    if (from !== null) {
      const subjectId = subjectOfAttempt([id, from], issuer.distrustFailures);
      const data = calls.distrust(address, from);
      await enqueueTransaction(ctx, tx, { kind: "registry.distrust", subjectId, to, data });
    }
    await issuers.noteIssuerSent(tx, issuer, { now, operator: ctx.chain.operator });
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

/** The handlers of this slice's final transactions; none of them needs the chain. */
export function credentialFinalHandlers(ctx: Pick<Ctx, "log" | "clock">): FinalHandlers {
  const handle =
    (finish: (tx: Queryable, done: readonly store.FinalBatch[]) => Promise<void>) =>
    async (tx: Queryable, done: readonly FinalTransaction[]): Promise<void> => {
      const ids = reverted(ctx, done).map((each) => each.subjectId);
      if (ids.length > 0) await store.releaseBatches(tx, { ids, pauses, now: ctx.clock.now() });
      const finished = done
        .filter(({ status }) => status === "succeeded")
        .map(({ subjectId: id, hash, blockTime }) => ({ id, hash, blockTime }));
      if (finished.length > 0) await finish(tx, finished);
    };
  return {
    "credential.attest": handle(store.finishAttested),
    "credential.revoke": handle(store.finishRevoked),
    "registry.role": async (tx, done) => finishRoles(ctx, tx, done),
    "registry.role-end": async (tx, done) => finishRoleEnds(ctx, tx, done),
    // On success there is nothing to do: the index has applied the distrust since the operator declared it.
    "registry.distrust": async (tx, done) => {
      for (const { subjectId } of reverted(ctx, done)) {
        const [id = "", from, number] = subjectId.split(":");
        const failures = failuresBefore(number);
        const now = ctx.clock.now();
        await issuers.putOffDistrust(tx, { id, from: Number(from), failures, pauses, now });
      }
    },
  };
}

async function finishRoles(
  ctx: Pick<Ctx, "log" | "clock">,
  tx: Queryable,
  done: readonly FinalTransaction[],
): Promise<void> {
  for (const { subjectId } of reverted(ctx, done)) {
    const [id = "", number] = subjectId.split(":");
    const failures = failuresBefore(number);
    await issuers.putOffRole(tx, { id, failures, pauses, now: ctx.clock.now() });
  }
  const granted = done
    .filter(({ status }) => status === "succeeded")
    .map(({ subjectId, blockTime: at }) => {
      const [id = "", number] = subjectId.split(":");
      return { id, at, failures: failuresBefore(number) };
    });
  await issuers.grantRoles(tx, granted);
}

/**
 * If the end of a role was reverted because the former account itself sent it, which is not the registry's admin any
 * more, the role is moved once more. Otherwise the registry has yet another admin by now, which is reported.
 */
async function finishRoleEnds(
  ctx: Pick<Ctx, "log" | "clock">,
  tx: Queryable,
  done: readonly FinalTransaction[],
): Promise<void> {
  for (const { id: transaction, subjectId, signer: account, status } of done) {
    if (status !== "reverted") continue;
    const [issuer = ""] = subjectId.split(":");
    const now = ctx.clock.now();
    if (await issuers.noteRoleKept(tx, { id: issuer, account, now })) continue;
    ctx.log.error(
      { transaction, issuer },
      "a former account of the operator's keeps the role of an issuer: revoke it by hand",
    );
  }
}

function reverted(
  { log }: Pick<Ctx, "log">,
  done: readonly FinalTransaction[],
): FinalTransaction[] {
  const failed = done.filter(({ status }) => status === "reverted");
  for (const { id, kind, subjectId, hash } of failed) {
    log.error(
      { transaction: id, kind, subjectId, hash },
      "the registry refused a transaction; it is sent again later",
    );
  }
  return failed;
}
