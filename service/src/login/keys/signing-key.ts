import type { Client } from "../../accounts/index.ts";
import type { ScheduledKey } from "../../platform/cryptography/key-schedule.ts";
import type { JwtKey } from "./jwt.ts";

/** The purposes of keys. Wallet keys are never published together with login keys (decisions section 3). */
export const keyPurposes = ["login-rs256", "login-es256", "wallet-es256"] as const;

export type KeyPurpose = (typeof keyPurposes)[number];
export type KeySetName = "login" | "wallet";

export interface SigningKey extends JwtKey, ScheduledKey {
  readonly purpose: KeyPurpose;
  readonly publicJwk: Readonly<Record<string, string>>;
}

export function algorithmOf(purpose: KeyPurpose): "RS256" | "ES256" {
  return purpose === "login-rs256" ? "RS256" : "ES256";
}

export function keySetOf(purpose: KeyPurpose): KeySetName {
  return purpose === "wallet-es256" ? "wallet" : "login";
}

/** The purpose of the keys that sign a client's id and logout tokens. */
export function purposeFor({ idTokenAlgorithm }: Client): KeyPurpose {
  return idTokenAlgorithm === "ES256" ? "login-es256" : "login-rs256";
}

/** The keys of one purpose. */
export function keysOf<K extends Pick<SigningKey, "purpose">>(
  keys: readonly K[],
  purpose: KeyPurpose,
): K[] {
  return keys.filter((key) => key.purpose === purpose);
}
