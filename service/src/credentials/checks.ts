import {
  type Address,
  buildTree,
  commitmentOf,
  type FieldName,
  fieldsOfName,
  type Hex32,
  type Info,
  leafOf,
  type ParentName,
} from "@svc/protocol";
import type { ApiKey, Environment } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { splitHashes } from "../platform/hex.ts";
import * as store from "./check-store.ts";
import type { CredentialsContext } from "./credentials-context.ts";
import { type MatchedLeaf, matchLeaf, openingOf } from "./leaf.ts";

/** Who asks. What it sees depends on the environment of its key and on {@link CredentialsContext.mayAsk}. */
type Requester = Pick<ApiKey, "organizationId" | "environment"> & {
  /** The id of the API key; null if the service itself asks. */
  readonly id: string | null;
};

/** A name in a request: a field, or a parent name, which any one of several fields satisfies. */
export type AskedName = FieldName | ParentName;

export interface Verification {
  /** In the order in which they were asked for. */
  readonly verified: AskedName[];
  readonly unverified: AskedName[];
}

/**
 * Which of the names a user has verified now. Costs one database call, shared with concurrent questions, and that of
 * `mayAsk`. For a requester that may not ask about this user nothing is verified, after the same calls, so that the
 * time does not tell the two cases apart.
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
 * For each triple, in their order, the attested leaf of this user that it opens, or null. Does not check `mayAsk`.
 *
 * @param asked.keyId the key of the merchant that asks; null if the triples come from the user
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
 * Guesses what a wallet may have signed for triples that open no leaf: lists of leaves, each in the order of the
 * triples. A leaf depends on its end, which a triple does not contain. So each list assumes another end among those of
 * the user's leaves of these fields, the latest first; a field without a leaf of that end takes its own latest one, or
 * the assumed one if it never had a leaf. There are always {@link supposedListsTotal} lists, if need be with ends that
 * no leaf has, so that the time does not reveal what the user has or had.
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

/** Those of the leaves that are valid now; one statement for any number of leaves, of any users. */
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

/** Whether stored triples are still valid. For a requester that may not ask about this user all are `UNKNOWN`. */
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

/** What is needed, beside the value and its pepper, to check one field on chain. */
export interface FieldProof<Field extends string = FieldName> {
  readonly field: Field;
  readonly commitment: Hex32;
  readonly expiresAt: number;
  readonly leaf: Hex32;
  readonly root: Hex32;
  readonly proof: readonly Hex32[];
  /** The issuer's identity in the registry. */
  readonly issuer: Address;
  /** The transaction that attested the root. */
  readonly transactionHash: Hex32;
}

/** Proofs of those leaves that were handed over to the requester, newest first. */
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

/** Proofs of attested leaves of a user, newest first. Does not check who may have them. */
export async function proveLeaves<Field extends string = FieldName>(
  ctx: Pick<Ctx, "db">,
  given: { user: Address; environment: Environment; leaves: readonly Hex32[] },
): Promise<FieldProof<Field>[]> {
  const rows = await store.listProofRows<Field>(ctx.db, given);
  // Leaves of one credential share a tree.
  const trees = new Map<Hex32, ReturnType<typeof buildTree>>();
  return rows.map(({ tree, ...row }) => {
    const built = trees.get(row.root) ?? buildTree(splitHashes(tree));
    trees.set(row.root, built);
    return Object.assign(row, { proof: built.proofOf(row.leaf) });
  });
}

function concreteFields(names: readonly AskedName[]): FieldName[] {
  return [...new Set(names.flatMap((name) => fieldsOfName(name)))];
}
