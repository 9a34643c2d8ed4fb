import { parseAddress, type Address, type Hex32 } from "@svc/protocol";

import type { ChainView, RootStatus } from "./chain-view.ts";
import { misconfigured, type MerchantError } from "./merchant-error.ts";

/** How far a block's time may be ahead of your clock. */
const skewSeconds = 300;

/**
 * The state of a field at `now`: it counts, it has expired, its issuer or user revoked it, or its issuer was
 * distrusted.
 */
export type Standing = "LIVE" | "EXPIRED" | "REVOKED" | "DISTRUSTED";

/** A field whose document one of your issuers attested. */
export interface AttestedField {
  field: string;
  issuer: Address;
  /** Of the document. */
  root: Hex32;
  /** Unix seconds. */
  expiresAt: number;
  attestedAt: number;
  /** Zero: never. */
  revokedAt: number;
  standing: Standing;
}

type Named = Pick<AttestedField, "field" | "issuer" | "root" | "expiresAt">;

interface JudgeOptions {
  registry: Address;
  issuers: ReadonlySet<Address>;
  now: number;
  /** Makes the error for a member of the field at this place. */
  fault: (index: number, member: string) => MerchantError;
}

/**
 * Asks the registry about the documents of fields: each must come from a listed issuer and be attested.
 *
 * @throws {MerchantError} the error that `fault` makes for issuer, registry or root; chain_unreachable
 */
export async function judgeFields(
  view: ChainView,
  fields: readonly Named[],
  options: JudgeOptions,
): Promise<AttestedField[]> {
  const { registry, issuers, now, fault } = options;
  for (const [index, { issuer }] of fields.entries())
    if (!issuers.has(issuer)) throw fault(index, "issuer");
  const asked = new Map<string, Promise<RootStatus | null>>();
  const statusOf = async ({ issuer, root }: Named): Promise<RootStatus | null> => {
    const key = issuer + root;
    const status = asked.get(key) ?? view.findStatus(registry, { issuer, root });
    asked.set(key, status);
    return status;
  };
  const statuses = await Promise.all(fields.map(statusOf));
  return fields.map(({ field, issuer, root, expiresAt }, index) => {
    const status = statuses[index] ?? null;
    if (status === null) throw fault(index, "registry");
    const { attestedAt, revokedAt } = status;
    if (attestedAt === 0 || isAhead(attestedAt, now)) throw fault(index, "root");
    const standing = standingOf(status, { expiresAt, now });
    return { field, issuer, root, expiresAt, attestedAt, revokedAt, standing };
  });
}

/** Whether a block's time is impossible by your clock. */
export function isAhead(time: number, now: number): boolean {
  return time > now + skewSeconds;
}

/** Reads an address from the caller's own records. @throws {MerchantError} configuration_invalid with reason `name` */
export function readAnchor(name: string, text: string): Address {
  const address = parseAddress(text);
  if (address === null) throw misconfigured(name);
  return address;
}

/** Reads the issuers that the caller trusts. @throws {MerchantError} configuration_invalid */
export function readIssuers(issuers: readonly string[]): ReadonlySet<Address> {
  return new Set(issuers.map((issuer) => readAnchor("issuers", issuer)));
}

function standingOf(
  { attestedAt, revokedAt, distrustedFrom }: RootStatus,
  { expiresAt, now }: { expiresAt: number; now: number },
): Standing {
  if (revokedAt !== 0) return "REVOKED";
  if (distrustedFrom !== 0 && attestedAt >= distrustedFrom) return "DISTRUSTED";
  return expiresAt > now ? "LIVE" : "EXPIRED";
}
