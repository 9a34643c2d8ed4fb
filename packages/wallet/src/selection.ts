import {
  commitmentOf,
  entryOfField,
  fieldsOfName,
  isFieldName,
  isParentName,
  leafOf,
  nameOfAttribute,
  type Address,
  type FieldName,
  type Hex32,
  type ParentName,
} from "@svc/protocol";
import type { HeldCredential, HeldField } from "./held-credential.ts";
import type { WalletRefusal } from "./refusal.ts";

/** A name that somebody asks for: the one in the catalogue, or else the text as it was written. */
export interface AskedName {
  readonly name: string;
  readonly isOptional: boolean;
}

/** A field and the credential it comes from. */
export interface Source extends HeldField {
  readonly credential: Omit<HeldCredential, "fields">;
}

/** What would answer a name; null if no field that the wallet holds fits. */
export interface Choice extends AskedName {
  readonly source: Source | null;
  /** Why a broker did not say whether it has something that fits; only where the wallet holds nothing that does. */
  readonly unasked?: WalletRefusal;
  /** The requester is unknown, and all that would answer the name is guarded: it does not matter what the wallet holds. */
  readonly isGuarded?: true;
}

/** What may be chosen. */
export interface SelectionRules {
  /** Unix seconds. */
  readonly now: number;
  /** The requester is known: only then fields of the sensitivities `pii-high` and `biometric` go out. */
  readonly isKnown: boolean;
  /** A yes/no field fits only with "yes": for requests that ask for a proof instead of the value. */
  readonly mustHold: boolean;
  /** The side on which a field has to count; undefined if nobody says, and then the live side comes first. */
  readonly environment: HeldCredential["environment"] | undefined;
}

/**
 * Finds the best source for every name, without asking the person: from the credentials that count, the one that
 * answers most of the request, and among equals the one that lasts longest.
 */
export function chooseSources(
  held: readonly HeldCredential[],
  asked: readonly AskedName[],
  rules: SelectionRules,
): readonly Choice[] {
  const usable = held.map((each) => ({ each, sources: sourcesOf(each, rules) }));
  const ranked = usable
    .map(({ each, sources }) => ({
      each,
      sources,
      answers: asked.filter(({ name }) => findSource(sources, name) !== null).length,
    }))
    .toSorted(
      (a, b) =>
        Number(b.each.environment === "live") - Number(a.each.environment === "live") ||
        Number(b.each.status === "live") - Number(a.each.status === "live") ||
        b.answers - a.answers ||
        lastsUntil(b.sources) - lastsUntil(a.sources) ||
        b.each.issuedAt - a.each.issuedAt ||
        (a.each.id < b.each.id ? -1 : 1),
    );
  return asked.map((each) => {
    for (const { sources } of ranked) {
      const source = findSource(sources, each.name);
      if (source !== null) return { ...each, source };
    }
    const isGuardedName = !rules.isKnown && isAllGuarded(each.name);
    return { ...each, source: null, ...(isGuardedName && { isGuarded: true }) };
  });
}

/** What is released: each field once, sorted by name, as signatures and hashes require. */
export function releasedBy(choices: readonly Choice[]): readonly Source[] {
  const byField = new Map<FieldName, Source>();
  for (const { source } of choices) if (source !== null) byField.set(source.field, source);
  return [...byField.values()].toSorted((a, b) => (a.field < b.field ? -1 : 1));
}

/** Whether a field's value may never be sent to an unknown requester (decisions, section 3, "Request object"). */
export function isGuarded(field: FieldName): boolean {
  const { sensitivity } = entryOfField(field);
  return sensitivity === "pii-high" || sensitivity === "biometric";
}

function isAllGuarded(name: string): boolean {
  return isName(name) && fieldsOfName(name).every(isGuarded);
}

/** Whether the field is a yes/no answer derived from another field: its value is opened in a proof. */
export function isDerivedAnswer(field: FieldName): boolean {
  const { type, derived } = entryOfField(field);
  return derived && type === "boolean";
}

/** The leaf by which a field was attested. */
export function leafOfSource(user: Address, source: Source): Hex32 {
  const { field, data, pepper, expiresAt } = source;
  return leafOf({ user, field, commitment: commitmentOf({ data, pepper }), expiresAt });
}

/** The catalogue name for what a person or a link writes, in either spelling; or else the text itself. */
export function nameOfText(text: string): string {
  return isName(text) ? text : (nameOfAttribute(text) ?? text);
}

const isName = (text: string): text is FieldName | ParentName =>
  isFieldName(text) || isParentName(text);

/** An issuer's attestation is final on chain within minutes: until then a new credential is the second choice. */
const usableStatuses: ReadonlySet<string> = new Set(["live", "pending"]);

function sourcesOf(
  { fields, ...credential }: HeldCredential,
  { now, isKnown, mustHold, environment = credential.environment }: SelectionRules,
): readonly Source[] {
  if (!usableStatuses.has(credential.status) || credential.environment !== environment) return [];
  return fields
    .filter(
      ({ field, expiresAt, data }) =>
        expiresAt > now &&
        (isKnown || !isGuarded(field)) &&
        (!mustHold || !isDerivedAnswer(field) || data === "true"),
    )
    .map(({ field, expiresAt, data, pepper, proof }) => ({
      field,
      expiresAt,
      data,
      pepper,
      proof,
      credential,
    }));
}

function findSource(sources: readonly Source[], name: string): Source | null {
  if (!isName(name)) return null;
  for (const field of fieldsOfName(name)) {
    const source = sources.find((each) => each.field === field);
    if (source !== undefined) return source;
  }
  return null;
}

function lastsUntil(sources: readonly Source[]): number {
  return Math.max(0, ...sources.map(({ expiresAt }) => expiresAt));
}
