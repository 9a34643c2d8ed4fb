// Receipts: everything that shows, without this service, what a user consented to and that it was anchored.
import {
  type Address,
  buildTree,
  fieldsHash,
  type MerkleTree,
  type Receipt,
  type ReceiptField,
  type ReceiptPhase,
  requestObjectHash,
} from "@svc/protocol";
import type { ApiKey } from "../accounts/index.ts";
import { proveLeaves } from "../credentials/index.ts";
import { forgetOldest } from "../platform/forget-oldest.ts";
import { Problem } from "../platform/http/problems.ts";
import type { KycContext } from "./kyc-context.ts";
import { getOrder } from "./orders.ts";
import * as store from "./receipt-store.ts";
import { leafOfAnchor, type Phase } from "./settlement-batch.ts";

type ReceiptContext = Pick<KycContext, "db" | "chain">;

interface Asked {
  readonly referenceKey: string;
  /** Null for the newest one that is anchored. */
  readonly attempt: number | null;
}

/** The receipt for the merchant who asked. @throws {Problem} order_not_found, receipt_not_found */
export async function getReceipt(ctx: ReceiptContext, key: ApiKey, asked: Asked): Promise<Receipt> {
  const { id } = await getOrder(ctx, key, asked.referenceKey);
  return makeReceipt(ctx, id, asked.attempt);
}

/** The same receipt for the user who consented. @throws {Problem} order_not_found, receipt_not_found */
export async function getReceiptOf(
  ctx: ReceiptContext,
  user: Address,
  asked: Asked,
): Promise<Receipt> {
  const id = await store.findOrderIdOf(ctx.db, user, asked.referenceKey);
  if (id === null) throw new Problem("order_not_found");
  return makeReceipt(ctx, id, asked.attempt);
}

async function makeReceipt(
  ctx: ReceiptContext,
  orderId: string,
  attempt: number | null,
): Promise<Receipt> {
  const settled = await store.findSettled(ctx.db, orderId, attempt);
  if (settled === null) throw new Problem("receipt_not_found");
  const { chainId, contracts } = ctx.chain;
  const { initiate, confirm } = settled;
  return {
    referenceKey: settled.referenceKey,
    attempt: settled.attempt,
    salt: settled.salt,
    user: settled.user,
    livemode: settled.environment === "live",
    requestObject: settled.requestObject,
    share: {
      ...settled.share,
      object: requestObjectHash(settled.requestObject),
      fields: fieldsHash(settled.fields),
    },
    signature: settled.signature,
    fields: await fieldsOf(ctx, settled),
    chainId,
    registry: contracts.registry,
    settlement: contracts.settlement,
    initiate: await phaseOf(ctx, settled, { phase: "initiate", batch: initiate }),
    ...(confirm === null
      ? {}
      : { confirm: await phaseOf(ctx, settled, { phase: "confirm", batch: confirm }) }),
  };
}

/** The openings of the leaves, without the values. @throws {Problem} receipt_not_found if the user was forgotten */
async function fieldsOf(
  ctx: ReceiptContext,
  settled: store.SettledOrder,
): Promise<readonly ReceiptField[]> {
  const proofs = await proveLeaves(ctx, settled);
  const proofOf = new Map(proofs.map((proof) => [proof.leaf, proof]));
  return settled.leaves.map((leaf) => {
    const found = proofOf.get(leaf);
    if (found === undefined) throw new Problem("receipt_not_found");
    const { field, commitment, expiresAt, issuer, root, proof } = found;
    return { field, commitment, expiresAt, issuer, root, proof };
  });
}

async function phaseOf(
  ctx: ReceiptContext,
  settled: store.SettledOrder,
  { phase, batch }: { phase: Phase; batch: store.SettledBatch },
): Promise<ReceiptPhase> {
  const leaf = leafOfAnchor(phase, {
    referenceKey: settled.referenceKey,
    attempt: settled.attempt,
    salt: settled.salt,
    consent: settled.consent,
    data: settled.share.data,
  });
  const tree = await readTree(ctx, batch.id);
  const { id: _, ...place } = batch;
  return { ...place, proof: tree.proofOf(leaf) };
}

/** A cache of the trees of batches, which never change: building one of a thousand orders takes 15 ms. */
const trees = new Map<string, MerkleTree>();
const treesMax = 32;

async function readTree(ctx: ReceiptContext, batchId: string): Promise<MerkleTree> {
  const known = trees.get(batchId);
  if (known !== undefined) return known;
  const tree = buildTree(await store.readLeaves(ctx.db, batchId));
  trees.set(batchId, tree);
  forgetOldest(trees, treesMax);
  return tree;
}
