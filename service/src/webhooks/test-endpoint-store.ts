import { randomUUID } from "node:crypto";
import { type Queryable, sql } from "../platform/database/db.ts";

/** A client domain of an organization of its own, which an endpoint belongs to. */
export async function insertClientDomain(db: Queryable, id: string): Promise<void> {
  const organizationId = randomUUID();
  await db.query(
    sql`insert into organization (id, name, created_at) values (${organizationId}, 'Example AG', 0)`,
  );
  await db.query(sql`
    insert into client_domain (id, organization_id, domain, environment, proof_token, created_at)
    values (${id}, ${organizationId}, 'example.com', 'live', 'token', 0)`);
}
