import { firstUuid } from "../ids.ts";

/** Rows of one statement: it holds its locks for a fifth of a second, even where no purge has run for a long time. */
const rowsMax = 5_000;

/**
 * Removes what is over, batch by batch, until nothing is left of it.
 *
 * @param remove removes at most `limit` rows, and tells how many it removed
 * @returns how many went
 */
export async function purgeInBatches(
  remove: (limit: number) => Promise<number>,
  limit: number = rowsMax,
): Promise<number> {
  let total = 0;
  for (;;) {
    const count = await remove(limit);
    total += count;
    if (count < limit) return total;
  }
}

/** Rows of one page, most of which are kept. */
const pageRows = 5_000;

/**
 * Reads a whole table page by page by its ids, to change what no index leads to: an index would cost those who write the
 * table more.
 *
 * @param purge goes through the rows behind `after`, at most `limit` of them; returns the last id of them, null where
 * there was none
 */
export async function purgeByPages(
  purge: (page: { after: string; limit: number }) => Promise<string | null>,
): Promise<void> {
  let after: string | null = firstUuid;
  while (after !== null) after = await purge({ after, limit: pageRows });
}
