// Reads from a body what is asked of a business, without looking up the business.
import type { FastifyRequest } from "fastify";
import { Type } from "../../platform/http/schema.ts";
import {
  type BusinessFieldName,
  businessFieldOfHash,
  isBusinessField,
  isRecord,
} from "@svc/protocol";
import { invalidRequest, Problem } from "../../platform/http/problems.ts";
import { checkEntitled } from "../entitlement.ts";
import { isPersonal } from "./data-request.ts";
import { priceOf } from "../billing/pricing.ts";
import { readPurpose, readShown } from "./purpose.ts";
import { apiKeyOf } from "../../accounts/index.ts";

/** The most fields, required and optional together. */
const fieldsMax = 40;
const referenceMax = 280;

const FieldNames = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { maxItems: fieldsMax, description });

/** The members of a request or quote that name fields. */
export const fieldMembers = {
  fields: FieldNames("Names from the catalogue, or keccak256 of them; at least one."),
  optionalFields: Type.Optional(
    FieldNames(
      "Fields that the members may release or withhold. At most 40 together with `fields`.",
    ),
  ),
};

/** The members that requests and offers have in common. */
export const dataMembers = {
  ...fieldMembers,
  purpose: Type.String({ description: "Shown to the members, 8 to 280 characters." }),
  reference: Type.Optional(
    Type.String({
      maxLength: referenceMax,
      description: "Your own reference, at most 280 characters.",
    }),
  ),
};

/** The requested names, with hashes replaced by the names for which they stand. Some may not be in the catalogue. */
export interface AskedFields {
  readonly fields: readonly string[];
  readonly optionalFields: readonly string[];
}

export interface DataTerms extends AskedFields {
  readonly purpose: string;
  readonly reference: string | null;
}

/**
 * Guards every route whose body names fields, before anything else in the body is examined: 403 for a field that the
 * key may not name comes before 400 (decisions section 1, Errors).
 *
 * @throws {Problem} pii_not_entitled, by the catalogue's flags
 */
export async function gatePersonalFields(request: FastifyRequest): Promise<void> {
  const body = isRecord(request.body) ? request.body : {};
  const given = [body["fields"], body["optionalFields"]].flat();
  const names = given.filter((each) => typeof each === "string").map(nameOf);
  if (names.some((name) => isBusinessField(name) && isPersonal(name, false)))
    checkEntitled(apiKeyOf(request), "kyb:pii");
}

/**
 * Reads which fields are requested. As in a KYC order, a repeated name counts once, and a name in both lists is
 * required. Unknown names pass: {@link knownFields} refuses them, after the check that the business exists.
 *
 * @throws {Problem} invalid_request, field_not_priced
 */
export function readAskedFields(body: {
  fields: readonly string[];
  optionalFields?: readonly string[];
}): AskedFields {
  const required = new Set(body.fields.map(nameOf));
  const fields = [...required];
  const optionalFields = [...new Set((body.optionalFields ?? []).map(nameOf)).difference(required)];
  const all = [...fields, ...optionalFields];
  const known = all.filter(isBusinessField);
  if (fields.length === 0) throw invalidRequest("fields names at least one field");
  if (all.length > fieldsMax)
    throw invalidRequest(`fields and optionalFields name at most ${fieldsMax} together`);
  const unpriced = known.filter((name) => priceOf(name) === null);
  if (unpriced.length > 0) throw new Problem("field_not_priced", { details: { fields: unpriced } });
  return { fields, optionalFields };
}

/** Fields may be named by their hash. */
function nameOf(text: string): string {
  return businessFieldOfHash(text) ?? text;
}

/** The same with the other members of a request. @throws {Problem} invalid_request, field_not_priced */
export function readTerms(body: {
  fields: readonly string[];
  optionalFields?: readonly string[];
  purpose: string;
  reference?: string;
}): DataTerms {
  const asked = readAskedFields(body);
  const purpose = readPurpose(body.purpose);
  const { reference } = body;
  return {
    ...asked,
    purpose,
    reference: reference === undefined ? null : readShown("reference", reference),
  };
}

/** Refuses names that are not in the catalogue. @throws {Problem} unknown_field, naming them in the details */
export function knownFields({ fields, optionalFields }: AskedFields): {
  fields: BusinessFieldName[];
  optionalFields: BusinessFieldName[];
} {
  const unknown = [...fields, ...optionalFields].filter((name) => !isBusinessField(name));
  if (unknown.length > 0) throw new Problem("unknown_field", { details: { fields: unknown } });
  return {
    fields: fields.filter(isBusinessField),
    optionalFields: optionalFields.filter(isBusinessField),
  };
}
