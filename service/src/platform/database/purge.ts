import { firstUuid } from "../ids.ts";
import { workInBatches } from "./work-in-batches.ts";

/** Rows per statement, so that it holds its locks for a fifth of a second, even if no purge has run for a long time. */
const rowsMax = 5_000;

/**
 * Removes rows that are no longer needed, batch by batch, until none is left.
 *
 * @param remove removes at most `limit` rows, and returns how many it removed
 * @returns how many were removed
 */
export async function purgeInBatches(
  remove: (limit: number) => Promise<number>,
  limit: number = rowsMax,
): Promise<number> {
  return workInBatches(limit, remove);
}

/** Rows of one page, most of which are kept. */
const pageRows = 5_000;

/**
 * Reads a whole table page by page by its ids, to change rows that no index leads to: an index would cost the writers
 * of the table more.
 *
 * @param purge goes through the rows after `after`, at most `limit` of them; returns the last of their ids, or null if
 * there was none
 */
export async function purgeByPages(
  purge: (page: { after: string; limit: number }) => Promise<string | null>,
): Promise<void> {
  let after: string | null = firstUuid;
  while (after !== null) after = await purge({ after, limit: pageRows });
}
