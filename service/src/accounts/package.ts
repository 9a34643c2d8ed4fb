import { isFieldName, isParentName } from "@svc/protocol";
import { invalidRequest } from "../platform/http/problems.ts";

/** A bought KYC product, without its keys. */
export interface KycPackage {
  readonly id: string;
  readonly clientDomainId: string;
  readonly name: string;
  /** Identifies client and package in a request; 256 random bits. */
  readonly sourceKey: string;
  /** Null if every request names its own fields. */
  readonly fields: readonly string[] | null;
  readonly transfersTotal: number;
  readonly transfersHeld: number;
  readonly transfersConsumed: number;
  readonly priceRappen: bigint;
  readonly createdAt: number;
}

/** The most names in one request, required and optional together (decisions section 5). */
const fieldsMax = 40;
const transfersMax = 10_000_000;

/** Checks the terms of a package, except its name. @throws {Problem} invalid_request */
export function checkPackage(given: {
  fields: readonly string[] | null;
  transfers: number;
  priceRappen: bigint;
}): void {
  const { fields, transfers } = given;
  if (fields !== null && (fields.length === 0 || fields.length > fieldsMax))
    throw invalidRequest(`a fixed package has 1 to ${fieldsMax} fields`);
  for (const name of fields ?? []) {
    if (!isFieldName(name) && !isParentName(name))
      throw invalidRequest(`${name} is not a KYC field`);
  }
  if (new Set(fields).size !== (fields ?? []).length)
    throw invalidRequest("a field is named twice");
  if (!Number.isSafeInteger(transfers) || transfers < 1 || transfers > transfersMax)
    throw invalidRequest(`transfers is 1 to ${transfersMax}`);
  if (given.priceRappen < 0n) throw invalidRequest("the price is not below 0");
}
