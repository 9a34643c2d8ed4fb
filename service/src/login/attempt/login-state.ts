import { shortAddress } from "@svc/protocol";
import {
  type Attempt,
  type AttemptFailure,
  errorLocation,
  isTimeOver,
  restartsMax,
} from "./attempt.ts";
import type { LoginContext } from "../login-context.ts";
import { shownDigits } from "./number-matching.ts";

/** The state of an attempt as its page may know it; the status channel carries the same. */
export type LoginState =
  | { readonly kind: "waiting" }
  /** A wallet on the same device has it, and brings the browser back in a page of its own. */
  | { readonly kind: "opened" }
  | {
      readonly kind: "claimed";
      /** Null without number matching. */
      readonly digits: string | null;
      /** In its short form. */
      readonly identity: string;
      /** A second wallet tried to claim. */
      readonly contested: boolean;
    }
  /** Other members of a business are being asked; the page learns neither who, nor how many, nor how they vote. */
  | { readonly kind: "gathering" }
  | { readonly kind: "approved" }
  /** The code was released, through another tab. */
  | { readonly kind: "finished" }
  | {
      readonly kind: "failed";
      readonly failure: AttemptFailure;
      readonly canRestart: boolean;
      readonly location?: string;
    };

/** The state that the page of an attempt is shown now. */
export function stateOf(ctx: LoginContext, attempt: Attempt): LoginState {
  if (attempt.status === "failed") return failedState(ctx, attempt, attempt.failure ?? "expired");
  if (attempt.status === "finished") return { kind: "finished" };
  if (isTimeOver(attempt, ctx.clock.now())) return failedState(ctx, attempt, "expired");
  if (attempt.status === "approved") {
    const isAwaited = attempt.channel === "qr" || attempt.gatheringSince !== null;
    return { kind: isAwaited ? "approved" : "opened" };
  }
  if (attempt.status === "gathering") return { kind: "gathering" };
  if (attempt.status === "waiting") return { kind: "waiting" };
  if (attempt.channel === "app-link") return { kind: "opened" };
  return {
    kind: "claimed",
    digits: shownDigits(attempt),
    identity: attempt.claimedBy === null ? "" : shortAddress(attempt.claimedBy),
    contested: attempt.isContested,
  };
}

function failedState(ctx: LoginContext, attempt: Attempt, failure: AttemptFailure): LoginState {
  const isRefusal = failure === "declined" || failure === "not_started";
  const canRestart = !isRefusal && failure !== "restarted" && attempt.restarts < restartsMax;
  return {
    kind: "failed",
    failure,
    canRestart,
    ...(isRefusal ? { location: backLocation(ctx, attempt) } : {}),
  };
}

/** "Back to the client": the login is given up (RFC 6749 section 4.1.2.1). */
export function backLocation(ctx: LoginContext, attempt: Attempt): string {
  return errorLocation(attempt.request, ctx.config.baseUrl, {
    code: "access_denied",
    description: "the login was not approved",
  });
}
