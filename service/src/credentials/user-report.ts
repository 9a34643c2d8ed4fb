import type { Address } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import { type CredentialStatus, statusOfCredential } from "./credential.ts";
import { listLeaves, listOwned } from "./credential-store.ts";
import { type KeptLookup, listLookupsOf } from "./lookup-store.ts";
import { type KeptVerification, listVerificationsOf } from "./user-report-store.ts";

/** A credential without its values. Times are Unix seconds. */
interface KeptCredential {
  readonly id: string;
  readonly environment: string;
  readonly issuer: string;
  readonly document: string;
  readonly status: CredentialStatus;
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** Whether the wallet has collected the values, which are then deleted here. */
  readonly isCollected: boolean;
  readonly fields: readonly string[];
}

/** What is stored about a user's verified fields; each list newest first. */
export interface CredentialReport {
  readonly credentials: readonly KeptCredential[];
  readonly emailVerifications: readonly KeptVerification[];
  /** Which API keys asked about the user. */
  readonly lookups: readonly KeptLookup[];
}

/** @param limit the most of each list */
export async function reportCredentials(
  { db, clock }: Pick<Ctx, "db" | "clock">,
  user: Address,
  limit: number,
): Promise<CredentialReport> {
  const rows = await listOwned(db, user, { before: null, limit });
  const ids = rows.map(({ id }) => id);
  const leaves = Map.groupBy(await listLeaves(db, ids), ({ credentialId }) => credentialId);
  const credentials = rows.map((row) => ({
    id: row.id,
    environment: row.environment,
    issuer: row.issuerName,
    document: row.document,
    status: statusOfCredential(row, row, clock.now()),
    issuedAt: row.createdAt,
    expiresAt: row.expiresAt,
    isCollected: row.collectedAt !== null,
    fields: (leaves.get(row.id) ?? []).map(({ field }) => field),
  }));
  return {
    credentials,
    emailVerifications: await listVerificationsOf(db, user, limit),
    lookups: await listLookupsOf(db, user, limit),
  };
}
