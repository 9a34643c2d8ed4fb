import { type Db, sql } from "../service/src/platform/database/db.ts";

/** Where the finished orders belong. */
export interface OrdersHome {
  readonly clientDomainId: string;
  readonly organizationId: string;
  readonly packageId: string;
}

const perStatement = 100_000;
const perBatch = 1000;

/**
 * Writes orders that ended long ago, with all that stays of them: history, consent, batches, and their events as they
 * are after the purge. Those numbered `from` to `to`, both of them included; multiples of a thousand but for the first.
 */
export async function insertFinishedOrders(
  db: Db,
  home: OrdersHome,
  { from, to, at }: { from: number; to: number; at: number },
): Promise<void> {
  for (let first = from; first <= to; first += perStatement) {
    const last = Math.min(to, first + perStatement - 1);
    await insertSome(db, home, { first, last, at });
  }
}

interface Range {
  readonly first: number;
  readonly last: number;
  readonly at: number;
}

async function insertSome(db: Db, home: OrdersHome, { first, last, at }: Range): Promise<void> {
  await db.transaction(async (tx) => {
    // Every reference is right by construction; looking each up would take most of the time.
    await tx.query(sql`set local session_replication_role = replica`);
    await tx.query(sql`set local statement_timeout = 0`);
    await tx.query(
      sql`insert into kyc_batch (id, phase, root, audit_head, audit_position, created_at, transaction_hash, operator,
          block_number, block_time)
        select md5(phase || n)::uuid, phase, sha256(('root' || phase || n)::bytea), sha256('audit'::bytea), n,
          ${at}::bigint, sha256((phase || n)::bytea), ${`0x${"a3".repeat(20)}`}, n, ${at}::bigint
        from generate_series(${first - 1}::integer / ${perBatch}::integer, ${last - 1}::integer / ${perBatch}::integer) as n,
          (values ('initiate'), ('confirm')) as phases (phase)`,
    );
    await tx.query(
      sql`insert into kyc_batch_leaves (batch_id, leaves)
        select md5(phase || n)::uuid, decode(repeat(md5(phase || n), ${2 * perBatch}::integer), 'hex')
        from generate_series(${first - 1}::integer / ${perBatch}::integer, ${last - 1}::integer / ${perBatch}::integer) as n,
          (values ('initiate'), ('confirm')) as phases (phase)`,
    );
    await tx.query(
      sql`insert into kyc_order (id, reference_key, package_id, client_domain_id, organization_id, environment,
          user_address, required, optional, status, status_at, sequence, callback, expiration, created_at, salt,
          approved_at, initiate_batch_id, confirm_batch_id, initiated_tx_hash, confirm_tx_hash)
        select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, sha256(('key' || n)::bytea), ${home.packageId}::uuid,
          ${home.clientDomainId}::uuid, ${home.organizationId}::uuid, 'live',
          '0x' || md5('user' || n / 5) || '00000000', array['EMAIL', 'IDCARD_DOB'], '{}'::text[], 'CONFIRMED',
          ${at}::bigint, 6, 'https://shop.example.com/hook', ${at + 600}::bigint, ${at}::bigint,
          sha256(('salt' || n)::bytea), ${at}::bigint,
          md5('initiate' || (n - 1) / ${perBatch}::integer)::uuid, md5('confirm' || (n - 1) / ${perBatch}::integer)::uuid,
          sha256(('initiate' || (n - 1) / ${perBatch}::integer)::bytea),
          sha256(('confirm' || (n - 1) / ${perBatch}::integer)::bytea)
        from generate_series(${first}::integer, ${last}::integer) as n`,
    );
    await tx.query(
      sql`insert into kyc_order_status (order_id, sequence, attempt, status, created_at)
        select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, sequence, 1, status, ${at}::bigint
        from generate_series(${first}::integer, ${last}::integer) as n, (values (1, 'PENDING'), (2, 'INITIATING'),
          (3, 'INITIATED'), (4, 'CONFIRMING'), (6, 'CONFIRMED')) as reached (sequence, status)`,
    );
    await tx.query(
      sql`insert into kyc_consent (order_id, attempt, request_object, connection, requester, deadline, fields, leaves,
          signature, consent, data_hash, salt, created_at, delivered_at)
        select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1, repeat(md5('object' || n), 20), 'http://localhost/w/o/' || n, 'localhost',
          ${at + 600}::bigint, array['EMAIL', 'IDCARD_DOB'],
          array[sha256(('mail' || n / 5)::bytea), sha256(('card' || n / 5)::bytea)], sha256('signature'::bytea),
          sha256(('consent' || n)::bytea), sha256(('data' || n)::bytea), sha256(('salt' || n)::bytea), ${at}::bigint,
          ${at}::bigint
        from generate_series(${first}::integer, ${last}::integer) as n`,
    );
    await tx.query(
      sql`insert into webhook_event (id, stream_id, sequence, channel, kind, client_domain_id, key_id, url, is_personal,
          created_at, attempts, delivered_at)
        select 'evt_0' || lpad(n::text, 24, '0') || sequence, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0')),
          sequence, 'kyc', 'status.updated',
          ${home.clientDomainId}::uuid, ${home.packageId}, 'https://shop.example.com/hook', false, ${at}::bigint, 1,
          ${at}::bigint
        from generate_series(${first}::integer, ${last}::integer) as n, generate_series(1, 6) as sequence`,
    );
  });
}
