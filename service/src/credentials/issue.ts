import { type Address, type FieldName, type Hex32, hexOfBytes, isFieldName } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { uuidv7 } from "../platform/ids.ts";
import { placeIn, type SealedColumn } from "../platform/cryptography/seal.ts";
import { equalBytes } from "../platform/cryptography/mac.ts";
import { readAddress } from "../platform/http/address-input.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import { newestDate } from "./calendar.ts";
import { plantTree, type SaltedField, writeValues } from "./credential.ts";
import * as store from "./credential-store.ts";
import { deriveFields } from "./derived-fields.ts";
import { type Document, documents, faultOfField, faultOfValue } from "./field-value.ts";
import { type Issuer, isTrusted } from "./issuer.ts";

/** A verified document, as an issuer submits it. */
export interface GivenCredential {
  /** The user whose document it is, in any spelling of an address. */
  readonly user: string;
  /** One of {@link documents}: the group of the catalogue that its fields belong to. */
  readonly document: string;
  /** Concrete fields that are not derived, each once. */
  readonly fields: readonly { readonly field: string; readonly data: string }[];
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** A repeated call with this key is answered with the credential of the first call. */
export interface Idempotency {
  readonly key: string;
  /** The body as received; another body under the same key is refused. */
  readonly body: string;
}

export interface IssuedCredential {
  readonly id: string;
  readonly root: Hex32;
  /** Whether an earlier call with the same key issued it. */
  readonly isRepeated: boolean;
}

/** The values of a credential, until its user's wallet collects them. */
export const credentialValuesColumn: SealedColumn = {
  table: "credential",
  idColumn: "id",
  column: "values_sealed",
};

const fieldsMax = 100;
/** How long an `Idempotency-Key` is remembered. */
export const idempotencySeconds = 86_400;
/** The longest lifetime of a document. */
const lifetimeSecondsMax = 20 * 366 * 86_400;

/** Checks when a credential ends. @throws {Problem} invalid_request */
export function checkEnd(expiresAt: number, now: number): void {
  if (!Number.isSafeInteger(expiresAt) || expiresAt <= now || expiresAt > now + lifetimeSecondsMax)
    throw invalidRequest("expiresAt must be a time in Unix seconds, ahead by 20 years at most");
}

/**
 * Issues a credential: checks the fields, adds what is derived from them, salts and hashes all, and seals the values
 * until the user's wallet collects them. It is valid once its root is final on chain, seconds later.
 *
 * @throws {Problem} invalid_request, issuer_distrusted, idempotency_key_conflict
 */
export async function issueCredential(
  ctx: Ctx,
  issuer: Issuer,
  given: GivenCredential & { readonly idempotency?: Idempotency },
): Promise<IssuedCredential> {
  const call = { issuerId: issuer.id, idempotency: given.idempotency };
  return issueOnce(ctx, call, () => {
    const prepared = prepareCredential(ctx, issuer, given);
    return { id: prepared.id, storeIssued: async (tx) => storeCredential(ctx, tx, prepared) };
  });
}

/** What will be issued, and a function that stores it in the caller's transaction. */
interface Issuance {
  readonly id: string;
  readonly storeIssued: (tx: Queryable) => Promise<IssuedCredential>;
}

/**
 * Issues something once per idempotency key. A repeated call stores nothing and returns what the first call issued,
 * even if that could not be issued any more. If it was deleted with its user, the key is gone too, and the call issues
 * a new one.
 *
 * @throws {Problem} idempotency_key_conflict, and what `prepare` and `storeIssued` throw
 */
export async function issueOnce(
  ctx: Pick<Ctx, "db" | "clock" | "keys">,
  { issuerId, idempotency }: { issuerId: string; idempotency: Idempotency | undefined },
  prepare: () => Issuance,
): Promise<IssuedCredential> {
  if (idempotency === undefined) return ctx.db.transaction(prepare().storeIssued);
  const bodyMac = ctx.keys.mac("issuer-idempotency", idempotency.body);
  const call = { issuerId, key: idempotency.key };
  const now = ctx.clock.now();
  const before = now - idempotencySeconds;
  try {
    const { id: credentialId, storeIssued } = prepare();
    return await ctx.db.transaction(async (tx) => {
      const stored = await storeIssued(tx);
      const taken = { ...call, bodyMac, credentialId, now };
      const known = await store.takeIdempotencyKey(tx, taken, before);
      if (known !== null) throw new Repeated(known);
      return stored;
    });
  } catch (error) {
    const isRefused = error instanceof Problem;
    if (!isRefused && !(error instanceof Repeated)) throw error;
    const known = isRefused ? await store.findIdempotencyKey(ctx.db, call, before) : error.known;
    const isSame = known !== null && equalBytes(known.bodyMac, bodyMac);
    if (!isSame) throw isRefused ? error : new Problem("idempotency_key_conflict");
    return { id: known.credentialId, root: known.root, isRepeated: true };
  }
}

/** Rolls back the transaction of a repeated call. */
class Repeated extends Error {
  readonly known: store.KnownCall;

  constructor(known: store.KnownCall) {
    super("this call was made before");
    this.known = known;
  }
}

/** Does everything that needs no database. @throws {Problem} invalid_request, issuer_distrusted */
export function prepareCredential(
  ctx: Pick<Ctx, "clock" | "random" | "seal">,
  issuer: Issuer,
  given: GivenCredential,
): store.NewCredential {
  const now = ctx.clock.now();
  if (!isTrusted(issuer, now)) throw new Problem("issuer_distrusted");
  const { user, document, fields, expiresAt } = checkGiven(given, now);
  const values = [
    ...fields.map(({ field, data }) => ({ field, data, expiresAt })),
    ...deriveFields(fields, { now, expiresAt }),
  ];
  const salted = values.map((value): SaltedField =>
    Object.assign(value, { pepper: hexOfBytes(ctx.random.bytes(32)) }),
  );
  const id = uuidv7(ctx.clock, ctx.random);
  return {
    id,
    issuerId: issuer.id,
    environment: issuer.environment,
    user,
    document,
    createdAt: now,
    expiresAt,
    planted: plantTree(user, salted, () => ctx.random.bytes(32)),
    valuesSealed: ctx.seal.seal(writeValues(salted), placeIn(credentialValuesColumn, id)),
  };
}

/** Stores a prepared credential in the caller's transaction. @throws {Problem} issuer_distrusted, if that is new */
export async function storeCredential(
  ctx: Pick<Ctx, "audit">,
  tx: Queryable,
  prepared: store.NewCredential,
): Promise<IssuedCredential> {
  const { id, issuerId, user, document, planted } = prepared;
  if (!(await store.insertCredential(tx, prepared))) throw new Problem("issuer_distrusted");
  const details = { user, document, fields: planted.leaves.map(({ field }) => field) };
  const actor = `issuer:${issuerId}`;
  await ctx.audit.record(tx, { actor, action: "credential.issue", subject: id, details });
  return { id, root: planted.root, isRepeated: false };
}

interface Checked {
  readonly user: Address;
  readonly document: Document;
  readonly fields: { readonly field: FieldName; readonly data: string }[];
  readonly expiresAt: number;
}

/** Checks a document. Messages name the field, never its value, because callers log them. */
function checkGiven(given: GivenCredential, now: number): Checked {
  const user = readAddress("user", given.user);
  const document = documents.find((each) => each === given.document);
  if (document === undefined)
    throw invalidRequest(`document must be one of ${documents.join(", ")}`);
  const { expiresAt } = given;
  checkEnd(expiresAt, now);
  if (given.fields.length === 0 || given.fields.length > fieldsMax)
    throw invalidRequest(`fields must have 1 to ${fieldsMax} elements`);
  const today = newestDate(now);
  const fields = given.fields.map(({ field, data }, index) => {
    if (!isFieldName(field))
      throw invalidRequest(`fields[${index}].field is not a field of the catalogue`);
    const fault = faultOfField(document, field) ?? faultOfValue(field, data, today);
    if (fault !== null) throw invalidRequest(`fields[${index}] ${field} ${fault}`);
    return { field, data };
  });
  if (new Set(fields.map(({ field }) => field)).size < fields.length)
    throw invalidRequest("fields names a field twice");
  return { user, document, fields, expiresAt };
}
