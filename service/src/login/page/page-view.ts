import type { AttemptFailure } from "../attempt/attempt.ts";
import type { Locale } from "./page-texts.ts";

type LoginPageState =
  | { readonly kind: "waiting" }
  /** A wallet on the same device has it. */
  | { readonly kind: "opened" }
  /** `digits` only where number matching is on; `identity` in its short form. */
  | { readonly kind: "claimed"; readonly digits: string | null; readonly identity: string }
  /** Other members of a business are asked. */
  | { readonly kind: "gathering" }
  | { readonly kind: "approved" }
  /** The code was released already, through another tab. */
  | { readonly kind: "finished" }
  | { readonly kind: "failed"; readonly failure: AttemptFailure; readonly canRestart: boolean };

/** Everything the page of one login shows; texts of others are escaped here, not before. */
export interface LoginView {
  readonly loginId: string;
  readonly clientName: string;
  /** Verified, or null: then the page says in words that nobody checked. */
  readonly clientDomain: string | null;
  readonly scopes: readonly string[];
  readonly locale: Locale;
  readonly nowMs: number;
  /** Unix seconds. */
  readonly expiresAt: number;
  /** `BASE_URL` without a slash at its end. */
  readonly base: string;
  /** One code for the whole login instead of a new one every step (decisions section 2, rule 8). */
  readonly isStatic: boolean;
  /** The one code is older than a wallet's claim with it may be; a login for a business stays open for longer. */
  readonly isCodeOver: boolean;
  /** Step of `macs[0]`; the others follow. A static code has one mac, of step 0. */
  readonly firstStep: number;
  readonly macs: readonly string[];
  readonly sameDeviceLink: string;
  readonly state: LoginPageState;
  /** A second wallet tried to claim. */
  readonly contested: boolean;
  /** The client's redirect URI with `error=access_denied`. */
  readonly backUrl: string;
  readonly isBusiness: boolean;
  /** The client takes no login by QR code (`acr`): the page shows no code that every wallet would be refused on. */
  readonly isSameDeviceOnly: boolean;
  /** The same request may be started again. */
  readonly canRestart: boolean;
}
