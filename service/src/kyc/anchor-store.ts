import type { Address, Hex32 } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";
import { splitHashes } from "../platform/hex.ts";
import type { AuditHead, Phase } from "./settlement-batch.ts";

/** A batch that anchors a head of the audit chain. */
export interface AnchoringBatch {
  readonly id: string;
  readonly phase: Phase;
  readonly root: Hex32;
  readonly audit: AuditHead;
  /** The hash that the audit chain has at that position now; null where it has none. */
  readonly linkHash: Buffer | null;
  /** Empty only if somebody tampered with the table: the service never deletes them. */
  readonly leaves: readonly Hex32[];
  readonly transactionHash: Hex32;
  readonly operator: Address;
}

type BatchRow = Omit<AnchoringBatch, "audit" | "leaves"> & AuditHead & { leaves: Buffer | null };

/**
 * For every head that was anchored, the first final batch that did so; in the order of the audit chain. Heads of entries
 * that were removed after their retention are left out: they say nothing of those that are kept.
 */
export async function listAnchoringBatches(
  db: Queryable,
  { after, limit }: { after: number; limit: number },
): Promise<AnchoringBatch[]> {
  const rows = await db.query<BatchRow>(
    sql`with anchoring as (
        select distinct on (audit_position) id, phase, root, audit_head, audit_position, transaction_hash, operator
        from kyc_batch
        where audit_position > greatest(${after}::bigint, (select checkpoint_position from audit_chain where single))
          and transaction_hash is not null
        order by audit_position, id limit ${limit}
      )
      select anchoring.id, phase, '0x' || encode(root, 'hex') as root, audit_head as hash, audit_position as position,
        (select hash from audit_link where position = audit_position) as "linkHash", leaves,
        '0x' || encode(transaction_hash, 'hex') as "transactionHash", operator
      from anchoring
        left join lateral (select leaves from kyc_batch_leaves where batch_id = anchoring.id offset 0) as kept on true
      order by audit_position`,
  );
  return rows.map(({ hash, position, leaves, ...batch }) =>
    Object.assign(batch, {
      audit: { hash, position },
      leaves: leaves === null ? [] : splitHashes(leaves),
    }),
  );
}
