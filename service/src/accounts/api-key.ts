import { crc32 } from "node:zlib";
import type { Environment } from "./client-domain.ts";
import type { Entitlement } from "./entitlement.ts";
import type { OrganizationLimits } from "./organization-limits.ts";

/**
 * `live` and `test` keys serve the KYC and KYB API of one client domain, `issuer` keys issue credentials in the name of
 * one issuer. `mgmt` keys belong to one organization, and no route takes one yet.
 */
export type ApiKeyKind = "live" | "test" | "mgmt" | "issuer";

/** A key that was presented and found genuine: who is calling, and for which client domain. */
export interface ApiKey {
  readonly id: string;
  readonly organizationId: string;
  readonly clientDomainId: string;
  readonly domain: string;
  /** Whether the domain is verified at this moment. */
  readonly verified: boolean;
  readonly environment: Environment;
  /** The entitlements of the organization; always includes `kyb:read`. */
  readonly entitlements: ReadonlySet<Entitlement>;
  readonly limits: Pick<OrganizationLimits, "readsPerSecond" | "createsPerSecond">;
}

/** A management key that was presented and found genuine. */
export interface ManagementKey {
  readonly id: string;
  readonly organizationId: string;
}

/** The text of a key, parsed. Nothing has been checked but its form. */
export interface ApiKeyText {
  readonly kind: ApiKeyKind;
  readonly id: string;
  /** The whole text, which the MAC covers. */
  readonly text: string;
}

const kinds: readonly ApiKeyKind[] = ["live", "test", "mgmt", "issuer"];
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const idLength = 12;
/** 43 characters of 62 hold 256 bits. */
const secretLength = 43;
const checksumLength = 6;

/**
 * Writes a new key: `svc_<kind>_<id>_<secret><checksum>`. The checksum is the CRC-32 of everything before it, as 6
 * digits of base 62: typing errors are detected, and secret scanners can tell keys from look-alikes, without asking the
 * service.
 *
 * @param below uniform in [0, bound)
 */
export function makeApiKey(kind: ApiKeyKind, below: (bound: number) => number): ApiKeyText {
  const draw = (length: number): string =>
    Array.from({ length }, () => alphabet.charAt(below(alphabet.length))).join("");
  const id = draw(idLength);
  const unsigned = `svc_${kind}_${id}_${draw(secretLength)}`;
  return { kind, id, text: unsigned + checksumOf(unsigned) };
}

/** Reads a key; null if it has another form or its checksum is wrong. */
export function parseApiKey(text: string): ApiKeyText | null {
  const match = /^svc_(live|test|mgmt|issuer)_([0-9A-Za-z]{12})_[0-9A-Za-z]{49}$/.exec(text);
  const kind = kinds.find((each) => each === match?.[1]);
  const id = match?.[2];
  if (id === undefined || kind === undefined) return null;
  const unsigned = text.slice(0, -checksumLength);
  return checksumOf(unsigned) === text.slice(-checksumLength) ? { kind, id, text } : null;
}

/** Whether a text looks like one of our keys, whole or damaged. */
export function looksLikeApiKey(text: string): boolean {
  return /svc_(?:live|test|mgmt|issuer)_/i.test(text);
}

export function kindOf(environment: Environment): "live" | "test" {
  return environment === "live" ? "live" : "test";
}

function checksumOf(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let at = 0; at < checksumLength; at += 1) {
    digits = alphabet.charAt(rest % alphabet.length) + digits;
    rest = Math.floor(rest / alphabet.length);
  }
  return digits;
}
