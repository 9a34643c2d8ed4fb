import {
  type Address,
  buildTree,
  commitmentOf,
  type FieldName,
  fieldsOfName,
  type Hex32,
  hexOfBytes,
  type Info,
  leafOf,
  type ParentName,
} from "@svc/protocol";
import type { ApiKey, Environment } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import * as store from "./check-store.ts";
import type { CredentialsContext } from "./credentials-context.ts";
import { type MatchedLeaf, matchLeaf, openingOf } from "./leaf.ts";

/** Who asks: the environment of the key and {@link CredentialsContext.mayAsk} decide what an organization sees. */
type Requester = Pick<ApiKey, "organizationId" | "environment"> & {
  /** The id of the API key; null if the service itself asks. */
  readonly id: string | null;
};

/** A name that can be asked for: a field, or a parent that any one of several fields satisfies. */
export type AskedName = FieldName | ParentName;

export interface Verification {
  /** The names as they were asked for, in their order. */
  readonly verified: AskedName[];
  readonly unverified: AskedName[];
}

/**
 * Which of the names a user has verified at this moment, from the index: one database call in addition to the
 * predicate's, shared with others who ask at the same time. A requester that may not ask about this user is told that
 * nothing is verified, after the same calls.
 */
export async function findVerified(
  ctx: Pick<CredentialsContext, "lookups" | "mayAsk">,
  requester: Requester,
  { user, names }: { user: Address; names: readonly AskedName[] },
): Promise<Verification> {
  const fields = concreteFields(names);
  const [mayAsk, live] = await Promise.all([
    ctx.mayAsk(requester.organizationId, user),
    ctx.lookups.findLiveFields({
      keyId: requester.id,
      user,
      environment: requester.environment,
      fields,
    }),
  ]);
  const known = new Set<string>(mayAsk ? live : []);
  const [verified, unverified]: [AskedName[], AskedName[]] = [[], []];
  for (const name of new Set(names)) {
    const isVerified = fieldsOfName(name).some((field) => known.has(field));
    (isVerified ? verified : unverified).push(name);
  }
  return { verified, unverified };
}

/**
 * For each triple, in their order, the attested leaf of this user that it opens, or null: tried against every leaf kept
 * for its field. No predicate is applied: the caller has the triples from the user.
 *
 * @param asked.keyId the key of the merchant that asks; null if the user answers
 */
export async function matchLeaves(
  ctx: Pick<CredentialsContext, "lookups" | "clock">,
  asked: {
    keyId: string | null;
    environment: Environment;
    user: Address;
    infos: readonly Info[];
  },
): Promise<(MatchedLeaf | null)[]> {
  const { infos, ...asking } = asked;
  const openings = infos.map(openingOf);
  const leaves = await ctx.lookups.findOpenedLeaves({ ...asking, openings });
  const now = ctx.clock.now();
  return infos.map(({ field }, index) =>
    matchLeaf(leaves, { field, opening: openings[index] }, now),
  );
}

/** How many lists {@link listSupposedLeaves} makes. */
const supposedListsTotal = 8;

/**
 * What a wallet may have signed for triples that do not open their leaves: lists of leaves, each in the order of the
 * triples. A triple does not say when its leaf ends, so each list assumes another end that leaves of these fields have,
 * the latest first; a field without a leaf of that end takes its own latest end. Lists of ends that no leaf has make up
 * the number, and a field that never had a leaf is in all lists: how long the lists take, and what is done with them,
 * must not say what the user has or had.
 */
export async function listSupposedLeaves(
  ctx: Pick<Ctx, "db">,
  { environment, user, infos }: { environment: Environment; user: Address; infos: readonly Info[] },
): Promise<Hex32[][]> {
  const fields = infos.map(({ field }) => field);
  const known = await store.listLeafEnds(ctx.db, { user, environment, fields });
  const endsOf = Map.groupBy(known, ({ field }) => field);
  const distinct = [...new Set(known.map(({ expiresAt }) => expiresAt))];
  const ends = Array.from({ length: supposedListsTotal }, (_, at) => distinct[at] ?? at);
  const openings = infos.map(({ field, data, pepper }) => ({
    user,
    field,
    commitment: commitmentOf({ data, pepper }),
    ends: (endsOf.get(field) ?? []).map(({ expiresAt }) => expiresAt),
  }));
  return ends.map((end) =>
    openings.map(({ ends: own, ...opening }) =>
      leafOf({ ...opening, expiresAt: own.includes(end) ? end : (own[0] ?? end) }),
    ),
  );
}

/** Which of the leaves count at this moment; one statement for any number of leaves, of any users. */
export async function findLiveLeaves(
  { clock }: Pick<Ctx, "clock">,
  db: Queryable,
  leaves: readonly Hex32[],
): Promise<ReadonlySet<Hex32>> {
  return new Set(await store.listLiveLeaves(db, leaves, clock.now()));
}

/** Why a triple is not valid; the first two only if it opens a leaf (decisions section 4). */
type InvalidReason = "EXPIRED" | "REVOKED" | "UNKNOWN";

export interface Validity {
  readonly valid: FieldName[];
  readonly invalid: FieldName[];
  readonly reasons: Partial<Record<FieldName, InvalidReason>>;
}

/** Whether stored triples still hold. A requester that may not ask about this user is told that they are unknown. */
export async function checkInfos(
  ctx: Pick<CredentialsContext, "lookups" | "clock" | "mayAsk">,
  requester: Requester,
  { user, infos }: { user: Address; infos: readonly Info[] },
): Promise<Validity> {
  const [mayAsk, matches] = await Promise.all([
    ctx.mayAsk(requester.organizationId, user),
    matchLeaves(ctx, { keyId: requester.id, environment: requester.environment, user, infos }),
  ]);
  const [valid, invalid] = [new Set<FieldName>(), new Set<FieldName>()];
  const reasons: Partial<Record<FieldName, InvalidReason>> = {};
  for (const [index, { field }] of infos.entries()) {
    const match = mayAsk ? matches[index] : null;
    if (match?.status === "LIVE") {
      valid.add(field);
      continue;
    }
    invalid.add(field);
    reasons[field] = match?.status ?? "UNKNOWN";
  }
  return { valid: [...valid], invalid: [...invalid], reasons };
}

/** What anybody needs to check one field on chain, with the value and its pepper. */
export interface FieldProof<Field extends string = FieldName> {
  readonly field: Field;
  readonly commitment: Hex32;
  readonly expiresAt: number;
  readonly leaf: Hex32;
  readonly root: Hex32;
  readonly proof: readonly Hex32[];
  /** How the registry names the issuer. */
  readonly issuer: Address;
  /** The transaction that attested the root. */
  readonly transactionHash: Hex32;
}

/** Proofs of the leaves that were handed over to the caller, newest first; nothing is said about any others. */
export async function findProofs(
  ctx: Pick<CredentialsContext, "db" | "mayAsk" | "listHandedOver">,
  { organizationId, environment }: Requester,
  { user, names }: { user: Address; names: readonly AskedName[] },
): Promise<FieldProof[]> {
  const fields = concreteFields(names);
  const [mayAsk, handedOver] = await Promise.all([
    ctx.mayAsk(organizationId, user),
    ctx.listHandedOver(organizationId, { user, fields }),
  ]);
  return proveLeaves(ctx, { user, environment, leaves: mayAsk ? handedOver : [] });
}

/** Proofs of attested leaves of a user, newest first; the caller has to know who may have them. */
export async function proveLeaves<Field extends string = FieldName>(
  ctx: Pick<Ctx, "db">,
  given: { user: Address; environment: Environment; leaves: readonly Hex32[] },
): Promise<FieldProof<Field>[]> {
  const rows = await store.listProofRows<Field>(ctx.db, given);
  // Many leaves may be in one tree.
  const trees = new Map<Hex32, ReturnType<typeof buildTree>>();
  return rows.map(({ tree, ...row }) => {
    const built = trees.get(row.root) ?? buildTree(leavesOfTree(tree));
    trees.set(row.root, built);
    return Object.assign(row, { proof: built.proofOf(row.leaf) });
  });
}

/** The leaves of a stored tree. */
export function leavesOfTree(tree: Buffer): Hex32[] {
  const count = tree.length / 32;
  return Array.from({ length: count }, (_, index) =>
    hexOfBytes(tree.subarray(index * 32, (index + 1) * 32)),
  );
}

function concreteFields(names: readonly AskedName[]): FieldName[] {
  return [...new Set(names.flatMap((name) => fieldsOfName(name)))];
}
