// What follows from the votes on a signature request: the recording of the signature on chain, and its outcome.
import { type Hex32, hexOfBytes } from "@svc/protocol";
import { enqueueTransaction, type FinalHandlers, throwGravest } from "../../chain/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import type { BallotRules } from "../ballot/ballot.ts";
import { joinApprovals, reopenBallot } from "../ballot/ballots.ts";
import { type Business, isGoodStanding } from "../business/business.ts";
import { noteBusinessAcquaintance } from "../business/acquaintance-store.ts";
import { lockBusiness } from "../business/business-store.ts";
import { announce } from "../event/events.ts";
import type { KybContext } from "../kyb-context.ts";
import { refusalDelay } from "../ballot/refusal-delay.ts";
import { requestLook } from "../business/roster-store.ts";
import {
  announcementOf,
  type SignatureReason,
  type SignatureRequest,
} from "./signature-request.ts";
import { endSignatureRequest, openDocument } from "./signature-requests.ts";
import * as store from "./signature-request-store.ts";
import { loadWalletCalls } from "../business/wallet-calls.ts";

const recordKind = "business.record";
const failedBatch = 20;

export const signatureRequestBallots: BallotRules = {
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
    const calls = await loadWalletCalls();
    const { hash, validUntil } = ballot;
    const data = calls.record(hash, { validUntil, signatures: joinApprovals(approvals) });
    const subjectId = `${ballot.id}.${recordings}`;
    await enqueueTransaction(ctx, tx, { kind: recordKind, subjectId, to: ballot.business, data });
  },

  onEnded: async (ctx, tx, { ballot, outcome }) => {
    if (outcome === "expired") {
      await endSignatureRequest(ctx, tx, { id: ballot.id, status: "expired", reason: "expired" });
      return;
    }
    const dueAt = ctx.clock.now() + refusalDelay(ctx.random);
    await store.putOffRefusal(tx, ballot.id, dueAt);
  },

  onStopped: async (ctx, tx, { ballot, reason }) => {
    await endSignatureRequest(ctx, tx, { id: ballot.id, status: "failed", reason });
  },
};

/** Handles final transactions of recordings. */
export function signatureFinalHandlers(ctx: KybContext): FinalHandlers {
  return {
    [recordKind]: async (tx, done) => {
      const recordings = done.map((each) => ({
        status: each.status,
        id: each.subjectId.split(".")[0] ?? "",
        transactionHash: each.hash,
        block: each.blockNumber,
        at: each.blockTime,
      }));
      const failed = recordings.filter(({ status }) => status === "reverted");
      const ids = failed.map(({ id }) => id);
      // Businesses are locked before their requests, in the same order as by mend(), so that the two cannot deadlock.
      for (const business of await store.listBusinessesOf(tx, ids)) await requestLook(tx, business);
      await store.noteFailedRecordings(tx, failed);
      for (const signed of recordings)
        if (signed.status === "succeeded") await finishSigned(ctx, tx, signed);
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
 * Resolves recordings whose transaction was reverted. If somebody else has recorded the same document, it is signed. If
 * members or rules have changed meanwhile, members are asked again. Otherwise it cannot be signed. A recording that
 * cannot be resolved now does not delay the others.
 */
export async function mendRecordings(ctx: KybContext): Promise<void> {
  const faults: unknown[] = [];
  let after = "";
  let requests;
  do {
    requests = await store.listFailedRecordings(ctx.db, { after, limit: failedBatch });
    for (const request of requests)
      await mend(ctx, request).catch((error: unknown) => faults.push(error));
    after = requests.at(-1)?.id ?? "";
  } while (requests.length === failedBatch);
  throwGravest(faults, "recordings could not be looked at");
}

async function mend(
  ctx: KybContext,
  { failedBlock, ...request }: SignatureRequest & { failedBlock: number },
): Promise<void> {
  const { id, business: wallet, digest } = request;
  const calls = await loadWalletCalls();
  const recorded = await calls.findRecording(ctx, wallet, { hash: digest, since: failedBlock });
  if (recorded === "behind") return;
  const { block, epoch, successor } = await calls.read(ctx, wallet);
  // This node may lag behind the one that reverted the transaction, and still have the former members.
  if (recorded === null && block < failedBlock) return;
  await ctx.db.transaction(async (tx) => {
    const business = await lockBusiness(tx, wallet);
    if (recorded !== null) return finishSigned(ctx, tx, { id, ...recorded });
    // The tables do not have the changes on chain yet: try again later.
    const isBehind = business !== null && business.epoch < epoch;
    if (isBehind || (successor !== null && business?.status === "active")) return;
    // False if another process has resolved it at the same time.
    if (!(await store.takeFailedRecording(tx, request))) return;
    const reason = endingOf(request, business, ctx.clock.now());
    if (reason === "unavailable" && (await reopenBallot(ctx, tx, id))) return;
    const status = reason === "expired" ? "expired" : "failed";
    await endSignatureRequest(ctx, tx, { id, status, reason });
  });
}

/** The reason with which a failed recording ends its request; with `unavailable` members may still be asked again. */
function endingOf(
  { expiresAt }: SignatureRequest,
  business: Business | null,
  now: number,
): SignatureReason {
  if (business?.status === "moved") return "business_wallet_rotated";
  if (business === null || !isGoodStanding(business)) return "business_not_verified";
  return expiresAt < now ? "expired" : "unavailable";
}
