// Compares the audit chain with its heads that settlement batches have anchored on the blockchain (decisions section
// 8).
import { isDeepStrictEqual } from "node:util";
import { auditLeafOf, buildTree, hexOfBytes, isRecord } from "@svc/protocol";
import type { ChainContext } from "../chain/index.ts";
import type { Ctx } from "../platform/context.ts";
import * as store from "./anchor-store.ts";
import { eventTopics } from "./settlement-batch.ts";

interface AnchorFault {
  readonly kind:
    | /** The audit chain has another hash at that position, or ends before it: it was rebuilt or restored. */ "head_differs"
    | /** The tree of the batch does not contain the head that its row names. */ "batch_forged"
    | /** The named transaction did not emit the root of the batch. */ "not_on_chain";
  /** In the audit chain. */
  readonly position: number;
  readonly batchId: string;
}

export interface AnchorReport {
  readonly isIntact: boolean;
  /** Anchored heads that were compared. */
  readonly checked: number;
  /** At most 100. */
  readonly faults: readonly AnchorFault[];
}

const pageSize = 100;
const faultsMax = 100;

/**
 * Compares every anchored head of kept entries with the audit chain and with the blockchain. Somebody who holds the keys
 * can rebuild the whole audit chain, but cannot change what was committed on the blockchain before. One call of the node
 * per head.
 */
export async function verifyAnchors(
  ctx: Pick<ChainContext, "db" | "chain">,
): Promise<AnchorReport> {
  const faults: AnchorFault[] = [];
  let checked = 0;
  let after = -1;
  for (;;) {
    const batches = await store.listAnchoringBatches(ctx.db, { after, limit: pageSize });
    for (const batch of batches) {
      const kind = await faultOf(ctx, batch);
      const { position } = batch.audit;
      if (kind !== null && faults.length < faultsMax) {
        faults.push({ kind, position, batchId: batch.id });
      }
      after = position;
    }
    checked += batches.length;
    if (batches.length < pageSize) return { isIntact: faults.length === 0, checked, faults };
  }
}

/** Whether any head was anchored yet. */
export async function hasAnchors(ctx: Pick<Ctx, "db">): Promise<boolean> {
  return (await store.listAnchoringBatches(ctx.db, { after: -1, limit: 1 })).length > 0;
}

async function faultOf(
  ctx: Pick<ChainContext, "chain">,
  batch: store.AnchoringBatch,
): Promise<AnchorFault["kind"] | null> {
  const { audit, linkHash } = batch;
  if (linkHash?.equals(audit.hash) !== true) return "head_differs";
  if (!holdsHead(batch)) return "batch_forged";
  return (await isOnChain(ctx, batch)) ? null : "not_on_chain";
}

function holdsHead({ audit, leaves, root }: store.AnchoringBatch): boolean {
  const leaf = auditLeafOf({ head: hexOfBytes(audit.hash), position: audit.position });
  return leaves.includes(leaf) && buildTree(leaves).root === root;
}

async function isOnChain(
  { chain }: Pick<ChainContext, "chain">,
  { transactionHash, phase, root, operator }: store.AnchoringBatch,
): Promise<boolean> {
  const topics = [eventTopics[phase], `0x${operator.slice(2).padStart(64, "0")}`, root];
  // Throws if the node cannot be reached: that must not count as a fault.
  const receipt = await chain.node.request("eth_getTransactionReceipt", [transactionHash]);
  const logs = isRecord(receipt) && Array.isArray(receipt["logs"]) ? receipt["logs"] : [];
  return logs
    .filter(isRecord)
    .some(
      (log) =>
        String(log["address"]).toLowerCase() === chain.contracts.settlement &&
        isDeepStrictEqual(log["topics"], topics),
    );
}
