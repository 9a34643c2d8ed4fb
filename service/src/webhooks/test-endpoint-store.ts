import { randomUUID } from "node:crypto";
import { type Queryable, sql } from "../platform/database/db.ts";

/** Inserts a client domain, with an organization of its own. */
export async function insertClientDomain(db: Queryable, id: string): Promise<void> {
  const organizationId = randomUUID();
  await db.query(
    sql`insert into organization (id, name, created_at) values (${organizationId}, 'Example AG', 0)`,
  );
  await db.query(sql`
    insert into client_domain (id, organization_id, domain, environment, proof_token, created_at)
    values (${id}, ${organizationId}, 'example.com', 'live', 'token', 0)`);
}

/** Deletes all events, their deliveries and all endpoints; client domains stay. */
export async function emptyWebhooks(db: Queryable): Promise<void> {
  await db.query(sql`
    with attempts as (delete from webhook_attempt), deliveries as (delete from webhook_delivery),
      events as (delete from webhook_event), paces as (delete from webhook_endpoint),
      secrets as (delete from kyb_endpoint_secret)
    delete from kyb_endpoint`);
}
