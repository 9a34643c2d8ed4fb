import type { AttemptFailure } from "../attempt/attempt.ts";
import type { Locale } from "./page-texts.ts";

type LoginPageState =
  | { readonly kind: "waiting" }
  /** A wallet on the same device has opened it. */
  | { readonly kind: "opened" }
  /** `digits` only if number matching is on; `identity` in its short form. */
  | { readonly kind: "claimed"; readonly digits: string | null; readonly identity: string }
  /** Other members of a business are asked. */
  | { readonly kind: "gathering" }
  | { readonly kind: "approved" }
  /** The code has already been released, through another tab. */
  | { readonly kind: "finished" }
  | { readonly kind: "failed"; readonly failure: AttemptFailure; readonly canRestart: boolean };

/**
 * Everything that the page of a login shows; texts that others wrote are escaped when the page is rendered, not before.
 */
export interface LoginView {
  readonly loginId: string;
  readonly clientName: string;
  /** The verified domain, or null: then the page says in words that nobody has checked it. */
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
  /** The single code is too old to be claimed; a login for a business stays open for longer. */
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
  /**
   * The client accepts no login by QR code (`acr`), so the page shows no code, with which every wallet would be
   * refused.
   */
  readonly isSameDeviceOnly: boolean;
  /** The same request may be started again. */
  readonly canRestart: boolean;
}
