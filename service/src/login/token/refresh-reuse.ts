// Reuse detection for refresh tokens (RFC 9700 section 4.14.2). Pure.
import { equalBytes } from "../../platform/cryptography/mac.ts";
import type { RefreshToken } from "./refresh-token.ts";
import type { RefreshRow } from "./token-store.ts";

/**
 * What the use of a genuine refresh token means. `repeated`: it was replaced last, within the grace, and comes with the
 * same key, so our answer was probably lost. `reused`: two parties hold tokens of its family.
 */
export type RefreshUse = "newest" | "repeated" | "reused";

/** @param call.graceMs for how long the previous token may be repeated */
export function judgeRefreshUse(
  family: Pick<RefreshRow, "refreshSha256" | "previousSha256" | "rotatedAtMs" | "dpopJkt">,
  token: Pick<RefreshToken, "sha256">,
  call: { readonly dpopJkt: string | null; readonly nowMs: number; readonly graceMs: number },
): RefreshUse {
  const { refreshSha256, previousSha256, rotatedAtMs, dpopJkt } = family;
  if (refreshSha256 !== null && equalBytes(refreshSha256, token.sha256)) return "newest";
  if (previousSha256 === null || rotatedAtMs === null) return "reused";
  const isLast = equalBytes(previousSha256, token.sha256);
  const isRecent = call.nowMs - rotatedAtMs < call.graceMs;
  return isLast && isRecent && dpopJkt === call.dpopJkt ? "repeated" : "reused";
}
