import { type Queryable, sql } from "../database/db.ts";

export async function listKeys(db: Queryable): Promise<{ name: string; sealed: Buffer }[]> {
  return db.query(sql`select name, sealed from installation_key`);
}

/** Inserts keys; one that another process has inserted first stays. */
export async function insertKeys(
  db: Queryable,
  keys: readonly { name: string; sealed: Buffer }[],
  now: number,
): Promise<void> {
  const names = keys.map((each) => each.name);
  const sealed = keys.map((each) => each.sealed);
  await db.query(sql`
    insert into installation_key (name, sealed, created_at)
    select name, sealed, ${now} from unnest(${names}::text[], ${sealed}::bytea[]) as made (name, sealed)
    on conflict (name) do nothing`);
}
