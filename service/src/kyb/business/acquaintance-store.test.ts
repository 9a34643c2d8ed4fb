import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { sql } from "../../platform/database/db.ts";
import { openTestKyb } from "../test-kyb-store.ts";
import { listAcquaintedDomains, noteBusinessAcquaintance } from "./acquaintance-store.ts";

await using kyb = await openTestKyb();
const { db } = kyb;

await test("a business is known along the wallets that it left, at the domains of its own environment", async () => {
  const [left, business] = [await kyb.addBusiness(), await kyb.addBusiness()];
  await db.query(
    sql`update business set status = 'moved', successor = ${business} where address = ${left}`,
  );
  const { organizationId, clientDomainId } = await kyb.addOrganization();
  await noteBusinessAcquaintance(db, { business: left, organizationId, now: 0 });
  await db.query(
    sql`insert into client_domain (id, organization_id, domain, environment, proof_token, created_at)
      values (${randomUUID()}, ${organizationId}, 'example.org', 'sandbox', '', 0)`,
  );
  assert.deepEqual(await listAcquaintedDomains(db, { business, environment: "live" }), [
    clientDomainId,
  ]);
});
