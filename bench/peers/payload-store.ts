import type { Adapter, AdapterPayload } from "oidc-provider";
import { type Db, sql } from "../../service/src/platform/database/db.ts";

/**
 * Creates what the peer keeps: one row per artefact, found by id, and by grant, session uid or user code where it has
 * one. Partial indexes, so that a row pays only for what it has.
 */
export async function createTables(db: Db): Promise<void> {
  await db.query(sql`
    create table if not exists payload (
      model text not null,
      id text not null,
      payload jsonb not null,
      grant_id text,
      uid text,
      user_code text,
      consumed_at bigint,
      expires_at timestamptz not null,
      primary key (model, id))`);
  await db.query(
    sql`create index if not exists payload_grant on payload (grant_id) where grant_id is not null`,
  );
  await db.query(
    sql`create index if not exists payload_uid on payload (uid) where uid is not null`,
  );
  await db.query(
    sql`create index if not exists payload_user_code on payload (user_code) where user_code is not null`,
  );
  await db.query(sql`
    create table if not exists account (id text primary key, claims jsonb not null, created_at timestamptz not null default now())`);
}

/** The sign-up of an unseen account. */
export async function insertAccount(db: Db, id: string): Promise<void> {
  await db.query(
    sql`insert into account (id, claims) values (${id}, '{"ext": {}}') on conflict (id) do nothing`,
  );
}

/** The claims of an account, or null when there is none. */
export async function findAccountClaims(
  db: Db,
  id: string,
): Promise<Record<string, unknown> | null> {
  const [row] = await db.query<{ claims: Record<string, unknown> }>(
    sql`select claims from account where id = ${id}`,
  );
  return row?.claims ?? null;
}

/** How long a client that was read is taken as it is. The service keeps its own likewise, until it hears of a change. */
const clientsKeptMs = 60_000;

/** Clients come from the database, so that they can be managed without a restart, and are kept in memory for a minute. */
export function openClientAdapter(db: Db): Adapter {
  const adapter = openAdapter(db, "Client");
  const kept = new Map<string, { payload: AdapterPayload; until: number }>();
  return {
    ...adapter,
    async find(id) {
      const known = kept.get(id);
      if (known !== undefined && known.until > Date.now()) return known.payload;
      const payload = await adapter.find(id);
      if (payload !== undefined) kept.set(id, { payload, until: Date.now() + clientsKeptMs });
      return payload;
    },
  };
}

interface Row {
  readonly payload: AdapterPayload;
  readonly consumed_at: number | null;
}

function payloadOf([row]: Row[]): AdapterPayload | undefined {
  if (row === undefined) return undefined;
  return row.consumed_at === null ? row.payload : { ...row.payload, consumed: row.consumed_at };
}

/**
 * The adapter of one model over PostgreSQL: one prepared statement per call, by the same driver, pool and options as
 * the service's own.
 *
 * @see oidc-provider, docs: `adapter`
 */
export function openAdapter(db: Db, model: string): Adapter {
  return {
    async upsert(id, payload, expiresIn) {
      const { grantId = null, userCode = null } = payload;
      // Only sessions are ever asked for by uid.
      const uid = model === "Session" ? (payload.uid ?? null) : null;
      await db.query(sql`
        insert into payload (model, id, payload, grant_id, uid, user_code, expires_at)
        values (${model}, ${id}, ${JSON.stringify(payload)}, ${grantId}, ${uid}, ${userCode}, now() + make_interval(secs => ${expiresIn}))
        on conflict (model, id) do update set payload = excluded.payload, grant_id = excluded.grant_id,
          uid = excluded.uid, user_code = excluded.user_code, expires_at = excluded.expires_at`);
    },
    find: async (id) =>
      payloadOf(
        await db.query<Row>(sql`
        select payload, consumed_at from payload where model = ${model} and id = ${id} and expires_at > now()`),
      ),
    findByUid: async (uid) =>
      payloadOf(
        await db.query<Row>(sql`
        select payload, consumed_at from payload where uid = ${uid} and model = ${model} and expires_at > now()`),
      ),
    findByUserCode: async (userCode) =>
      payloadOf(
        await db.query<Row>(sql`
        select payload, consumed_at from payload where user_code = ${userCode} and model = ${model} and expires_at > now()`),
      ),
    async consume(id) {
      await db.query(sql`
        update payload set consumed_at = extract(epoch from now())::bigint where model = ${model} and id = ${id}`);
    },
    async destroy(id) {
      await db.query(sql`delete from payload where model = ${model} and id = ${id}`);
    },
    async revokeByGrantId(grantId) {
      await db.query(sql`delete from payload where grant_id = ${grantId}`);
    },
  };
}
