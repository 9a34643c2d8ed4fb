import type { Address } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import type { Profile } from "../platform/config/config.ts";

/** `api`: a third party with its own keys. The other kinds are built in, at most one for each environment. */
type IssuerKind = "api" | BuiltInKind;
export type BuiltInKind = "email" | "sandbox" | "demo";

/** Who verifies documents and issues credentials. */
export interface Issuer {
  readonly id: string;
  readonly kind: IssuerKind;
  /** Shown to users beside their credentials. */
  readonly name: string;
  /** Its identity in the registry on chain. */
  readonly address: Address;
  readonly environment: Environment;
  readonly createdAt: number;
  /** Since when the operator's account may attest in its name; null until that is final on chain. */
  readonly roleGrantedAt: number | null;
  /** Anything attested at or after this time is invalid; null for a trusted issuer. */
  readonly distrustedFrom: number | null;
}

/** An issuer that is part of the service. */
export interface BuiltInIssuer {
  readonly kind: BuiltInKind;
  readonly environment: Environment;
  readonly name: string;
}

/** The issuers for e-mail addresses, and the one for synthetic users of the sandbox. */
const everywhere: readonly BuiltInIssuer[] = [
  { kind: "email", environment: "live", name: "E-mail verification" },
  { kind: "email", environment: "sandbox", name: "E-mail verification (sandbox)" },
  { kind: "sandbox", environment: "sandbox", name: "Sandbox issuer" },
];

/** The demo issuer vouches for anything on the live side, so it exists only in `dev`. */
export function builtInIssuers(profile: Profile): readonly BuiltInIssuer[] {
  if (profile === "production") return everywhere;
  return [...everywhere, { kind: "demo", environment: "live", name: "Demo issuer" }];
}

/** Whether an issuer may issue now: what it attests after its distrust is invalid. */
export function isTrusted(
  { distrustedFrom }: Pick<Issuer, "distrustedFrom">,
  now: number,
): boolean {
  return distrustedFrom === null || now < distrustedFrom;
}
