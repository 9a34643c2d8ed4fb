import type { Db } from "../database/db.ts";
import { installationKeyColumn } from "./installation-keys.ts";
import { placeIn, type Seal, SealBroken, type SealedColumn } from "./seal.ts";
import * as store from "./seal-store.ts";

/** The sealed columns of the platform itself; each slice lists its own. */
export const platformSealedColumns: readonly SealedColumn[] = [installationKeyColumn];

export interface RewrapProgress {
  readonly table: string;
  readonly column: string;
  /** Values examined so far in this column. */
  readonly checked: number;
  /** Of these, values that were under an older key. */
  readonly rewrapped: number;
}

/**
 * Puts every sealed value under the newest master key; afterwards the older keys can be removed from the configuration,
 * provided that every process has the new one. It may be stopped and started again at any point. Reads `batch` rows at
 * a time and holds no lock longer than one of them takes.
 *
 * @throws {SealBroken} at the end, if there were values that did not open; they stay as they are, and all others are
 * done
 */
export async function rewrapAll(
  { db, seal }: { db: Db; seal: Seal },
  columns: readonly SealedColumn[],
  options: { batch: number; onProgress?: (progress: RewrapProgress) => void },
): Promise<RewrapProgress[]> {
  const done: RewrapProgress[] = [];
  const broken: string[] = [];
  for (const each of columns) {
    const { table, column } = each;
    let [checked, rewrapped] = [0, 0];
    let after: string | null = null;
    do {
      const page: { after: string | null; limit: number } = { after, limit: options.batch };
      const rows = await store.listSealed(db, each, page);
      checked += rows.length;
      rewrapped += await rewrapRows(db, { seal, column: each, rows, broken });
      options.onProgress?.({ table, column, checked, rewrapped });
      after = rows.length < options.batch ? null : (rows.at(-1)?.id ?? null);
    } while (after !== null);
    done.push({ table, column, checked, rewrapped });
  }
  if (broken.length > 0) throw new SealBroken(sayBroken(broken));
  return done;
}

const namedMax = 5;

function sayBroken(broken: readonly string[]): string {
  const named = broken.slice(0, namedMax).join(", ");
  const more = broken.length - namedMax;
  return `${named}${more > 0 ? `, and ${more} more` : ""}; every other one is under the newest master key`;
}

/** @param work.broken gets the places of values that do not open */
async function rewrapRows(
  db: Db,
  work: { seal: Seal; column: SealedColumn; rows: readonly store.SealedRow[]; broken: string[] },
): Promise<number> {
  let changed = 0;
  for (const row of work.rows) {
    const fresh = rewrapOrNote(work.seal, row, work);
    if (fresh === null) continue;
    await store.replaceSealed(db, work.column, { id: row.id, old: row.sealed, fresh });
    changed += 1;
  }
  return changed;
}

function rewrapOrNote(
  seal: Seal,
  { id, sealed }: store.SealedRow,
  { column, broken }: { column: SealedColumn; broken: string[] },
): Buffer | null {
  try {
    return seal.rewrap(sealed, placeIn(column, id));
  } catch (error) {
    if (!(error instanceof SealBroken)) throw error;
    broken.push(`${column.table}.${column.column} of ${id}`);
    return null;
  }
}
