import { type Address, encodeCharter } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import { type Queryable, sql } from "../platform/database/db.ts";

interface QueuedTransaction {
  readonly id: string;
  readonly kind: string;
  readonly subjectId: string;
  readonly data: Buffer;
}

/** Takes all queued transactions out of the outbox. */
export async function takeQueued(tx: Queryable): Promise<QueuedTransaction[]> {
  const rows = await tx.query<{ id: number; kind: string; subject_id: string; data: Buffer }>(
    sql`delete from chain_transaction where status = 'queued' returning id, kind, subject_id, data`,
  );
  return rows
    .toSorted((a, b) => a.id - b.id)
    .map((row) => ({
      id: String(row.id),
      kind: row.kind,
      subjectId: row.subject_id,
      data: row.data,
    }));
}

/** Every row of every table as text, except PostgreSQL's system tables. */
export async function dumpDatabase(db: Queryable): Promise<string> {
  const tables = await db.query<{ name: string }>(
    sql`select table_name::text as name from information_schema.tables
      where table_schema = 'public' and table_type = 'BASE TABLE'`,
  );
  const texts: string[] = [];
  for (const { name } of tables) {
    const [row] = await db.query<{ text: string }>({
      name: "",
      text: `select coalesce(string_agg(t::text, E'\\n'), '') as text from "${name}" as t`,
      values: [],
    });
    texts.push(row?.text ?? "");
  }
  return texts.join("\n");
}

/** Inserts copies of a credential that wait to be attested. */
export async function copyCredential(db: Queryable, id: string, count: number): Promise<void> {
  await db.query(
    sql`insert into credential (id, issuer_id, environment, user_address, document, root, tree, values_sealed,
        created_at, expires_at)
      select gen_random_uuid(), issuer_id, environment, user_address, document, sha256(n::text::bytea), tree,
        values_sealed, created_at, expires_at
      from credential, generate_series(1, ${count}) as n where id = ${id}`,
  );
}

/** Inserts attested copies of a credential for other users, and updates the statistics of the tables. */
export async function insertOthers(db: Queryable, id: string, count: number): Promise<void> {
  await db.query(
    sql`with other as (
        insert into credential (id, issuer_id, environment, user_address, document, root, tree, created_at, expires_at,
          attested_at)
        select gen_random_uuid(), issuer_id, environment, '0x' || lpad(to_hex(n), 40, '0'), document,
          sha256(n::text::bytea), tree, created_at, expires_at, created_at
        from credential, generate_series(1, ${count}) as n where id = ${id}
        returning id, root)
      insert into credential_leaf (credential_id, field, leaf, commitment, opening, expires_at)
      select other.id, field, sha256(root || leaf), commitment, sha256(root || opening), expires_at
      from other, credential_leaf where credential_id = ${id}`,
  );
  await db.query(sql`analyze credential, credential_leaf`);
}

/** How many sequential scans of credentials or leaves this session has made. */
export async function countScans(tx: Queryable): Promise<number> {
  const [row] = await tx.query<{ count: number }>(
    sql`select sum(seq_scan)::int as count from pg_stat_xact_user_tables
      where relname in ('credential', 'credential_leaf')`,
  );
  return row?.count ?? 0;
}

export async function insertTestBusiness(
  db: Queryable,
  made: { address: Address; environment: Environment; now: number },
): Promise<void> {
  const charter = encodeCharter({
    rules: { signature_requests: "MAJORITY", data_requests: "MAJORITY", governance: "UNANIMOUS" },
    members: [{ address: made.address, isVoting: true }],
  });
  await db.query(
    sql`insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      values (${made.address}, ${made.environment}, 'Test Ltd', 'active', ${made.address}, ${made.address}, ${made.now},
        ${Buffer.alloc(32)}, ${Buffer.from(charter.slice(2), "hex")}, ${made.now})`,
  );
}

export async function lockTestBusiness(
  tx: Queryable,
  { business, environment }: { business: Address; environment: Environment },
): Promise<boolean> {
  const rows = await tx.query(
    sql`select 1 as held from business where address = ${business} and environment = ${environment} for update`,
  );
  return rows.length === 1;
}
