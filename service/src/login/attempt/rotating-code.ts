// The code on the login page, a new one every four seconds (decisions section 2, the QR page, rule 2). Pure.
import { hkdfSync, type KeyObject } from "node:crypto";
import type { LoginSession } from "@svc/protocol";
import { equalBytes } from "../../platform/cryptography/mac.ts";
import type { Attempt } from "./attempt.ts";

const stepSeconds = 4;
/** The step of a code that does not rotate, which a page without JavaScript shows. */
const staticStep = 0;

/** The step of a moment, Unix seconds. */
export function stepAt(now: number): number {
  return Math.floor(now / stepSeconds);
}

const macBytes = 16;
/** A page shows about 31 steps; deriving the macs of a group at once costs a quarter of deriving them one by one. */
const stepsPerGroup = 32;

/**
 * The macs of a group of steps: HKDF-SHA256 (RFC 5869: HMAC-SHA256 over login and steps), 128 bits for each step. Without
 * the installation's key nobody can make the next one.
 */
function groupMacs(key: KeyObject, loginId: string, group: number): Buffer {
  return Buffer.from(hkdfSync("sha256", key, loginId, `steps ${group}`, stepsPerGroup * macBytes));
}

function stepMac(key: KeyObject, loginId: string, step: number): string {
  return macAt(groupMacs(key, loginId, Math.floor(step / stepsPerGroup)), step);
}

function macAt(macs: Buffer, step: number): string {
  const at = (step % stepsPerGroup) * macBytes;
  return macs.toString("base64url", at, at + macBytes);
}

/** The steps that the page of a login may show, from `firstStep` on, and their macs in that order. */
export function pageSteps(
  key: KeyObject,
  attempt: Pick<Attempt, "id" | "isStatic" | "createdAt" | "expiresAt">,
): { firstStep: number; macs: string[] } {
  if (attempt.isStatic)
    return { firstStep: staticStep, macs: [stepMac(key, attempt.id, staticStep)] };
  const firstStep = stepAt(attempt.createdAt);
  const lastStep = stepAt(attempt.expiresAt);
  const macs: string[] = [];
  let group = groupMacs(key, attempt.id, Math.floor(firstStep / stepsPerGroup));
  for (let step = firstStep; step <= lastStep; step += 1) {
    if (step > firstStep && step % stepsPerGroup === 0)
      group = groupMacs(key, attempt.id, step / stepsPerGroup);
    macs.push(macAt(group, step));
  }
  return { firstStep, macs };
}

export type SessionFault = "forged" | "stale";

/**
 * The clocks of two processes may be 4 s apart (`skewLimitMs`), so a page may have got a clock that is a step ahead of
 * ours.
 */
const stepsAheadMax = 1;

/**
 * Judges the code that a wallet scanned: the mac must be ours, and the step the current one or a neighbour of it.
 *
 * @returns `static` for the code of a page without JavaScript, which does not rotate
 */
export function judgeSession(
  key: KeyObject,
  session: LoginSession,
  now: number,
): SessionFault | "rolling" | "static" {
  const expected = Buffer.from(stepMac(key, session.loginId, session.step));
  if (!equalBytes(expected, Buffer.from(session.mac))) return "forged";
  if (session.step === staticStep) return "static";
  const age = stepAt(now) - session.step;
  return age >= -stepsAheadMax && age <= 1 ? "rolling" : "stale";
}
