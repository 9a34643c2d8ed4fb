import { hexOfBytes, leafFieldOf } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { placeIn, type SealedColumn } from "../platform/cryptography/seal.ts";
import { uuidv7 } from "../platform/ids.ts";
import { Problem } from "../platform/http/problems.ts";
import {
  checkCompanyRecord,
  type GivenCompanyRecord,
  soleProprietorOf,
  vouchesFor,
  writeValue,
} from "./company-record.ts";
import * as company from "./company-store.ts";
import { plantTree } from "./credential.ts";
import * as store from "./credential-store.ts";
import type { CompanyCallbacks } from "./credentials-context.ts";
import { type Idempotency, type IssuedCredential, issueOnce } from "./issue.ts";
import { type Issuer, isTrusted } from "./issuer.ts";

export const companyValueColumn: SealedColumn = {
  table: "company_field",
  idColumn: "id",
  column: "value_sealed",
};

/** The context for issuing; a verb of the command line passes the callbacks itself. */
export type CompanyIssueContext = Pick<Ctx, "db" | "clock" | "random" | "seal" | "keys" | "audit"> &
  CompanyCallbacks;

/**
 * Issues the record of a business: a credential whose holder is the business and whose values stay here, sealed. It is
 * valid once its root is final on chain, seconds later; its value of a field then takes precedence over those of older
 * records. If it vouches for the business, that is marked verified.
 *
 * @param given.actor the name in the audit trail; by default the issuer
 * @throws {Problem} invalid_request, business_not_found (also for a business of the other environment),
 * issuer_distrusted, idempotency_key_conflict
 */
export async function issueCompanyRecord(
  ctx: CompanyIssueContext,
  issuer: Issuer,
  given: GivenCompanyRecord & { readonly idempotency?: Idempotency; readonly actor?: string },
): Promise<IssuedCredential> {
  const { idempotency, actor = `issuer:${issuer.id}` } = given;
  return issueOnce(ctx, { issuerId: issuer.id, idempotency }, () => {
    const prepared = prepareRecord(ctx, issuer, given);
    const { id } = prepared.credential;
    return { id, storeIssued: async (tx) => storeRecord(ctx, tx, { ...prepared, actor }) };
  });
}

interface PreparedRecord {
  readonly credential: store.NewCredential;
  readonly record: company.NewCompanyRecord;
}

function prepareRecord(
  ctx: CompanyIssueContext,
  issuer: Issuer,
  given: GivenCompanyRecord,
): PreparedRecord {
  const now = ctx.clock.now();
  if (!isTrusted(issuer, now)) throw new Problem("issuer_distrusted");
  const { business, values, asOf, expiresAt } = checkCompanyRecord(given, now);
  const salted = values.map((value) => ({
    ...value,
    field: leafFieldOf(value),
    pepper: hexOfBytes(ctx.random.bytes(32)),
    expiresAt,
  }));
  const planted = plantTree(business, salted, () => ctx.random.bytes(32));
  const leaves = new Map(planted.leaves.map(({ field, leaf }) => [field, leaf]));
  const id = uuidv7(ctx.clock, ctx.random);
  const fields = salted.map(({ name, subject, field, data, pepper }) => {
    const leaf = leaves.get(field);
    if (leaf === undefined) throw new Error("a planted tree lacks a leaf");
    const fieldId = uuidv7(ctx.clock, ctx.random);
    const valueSealed = ctx.seal.seal(
      writeValue({ data, pepper }),
      placeIn(companyValueColumn, fieldId),
    );
    return { id: fieldId, name, subject, leaf, valueSealed };
  });
  const { id: issuerId, environment } = issuer;
  return {
    credential: {
      id,
      issuerId,
      environment,
      user: business,
      document: store.companyDocument,
      createdAt: now,
      expiresAt,
      planted,
      valuesSealed: null,
    },
    record: {
      credentialId: id,
      business,
      asOf,
      vouches: vouchesFor(values),
      isSoleProprietor: soleProprietorOf(values),
      fields,
    },
  };
}

async function storeRecord(
  ctx: CompanyIssueContext,
  tx: Queryable,
  { credential, record, actor }: PreparedRecord & { readonly actor: string },
): Promise<IssuedCredential> {
  const { id, environment, planted } = credential;
  const { business, vouches } = record;
  if (!(await ctx.holdCompany(tx, { business, environment })))
    throw new Problem("business_not_found");
  if (!(await store.insertCredential(tx, credential))) throw new Problem("issuer_distrusted");
  await company.insertRecord(tx, record);
  if (vouches) await ctx.onCompanyRecord(tx, { business, environment, isVouchedFor: true });
  await ctx.audit.record(tx, {
    actor,
    action: "company.issue",
    subject: id,
    details: { business, fields: [...new Set(record.fields.map(({ name }) => name))], vouches },
  });
  return { id, root: planted.root, isRepeated: false };
}
