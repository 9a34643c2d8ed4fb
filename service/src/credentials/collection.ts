import { type Address, buildTree, type FieldName, type Hex32 } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import { splitHashes } from "../platform/hex.ts";
import { Problem } from "../platform/http/problems.ts";
import { type CredentialStatus, readValues, statusOfCredential } from "./credential.ts";
import * as store from "./credential-store.ts";
import { placeIn } from "../platform/cryptography/seal.ts";
import { credentialValuesColumn } from "./issue.ts";

/** A credential as its user sees it. */
export interface OwnCredential {
  readonly id: string;
  readonly environment: Environment;
  readonly issuer: { readonly id: Address; readonly name: string };
  readonly document: string;
  readonly status: CredentialStatus;
  readonly issuedAt: number;
  readonly root: Hex32;
  readonly collected: boolean;
  readonly fields: OwnField[];
}

/** A field; its value, pepper and proof only until the wallet has collected them. */
interface OwnField {
  readonly field: FieldName;
  readonly expiresAt: number;
  readonly data?: string;
  readonly pepper?: Hex32;
  readonly proof?: Hex32[];
}

export interface Page<Item> {
  readonly items: Item[];
  readonly nextCursor?: string;
}

/** A page with more values than this ends early, since images are large. */
const pageBytesMax = 8 * 1024 * 1024;

/**
 * A user's credentials, newest first; a page has at least one and at most `limit`, fewer if values are large.
 *
 * @param page.before `nextCursor` of the previous page: the id of its last credential; null for the first page
 */
export async function listOwnCredentials(
  ctx: Pick<Ctx, "db" | "clock" | "seal">,
  user: Address,
  { before, limit }: { before: string | null; limit: number },
): Promise<Page<OwnCredential>> {
  const found = await store.listOwned(ctx.db, user, { before, limit: limit + 1 });
  const uncollected = found.filter((row) => row.collectedAt === null).map(({ id }) => id);
  const sizes = await store.listSealedSizes(ctx.db, uncollected);
  const rows = cutPage(found, { sizes, limit });
  const ids = rows.map(({ id }) => id);
  const leaves = Map.groupBy(await store.listLeaves(ctx.db, ids), (leaf) => leaf.credentialId);
  const sealed = await store.listSealed(ctx.db, ids);
  const now = ctx.clock.now();
  const items = rows.map((row) => {
    const values = sealed.find(({ id }) => id === row.id);
    return {
      id: row.id,
      environment: row.environment,
      issuer: { id: row.issuerAddress, name: row.issuerName },
      document: row.document,
      status: statusOfCredential(row, row, now),
      issuedAt: row.createdAt,
      root: row.root,
      collected: row.collectedAt !== null,
      fields: toFields(ctx, leaves.get(row.id) ?? [], values),
    };
  });
  const last = rows.at(-1);
  return rows.length < found.length && last !== undefined
    ? { items, nextCursor: last.id }
    : { items };
}

function cutPage<Row extends { readonly id: string }>(
  rows: readonly Row[],
  { sizes, limit }: { sizes: readonly { id: string; bytes: number }[]; limit: number },
): Row[] {
  const bytesOf = new Map(sizes.map(({ id, bytes }) => [id, bytes]));
  let total = 0;
  const end = rows.findIndex(({ id }, index) => {
    total += bytesOf.get(id) ?? 0;
    return index === limit || (index > 0 && total > pageBytesMax);
  });
  return rows.slice(0, end === -1 ? rows.length : end);
}

function toFields(
  ctx: Pick<Ctx, "seal">,
  leaves: readonly store.LeafRow[],
  sealed: store.SealedRow | undefined,
): OwnField[] {
  if (sealed === undefined) return leaves.map(({ field, expiresAt }) => ({ field, expiresAt }));
  const values = readValues(
    ctx.seal.open(sealed.valuesSealed, placeIn(credentialValuesColumn, sealed.id)),
  );
  const tree = buildTree(splitHashes(sealed.tree));
  return leaves.map(({ field, expiresAt, leaf }) => {
    const value = values.get(field);
    if (value === undefined) throw new Error("a sealed credential lacks the value of a leaf");
    return { field, expiresAt, data: value.data, pepper: value.pepper, proof: tree.proofOf(leaf) };
  });
}

/** Deletes the values of a credential, which the wallet has stored. @throws {Problem} credential_not_found */
export async function collectCredential(
  ctx: Pick<Ctx, "db" | "clock">,
  user: Address,
  id: string,
): Promise<void> {
  const isFound = await store.collectCredential(ctx.db, { id, user, now: ctx.clock.now() });
  if (!isFound) throw new Problem("credential_not_found");
}
