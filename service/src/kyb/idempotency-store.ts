import { type Queryable, sql } from "../platform/database/db.ts";
import { purgeOf } from "../platform/database/purge-store.ts";

/**
 * Takes a key, or returns what it was taken for. Waits for a call under way with the same key.
 *
 * @param before keys that were taken before this time have expired, and can be taken again
 */
export async function takeKey(
  tx: Queryable,
  given: {
    id: string;
    clientDomainId: string;
    key: string;
    requestMac: Buffer;
    now: number;
  },
  before: number,
): Promise<{ id: string; requestMac: Buffer; answerSealed: Buffer } | null> {
  const taken = await tx.query(
    sql`insert into kyb_idempotency (id, client_domain_id, key, request_mac, created_at)
      values (${given.id}, ${given.clientDomainId}, ${given.key}, ${given.requestMac}, ${given.now})
      on conflict (client_domain_id, key) do update
        set id = excluded.id, request_mac = excluded.request_mac, answer_sealed = null, created_at = excluded.created_at
        where kyb_idempotency.created_at <= ${before}
      returning 1 as taken`,
  );
  if (taken.length === 1) return null;
  const [row] = await tx.query<{ id: string; requestMac: Buffer; answerSealed: Buffer }>(
    sql`select id, request_mac as "requestMac", answer_sealed as "answerSealed" from kyb_idempotency
      where client_domain_id = ${given.clientDomainId} and key = ${given.key}`,
  );
  if (row === undefined) throw new Error("the key of a call was forgotten while it ran");
  return row;
}

export async function keepAnswer(
  tx: Queryable,
  given: { id: string; sealed: Buffer },
): Promise<void> {
  await tx.query(
    sql`update kyb_idempotency set answer_sealed = ${given.sealed} where id = ${given.id}`,
  );
}

export const deleteKeys = purgeOf({
  table: "kyb_idempotency",
  key: "id",
  time: "created_at",
  isInclusive: true,
});
