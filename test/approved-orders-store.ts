// The rows behind approved-orders.ts.
import type { Address, Hex32 } from "@svc/protocol";
import { type Queryable, sql } from "../service/src/platform/database/db.ts";
import type { NewConsent } from "../service/src/kyc/consent-store.ts";

/** A package of this domain with room for every test. */
export async function insertTestPackage(
  db: Queryable,
  given: { id: string; apiKeyOf: string; signingKeySealed: Buffer },
): Promise<{ clientDomainId: string; organizationId: string }> {
  const [domain] = await db.query<{ id: string; organization_id: string }>(
    sql`select id, organization_id from client_domain where organization_id = ${given.apiKeyOf}`,
  );
  if (domain === undefined) throw new Error("no such domain");
  await db.query(
    sql`insert into kyc_package (id, client_domain_id, name, source_key, signing_key_sealed, transfers_total,
        price_rappen, created_at)
      values (${given.id}, ${domain.id}, 'test', ${given.id}, ${given.signingKeySealed}, 1000000, 0, 0)`,
  );
  return { clientDomainId: domain.id, organizationId: domain.organization_id };
}

/** An order as it is right after its user approved it. */
export interface TestOrder {
  readonly id: string;
  readonly referenceKey: string;
  readonly salt: Hex32;
  readonly consent: NewConsent;
}

/** As PostgreSQL writes bytes in a text. */
const byteaOf = (hash: Hex32): string => `\\x${hash.slice(2)}`;

/** Writes approved orders of one package and user: rows, history, consents, values on their way. */
export async function insertApproved(
  db: Queryable,
  given: {
    packageId: string;
    clientDomainId: string;
    organizationId: string;
    user: Address;
    orders: readonly TestOrder[];
    at: number;
  },
): Promise<void> {
  const { orders, at } = given;
  await db.query(
    sql`with made as (
        insert into kyc_order (id, reference_key, package_id, client_domain_id, organization_id, environment,
          user_address, required, optional, status, status_at, sequence, callback, expiration, created_at, salt,
          approved_at)
        select id, decode(key, 'hex'), ${given.packageId}, ${given.clientDomainId}, ${given.organizationId}, 'live',
          ${given.user}, array['EMAIL'], '{}'::text[], 'INITIATING', ${at}::bigint, 2,
          'https://shop.example.com/hook', ${at + 600}::bigint, ${at}::bigint, decode(salt, 'hex'), ${at}::bigint
        from unnest(${orders.map(({ id }) => id)}::uuid[], ${orders.map(({ referenceKey }) => referenceKey)}::text[],
          ${orders.map(({ salt }) => salt.slice(2))}::text[]) as given (id, key, salt)
        returning id, package_id
      ), history as (
        insert into kyc_order_status (order_id, sequence, attempt, status, created_at)
        select id, sequence, 1, status, ${at}::bigint
        from made, (values (1, 'PENDING'), (2, 'INITIATING')) as reached (sequence, status)
      )
      update kyc_package set transfers_held = transfers_held + (select count(*) from made)
      where id = ${given.packageId}`,
  );
  const consents = orders.map(({ id, salt, consent }) => ({
    order_id: id,
    attempt: 1,
    request_object: consent.requestObject,
    connection: consent.connection,
    requester: consent.requester,
    deadline: consent.deadline,
    fields: consent.fields,
    leaves: consent.leaves.map(byteaOf),
    signature: `\\x${consent.signature.toString("hex")}`,
    consent: byteaOf(consent.consent),
    data_hash: byteaOf(consent.data),
    salt: byteaOf(salt),
    created_at: at,
  }));
  await db.query(
    sql`insert into kyc_consent (order_id, attempt, request_object, connection, requester, deadline, fields, leaves,
        signature, consent, data_hash, salt, created_at)
      select order_id, attempt, request_object, connection, requester, deadline, fields, leaves, signature, consent,
        data_hash, salt, created_at
      from jsonb_populate_recordset(null::kyc_consent, ${JSON.stringify(consents)}::jsonb)`,
  );
  await db.query(
    sql`insert into kyc_payload (order_id, sealed, created_at)
      select id, sealed, ${at} from unnest(${orders.map(({ id }) => id)}::uuid[],
        ${orders.map(({ consent }) => consent.payloadSealed)}::bytea[]) as given (id, sealed)`,
  );
}

export async function readTransfers(
  db: Queryable,
  packageId: string,
): Promise<{ held: number; consumed: number }> {
  const [row] = await db.query<{ held: number; consumed: number }>(
    sql`select transfers_held as held, transfers_consumed as consumed from kyc_package where id = ${packageId}`,
  );
  if (row === undefined) throw new Error("no such package");
  return row;
}

export async function countPayloads(db: Queryable): Promise<number> {
  const [row] = await db.query<{ count: number }>(sql`select count(*) as count from kyc_payload`);
  return row?.count ?? 0;
}

export interface BatchRow {
  readonly id: string;
  readonly phase: string;
  readonly leavesCount: number;
  readonly isFinal: boolean;
}

/** Batches in the order they were made. */
export async function listBatches(db: Queryable): Promise<BatchRow[]> {
  return db.query(
    sql`select id, phase, octet_length(leaves) / 32 as "leavesCount", transaction_hash is not null as "isFinal"
      from kyc_batch join kyc_batch_leaves on batch_id = id order by created_at, phase desc, id`,
  );
}

/** Takes these orders' data away, as a fault would. */
export async function dropPayloads(db: Queryable, orderIds: readonly string[]): Promise<void> {
  await db.query(sql`delete from kyc_payload where order_id = any(${orderIds}::uuid[])`);
}
