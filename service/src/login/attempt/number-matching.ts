// Number matching: the page shows two digits, and the user types them into the wallet (decisions section 2, the QR page, rule 4).
import type { Client } from "../../accounts/index.ts";
import { equalBytes } from "../../platform/cryptography/mac.ts";
import type { Random } from "../../platform/context.ts";
import { Problem } from "../../platform/http/problems.ts";
import type { Attempt, Channel } from "./attempt.ts";
import { claimTermsOf } from "./request-object.ts";

/**
 * Whether the wallet that claims has to send the digits. Always with a code that does not rotate; never on the same
 * device, where the browser itself brings the answer.
 */
export function needsNumber(
  client: Pick<Client, "numberMatching">,
  { channel, isStatic }: { channel: Channel; isStatic: boolean },
): boolean {
  return channel === "qr" && (client.numberMatching || isStatic);
}

/** Two digits for a login that was just claimed. */
export function drawDigits(random: Pick<Random, "below">): string {
  return String(random.below(100)).padStart(2, "0");
}

/** The digits that the page shows; null where the wallet was not told to ask for them. */
export function shownDigits(attempt: Attempt): string | null {
  return claimTermsOf(attempt).numberMatching ? attempt.digits : null;
}

/**
 * Checks that an answer has a number where its wallet was told to ask for one, and none elsewhere.
 *
 * @param code empty for none
 * @throws {Problem} number_required, signature_wrong
 */
export function checkNumberGiven(attempt: Attempt, code: string): void {
  const isNeeded = claimTermsOf(attempt).numberMatching;
  if (isNeeded && code === "") throw new Problem("number_required");
  if (!isNeeded) refuseNumber(code);
}

/** @throws {Problem} signature_wrong, since the digits are a part of what is signed */
export function refuseNumber(code: string): void {
  if (code !== "") throw new Problem("signature_wrong", { message: "this login takes no number" });
}

/** Whether the digits are those of the page; so they are where none are needed. */
export function isNumberRight(attempt: Attempt, code: string): boolean {
  const digits = shownDigits(attempt) ?? "";
  return equalBytes(Buffer.from(code), Buffer.from(digits));
}
