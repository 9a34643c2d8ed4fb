import {
  commitmentOf,
  isFieldName,
  isHexOf,
  isRecord,
  leafOf,
  parseAddress,
  verifyMerkleProof,
  type Address,
  type FieldName,
  type Hex32,
} from "@svc/protocol";
import { hashedRecordKey, listRecords, putRecord, type RecordContext } from "./records.ts";
import { shownText } from "./shown-text.ts";

/** A field of a credential with everything that proves it. */
export interface HeldField {
  readonly field: FieldName;
  /** Unix seconds; part of the leaf. */
  readonly expiresAt: number;
  readonly data: string;
  readonly pepper: Hex32;
  /** The siblings from the leaf to the credential's root. */
  readonly proof: readonly Hex32[];
}

/** A credential as the wallet stores it; once it is collected, its values are nowhere else. */
export interface HeldCredential {
  readonly id: string;
  /** Origin of the broker it was collected from. */
  readonly broker: string;
  /** Credentials of the sandbox are of no use for a real request. */
  readonly environment: "live" | "sandbox";
  readonly issuer: { readonly id: Address; readonly name: string };
  readonly document: string;
  /** The status that its broker last reported: only `live` counts. */
  readonly status: string;
  /** Unix seconds. */
  readonly issuedAt: number;
  readonly root: Hex32;
  readonly fields: readonly HeldField[];
}

/** A credential as a broker lists it; its fields come with their values until it is collected. */
export interface ListedCredential extends Omit<HeldCredential, "fields"> {
  readonly collected: boolean;
  readonly fields: readonly (Pick<HeldField, "field" | "expiresAt"> & Partial<HeldField>)[];
}

const fieldsMax = 200;
const siblingsMax = 64;
const textMax = 200;

/** The credentials that this identity holds, as far as they can be read. */
export async function listHeld(ctx: RecordContext): Promise<readonly HeldCredential[]> {
  const records = await listRecords(ctx, "credential");
  return records.map(({ value }) => value as HeldCredential);
}

export async function keepCredential(ctx: RecordContext, held: HeldCredential): Promise<void> {
  const key = hashedRecordKey("credential", ctx.identity.address, held.broker, held.id);
  await putRecord(ctx, key, held);
}

/**
 * The credential with its values, if every value is the one that its issuer committed to: each leaf is recomputed from
 * user, field, value, pepper and end, and has to lead to the root. Otherwise null.
 */
export function checkValues(user: Address, listed: ListedCredential): HeldCredential | null {
  const { collected: _collected, fields, ...rest } = listed;
  const held: HeldField[] = [];
  for (const { field, expiresAt, data, pepper, proof } of fields) {
    if (data === undefined || pepper === undefined || proof === undefined) return null;
    const leaf = leafOf({ user, field, commitment: commitmentOf({ data, pepper }), expiresAt });
    // A leaf that is its own root was attested alone, and any hash could be such a leaf.
    if (proof.length === 0 || !verifyMerkleProof({ leaf, proof, root: listed.root })) return null;
    held.push({ field, expiresAt, data, pepper, proof });
  }
  return held.length === 0 ? null : { ...rest, fields: held };
}

/** Reads a credential out of a broker's list; null for anything else. */
export function readListed(value: unknown, broker: string): ListedCredential | null {
  if (!isRecord(value) || !isRecord(value["issuer"]) || !Array.isArray(value["fields"]))
    return null;
  const { id, environment, document, status, issuedAt, root, collected, issuer } = value;
  const issuerId = typeof issuer["id"] === "string" ? parseAddress(issuer["id"]) : null;
  const fields = value["fields"].slice(0, fieldsMax + 1).map(readField);
  const isRead =
    isShort(id) &&
    // The id becomes part of a URL.
    id.isWellFormed() &&
    (environment === "live" || environment === "sandbox") &&
    isShort(document) &&
    isShort(status) &&
    isShort(issuer["name"]) &&
    issuerId !== null &&
    isSeconds(issuedAt) &&
    isHash(root) &&
    typeof collected === "boolean" &&
    fields.length <= fieldsMax &&
    fields.every((field) => field !== null) &&
    new Set(fields.map((field) => field.field)).size === fields.length;
  if (!isRead) return null;
  return {
    id,
    broker,
    environment,
    issuer: { id: issuerId, name: shownText(issuer["name"] as string) },
    document: shownText(document),
    status,
    issuedAt,
    root: lower(root),
    collected,
    fields,
  };
}

function readField(value: unknown): ListedCredential["fields"][number] | null {
  if (!isRecord(value)) return null;
  const { field, expiresAt, data, pepper, proof } = value;
  if (typeof field !== "string" || !isFieldName(field) || !isSeconds(expiresAt)) return null;
  if (data === undefined && pepper === undefined && proof === undefined)
    return { field, expiresAt };
  const isWhole =
    typeof data === "string" &&
    isHash(pepper) &&
    Array.isArray(proof) &&
    proof.length <= siblingsMax &&
    proof.every(isHash);
  return isWhole
    ? { field, expiresAt, data, pepper: lower(pepper), proof: proof.map(lower) }
    : null;
}

const isShort = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= textMax;
const isSeconds = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
const isHash = (value: unknown): value is Hex32 => isHexOf(value, 32);
const lower = (hash: Hex32): Hex32 => `0x${hash.slice(2).toLowerCase()}`;
