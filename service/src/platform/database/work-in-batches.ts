import type { Db, Queryable } from "./db.ts";

/**
 * Does what is due, batch by batch, until a batch is not full.
 *
 * @param limit how much a batch is at most
 * @param work does one batch, and returns how much it did
 * @returns how much was done
 */
export async function workInBatches(
  limit: number,
  work: (limit: number) => Promise<number>,
): Promise<number> {
  let total = 0;
  for (;;) {
    const count = await work(limit);
    total += count;
    if (count < limit) return total;
  }
}

/** As {@link workInBatches}, each batch in a transaction of its own. */
export async function workInTransactions(
  db: Pick<Db, "transaction">,
  limit: number,
  work: (tx: Queryable, limit: number) => Promise<number>,
): Promise<number> {
  return workInBatches(limit, async () => db.transaction(async (tx) => work(tx, limit)));
}
