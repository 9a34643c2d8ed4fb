import {
  type Address,
  type BusinessFieldName,
  entryOfBusinessField,
  type Hex32,
  isBusinessField,
  leafFieldOf,
  type SubjectType,
} from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import { placeIn } from "../platform/cryptography/seal.ts";
import type { Queryable } from "../platform/database/db.ts";
import { type FieldProof, proveLeaves } from "./checks.ts";
import { companyValueColumn } from "./company-issue.ts";
import { readValue } from "./company-record.ts";
import * as store from "./company-store.ts";
import { type LeafStatus, statusOfLeaf } from "./leaf.ts";

/** A valid field of a business. */
export interface CompanyField {
  readonly name: BusinessFieldName;
  /** Which person it is about; empty for the business itself. */
  readonly subject: string;
  readonly subjectType: SubjectType;
  readonly value: string;
  readonly pepper: Hex32;
  readonly leaf: Hex32;
  /** Unix seconds. */
  readonly expiresAt: number;
  /** When the issuer looked at its sources, Unix seconds. */
  readonly asOf: number;
  /** The name of its issuer; `declared` for what the business says about itself. */
  readonly provenance: string;
  readonly credentialId: string;
}

/**
 * The valid fields of a business: the newest of each name and subject, sorted by these. One statement; unseals only the
 * fields asked for.
 *
 * @param db the caller's transaction, or the database
 */
export async function listCompanyFields(
  ctx: Pick<Ctx, "seal">,
  db: Queryable,
  question: store.CompanyQuestion,
): Promise<CompanyField[]> {
  const rows = await store.listLiveFields(db, question);
  return rows.map(({ id, valueSealed, issuerName, ...row }) => {
    const { data, pepper } = readValue(ctx.seal.open(valueSealed, placeIn(companyValueColumn, id)));
    const { subjectType, basis } = entryOfBusinessField(row.name);
    const provenance = basis === "declared" ? "declared" : issuerName;
    return Object.assign(row, { subjectType, value: data, pepper, provenance });
  });
}

/** Those of the names that have a valid value, of any person. One statement, which unseals nothing. */
export async function findCompanyNames(
  db: Queryable,
  question: store.CompanyQuestion,
): Promise<ReadonlySet<BusinessFieldName>> {
  return new Set(await store.listLiveNames(db, question));
}

/** A leaf, with name and subject as in a release. */
export interface CompanyClaim {
  readonly name: BusinessFieldName;
  readonly subject: string;
  /** The leaf itself. */
  readonly hash: Hex32;
}

/**
 * The status of each leaf, in their order; `UNKNOWN` if it does not belong to this business, name and subject. One
 * statement.
 */
export async function matchCompanyLeaves(
  db: Queryable,
  given: {
    environment: Environment;
    business: Address;
    claims: readonly CompanyClaim[];
    now: number;
  },
): Promise<(LeafStatus | "UNKNOWN")[]> {
  const { environment, business, claims, now } = given;
  const leaves = claims.map(({ hash }) => hash);
  const rows = await store.listKnownLeaves(db, { environment, business, leaves });
  const known = new Map(rows.map((row) => [row.leaf, row]));
  return claims.map((claim) => {
    const row = known.get(claim.hash);
    if (row === undefined || row.field !== leafFieldOf(claim)) return "UNKNOWN";
    return statusOfLeaf(row, now);
  });
}

/** What is needed, beside the value and its pepper, to check one field of a business on chain. */
export interface CompanyProof extends Omit<FieldProof, "field"> {
  readonly name: BusinessFieldName;
  readonly subject: string;
}

/** Proofs of attested leaves of a business, newest record first. One statement. Does not check who may have them. */
export async function proveCompanyLeaves(
  ctx: Pick<Ctx, "db">,
  given: { business: Address; environment: Environment; leaves: readonly Hex32[] },
): Promise<CompanyProof[]> {
  const { business: user, environment, leaves } = given;
  const proofs = await proveLeaves<string>(ctx, { user, environment, leaves });
  return proofs.flatMap(({ field, ...proof }) => {
    const [name = "", subject = ""] = field.split("/");
    return isBusinessField(name) ? [{ name, subject, ...proof }] : [];
  });
}
