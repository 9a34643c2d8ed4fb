/** Rows of one statement: it holds its locks for a fifth of a second, even where no purge has run for a long time. */
const batch = 5_000;

/**
 * Removes what is over, batch by batch, until nothing is left of it.
 *
 * @param remove removes at most `limit` rows, and tells how many it removed
 */
export async function purgeInBatches(remove: (limit: number) => Promise<number>): Promise<void> {
  while ((await remove(batch)) >= batch);
}
