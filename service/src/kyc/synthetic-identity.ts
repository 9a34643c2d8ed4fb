// Persons that the service makes for a sandbox domain: with a key of their own and verified fields (decisions section
// 8).
import { type Address, addressOfPrivateKey, type FieldName, type Info } from "@svc/protocol";
import { acquaint, getDomain } from "../accounts/index.ts";
import {
  collectCredential,
  getBuiltInIssuer,
  issueCredential,
  listOwnCredentials,
} from "../credentials/index.ts";
import type { Ctx } from "../platform/context.ts";
import { Problem } from "../platform/http/problems.ts";
import { placeIn, type SealedColumn } from "../platform/cryptography/seal.ts";
import * as store from "./synthetic-identity-store.ts";

export const syntheticKeyColumn: SealedColumn = {
  table: "synthetic_identity",
  idColumn: "user_address",
  column: "key_sealed",
};

export const syntheticFieldsColumn: SealedColumn = {
  table: "synthetic_identity",
  idColumn: "user_address",
  column: "held_sealed",
};

/** A field as a wallet holds it. */
export interface HeldField extends Info {
  readonly expiresAt: number;
  readonly credentialId: string;
}

/** What the wallet of such a person would have. */
export interface SyntheticUser {
  readonly key: Buffer;
  readonly held: readonly HeldField[];
}

const yearSeconds = 365 * 86_400;

const documents = [
  {
    document: "IDCARD",
    fields: [
      { field: "IDCARD_NAME", data: "Sandra Sandbox" },
      { field: "IDCARD_FIRST_NAME", data: "Sandra" },
      { field: "IDCARD_LAST_NAME", data: "Sandbox" },
      { field: "IDCARD_DOB", data: "1985-01-31" },
      { field: "IDCARD_NATIONALITY", data: "CHE" },
      { field: "IDCARD_COUNTRY", data: "CHE" },
      { field: "IDCARD_DOCUMENT_NUMBER", data: "X0000000" },
    ],
  },
  {
    document: "ADDRESS",
    fields: [
      { field: "ADDRESS_STREET", data: "Teststrasse" },
      { field: "ADDRESS_ZIP_CODE", data: "8000" },
      { field: "ADDRESS_CITY", data: "Zürich" },
      { field: "ADDRESS_COUNTRY", data: "CHE" },
    ],
  },
  {
    document: "CONTACT",
    fields: [
      { field: "EMAIL", data: "sandra@example.com" },
      { field: "PHONE", data: "+41790000000" },
    ],
  },
] as const;

/**
 * Makes an identity with verified fields for a sandbox domain. The fields are valid once a running service has attested
 * them on chain.
 *
 * @throws {Problem} client_domain_not_found, simulation_refused for a live domain
 */
export async function makeSyntheticIdentity(
  ctx: Ctx,
  clientDomainId: string,
  actor: string,
): Promise<{ user: Address; fields: FieldName[]; credentials: string[] }> {
  const domain = await getDomain(ctx, clientDomainId);
  if (domain.environment !== "sandbox") throw new Problem("simulation_refused");
  const key = ctx.random.bytes(32);
  const user = addressOfPrivateKey(key);
  const issuer = await getBuiltInIssuer(ctx, "sandbox", "sandbox");
  const expiresAt = ctx.clock.now() + yearSeconds;
  const credentials: string[] = [];
  for (const { document, fields } of documents)
    credentials.push(
      (await issueCredential(ctx, issuer, { user, document, fields, expiresAt })).id,
    );
  const held = await collectAll(ctx, user);
  const heldSealed = ctx.seal.seal(
    Buffer.from(JSON.stringify(held)),
    placeIn(syntheticFieldsColumn, user),
  );
  const keySealed = ctx.seal.seal(key, placeIn(syntheticKeyColumn, user));
  await ctx.db.transaction(async (tx) => {
    const identity = { user, clientDomainId: domain.id, keySealed, heldSealed };
    const now = ctx.clock.now();
    await store.insertIdentity(tx, identity, now);
    // It never logs in, and except in the profile `dev` an organization may only ask about users who know it.
    await acquaint(tx, { organizationId: domain.organizationId, user, now });
    await ctx.audit.record(tx, { actor, action: "simulate.identity", subject: domain.id });
  });
  return { user, fields: held.map(({ field }) => field), credentials };
}

async function collectAll(ctx: Ctx, user: Address): Promise<HeldField[]> {
  const { items } = await listOwnCredentials(ctx, user, { before: null, limit: documents.length });
  const held = items.flatMap(({ id, fields }) =>
    fields.flatMap(({ field, data, pepper, expiresAt }): HeldField[] =>
      data === undefined || pepper === undefined
        ? []
        : [{ field, data, pepper, expiresAt, credentialId: id }],
    ),
  );
  for (const { id } of items) await collectCredential(ctx, user, id);
  return held;
}

/** Null if the service did not make this identity for this domain. */
export async function findSyntheticUser(
  ctx: Pick<Ctx, "db" | "seal">,
  { user, clientDomainId }: { user: Address; clientDomainId: string },
): Promise<SyntheticUser | null> {
  const identity = await store.findIdentity(ctx.db, user, clientDomainId);
  if (identity === null) return null;
  const held = ctx.seal.open(identity.heldSealed, placeIn(syntheticFieldsColumn, user));
  return {
    key: ctx.seal.open(identity.keySealed, placeIn(syntheticKeyColumn, user)),
    held: JSON.parse(held.toString()) as HeldField[],
  };
}
