// The statements find the charges and acquaintances of the right organization only.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { sql } from "../../platform/database/db.ts";
import {
  isAcquaintedAlong,
  isBusinessAcquainted,
  listAcquaintedDomains,
  noteBusinessAcquaintance,
} from "../business/acquaintance-store.ts";
import { openTestKyb, type TestRequester } from "../test-kyb-store.ts";
import { hasReleased, listCharges } from "./charge-store.ts";

await using kyb = await openTestKyb();
const { db } = kyb;
const [own, other] = [await kyb.addOrganization(), await kyb.addOrganization()];
const [business, elsewhere] = [await kyb.addBusiness(), await kyb.addBusiness()];

async function charge(
  id: string,
  { organizationId, clientDomainId }: TestRequester,
  of: { business: Address; environment: "live" | "sandbox" },
): Promise<void> {
  await db.query(
    sql`insert into data_request (id, client_domain_id, organization_id, environment, business, purpose, fields,
        quoted_rappen, status, sequence, created_at, expires_at, ended_at)
      values (${id}, ${clientDomainId}, ${organizationId}, ${of.environment}, ${of.business}, '', '[]', 1, 'released', 2,
        0, 0, 0)`,
  );
  await db.query(
    sql`insert into kyb_charge (id, organization_id, environment, client_domain_id, request_id, business, amount_rappen,
        lines, created_at)
      values (${id}, ${organizationId}, ${of.environment}, ${clientDomainId}, ${id}, ${of.business}, 1, '[]', 0)`,
  );
}

const list = async ({ organizationId }: TestRequester, environment: "live" | "sandbox") => {
  const page = { before: null, limit: 10 };
  const charges = await listCharges(db, { organizationId, environment }, page);
  return charges.map(({ id }) => id);
};

const released = async ({ organizationId }: TestRequester, of: Address) =>
  hasReleased(db, { organizationId, business: of });

await test("an organization sees its own charges alone, live and sandbox apart", async () => {
  await charge("1", own, { business, environment: "live" });
  await charge("2", own, { business, environment: "sandbox" });
  await charge("3", other, { business: elsewhere, environment: "live" });
  assert.deepEqual(
    [await list(own, "live"), await list(own, "sandbox"), await list(other, "live")],
    [["1"], ["2"], ["3"]],
  );
  assert.deepEqual(
    [
      await released(own, business),
      await released(own, elsewhere),
      await released(other, business),
    ],
    [true, false, false],
  );
});

await test("a business is acquainted with the organizations that it met itself, or in a wallet that it left for this one", async () => {
  const { organizationId } = own;
  await noteBusinessAcquaintance(db, { business, organizationId, now: 1 });
  const known = async (of: Address, met = own) => {
    const asked = { business: of, organizationId: met.organizationId };
    const along = { ...asked, environment: "live" } as const;
    return [await isBusinessAcquainted(db, asked), await isAcquaintedAlong(db, along)];
  };
  assert.deepEqual(await known(business), [true, true]);
  assert.deepEqual(await known(business, other), [false, false]);
  assert.deepEqual(await known(elsewhere), [false, false]);
  await db.query(sql`update business set successor = ${elsewhere} where address = ${business}`);
  assert.deepEqual(await known(elsewhere), [false, false], "it is announced, and not done");
  await db.query(sql`update business set status = 'moved' where address = ${business}`);
  assert.deepEqual(await known(elsewhere), [false, true]);
  const { organizationId: met } = own;
  const inSandbox = { business: elsewhere, organizationId: met, environment: "sandbox" } as const;
  assert.equal(await isAcquaintedAlong(db, inSandbox), false, "it left a live one");
  await db.query(
    sql`insert into client_domain (id, organization_id, domain, environment, proof_token, created_at)
      values (${randomUUID()}, ${organizationId}, 'example.com', 'sandbox', '', 0)`,
  );
  const domainsIn = async (environment: "live" | "sandbox") =>
    listAcquaintedDomains(db, { business: elsewhere, environment });
  assert.deepEqual(await domainsIn("live"), [own.clientDomainId]);
  assert.deepEqual(await domainsIn("sandbox"), []);
});
