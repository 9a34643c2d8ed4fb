/** Rows of one statement: it holds its locks for a fifth of a second, also where a purge had not run for long. */
const batch = 5_000;

/**
 * Removes what is over, batch by batch, until nothing is left of it.
 *
 * @param remove takes at most so many rows, and tells how many it took
 */
export async function purgeInBatches(remove: (limit: number) => Promise<number>): Promise<void> {
  while ((await remove(batch)) >= batch);
}
