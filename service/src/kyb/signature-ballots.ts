// What follows from the votes on a signature: its recording on chain, and how that ends.
import type { Hex, Hex32 } from "@svc/protocol";
import { hexOfBytes } from "@svc/protocol";
import { businessWallet } from "@svc/contracts";
import { encodeFunctionData, type PublicClient } from "viem";
import { enqueueTransaction, type FinalHandlers } from "../chain/index.ts";
import type { Queryable } from "../platform/db.ts";
import type { BallotRules } from "./ballot.ts";
import { joinApprovals, reopenBallot } from "./ballots.ts";
import { lockBusiness, noteBusinessAcquaintance } from "./business-store.ts";
import { announce } from "./events.ts";
import type { KybContext } from "./kyb-context.ts";
import { announcementOf, type SignatureRequest } from "./signature-request.ts";
import { endRequest, openDocument } from "./signature-requests.ts";
import * as store from "./signature-store.ts";

const recordKind = "business.record";
const failedBatch = 20;
/** A refusal is told of after a random time between these, so that it tells nothing of who refused, or when. */
const refusalDelaySeconds = { min: 5, max: 30 };

export const signatureBallots: BallotRules = {
  show: async (ctx, ids) => {
    const rows = await store.listDocuments(ctx.db, ids);
    return new Map(
      rows.map((row) => [
        row.id,
        { ...openDocument(ctx, row), digest: hexOfBytes(row.digest), purpose: row.purpose },
      ]),
    );
  },

  onApproved: async (ctx, tx, { ballot, approvals }) => {
    const recordings = await store.beginRecording(tx, ballot.id, ctx.clock.now());
    if (recordings === null || ballot.hash === null) return;
    const data = encodeFunctionData({
      abi: businessWallet.abi,
      functionName: "record",
      args: [ballot.hash, ballot.validUntil, joinApprovals(approvals)],
    });
    const subjectId = `${ballot.id}.${recordings}`;
    await enqueueTransaction(ctx, tx, { kind: recordKind, subjectId, to: ballot.business, data });
  },

  onEnded: async (ctx, tx, { ballot, outcome }) => {
    if (outcome === "expired") {
      await endRequest(ctx, tx, { id: ballot.id, status: "expired", reason: "expired" });
      return;
    }
    const { min, max } = refusalDelaySeconds;
    const dueAt = ctx.clock.now() + min + ctx.random.below(max - min + 1);
    await store.putOffRefusal(tx, ballot.id, dueAt);
  },

  onStopped: async (ctx, tx, { ballot, reason }) => {
    await endRequest(ctx, tx, { id: ballot.id, status: "failed", reason });
  },
};

/** What follows when a recording is final. */
export function signatureFinalHandlers(ctx: KybContext): FinalHandlers {
  return {
    [recordKind]: async (tx, done) => {
      const failed: string[] = [];
      for (const each of done) {
        const [id = ""] = each.subjectId.split(".");
        if (each.status === "reverted") failed.push(id);
        else await finishSigned(ctx, tx, { id, transactionHash: each.hash, at: each.blockTime });
      }
      if (failed.length > 0) await store.noteFailedRecordings(tx, failed);
    },
  };
}

async function finishSigned(
  ctx: KybContext,
  tx: Queryable,
  signed: { id: string; transactionHash: Hex32; at: number },
): Promise<void> {
  const now = ctx.clock.now();
  const request = await store.markSigned(tx, { ...signed, now });
  if (request === null) return;
  const { business, organizationId } = request;
  await noteBusinessAcquaintance(tx, { business, organizationId, now });
  await announce(ctx, tx, [announcementOf(request, ctx.chain.chainId)]);
}

/**
 * Looks at recordings that the chain refused. Somebody else may have recorded the same document: then it is signed. The
 * members may have changed meanwhile: then they are asked again. Else it cannot be signed.
 */
export async function mendRecordings(ctx: KybContext): Promise<void> {
  for (const request of await store.listFailedRecordings(ctx.db, failedBatch)) {
    const { recorded, epoch } = await lookAtChain(ctx, request);
    await ctx.db.transaction(async (tx) => {
      const business = await lockBusiness(tx, request.business);
      if (recorded !== null) return finishSigned(ctx, tx, { id: request.id, ...recorded });
      // The charter of the chain is not known here yet.
      if (business !== null && business.epoch < epoch) return;
      const isLate = request.expiresAt < ctx.clock.now();
      if (business?.status === "active" && !isLate) {
        const isAskedAgain = await reopenBallot(tx, request.id);
        if (isAskedAgain) return store.clearApproval(tx, request.id);
      }
      const reason = isLate ? ("expired" as const) : ("unavailable" as const);
      const status = isLate ? ("expired" as const) : ("failed" as const);
      await endRequest(ctx, tx, { id: request.id, status, reason });
    });
  }
}

/** The epoch of the wallet, and where and when the chain recorded the document of a request; null where it did not. */
async function lookAtChain(
  ctx: KybContext,
  { business, digest }: SignatureRequest,
): Promise<{ epoch: number; recorded: { transactionHash: Hex32; at: number } | null }> {
  const reader: PublicClient = ctx.chain.reader;
  const contract = { address: business, abi: businessWallet.abi } as const;
  const at = await reader.readContract({ ...contract, functionName: "recordedAt", args: [digest] });
  const epoch = Number(await reader.readContract({ ...contract, functionName: "epoch" }));
  if (at === 0) return { epoch, recorded: null };
  const logs = await reader.getContractEvents({
    ...contract,
    eventName: "Recorded",
    args: { hash: digest as Hex },
    fromBlock: 0n,
  });
  const transactionHash = logs.at(-1)?.transactionHash;
  return { epoch, recorded: transactionHash == null ? null : { transactionHash, at } };
}
