import type { Address, BusinessPart } from "@svc/protocol";
import type { Acr, Client } from "../../accounts/index.ts";
import { readAddress } from "../../platform/http/address-input.ts";
import { Problem } from "../../platform/http/problems.ts";
import { signatureWrong } from "../../platform/http/wrong-signature.ts";
import {
  approvalTimes,
  type Approved,
  businessPartOf,
  decide,
  isSignedBy,
  isSignedWithoutClaim,
} from "./approve.ts";
import { connectionOf, isTimeOver } from "./attempt.ts";
import * as store from "./attempt-store.ts";
import type { BrowserCall } from "./new-attempt.ts";
import { getBrowserAttempt, isStartedBy } from "./browser-attempt.ts";
import { refuseUnfit } from "./claim.ts";
import { getClient, readAttempt } from "./read-attempt.ts";
import { endAttempt } from "./end-attempt.ts";
import { announceLogin } from "./login-feed.ts";
import type { LoginContext } from "../login-context.ts";
import { backLocation } from "./login-state.ts";

/** The wallet's answer in the link that returns on the same device (decisions section 2, the QR page, rule 6). */
export interface Returned {
  readonly session: string;
  readonly svcID: string;
  readonly signature: string;
  readonly business: BusinessPart | undefined;
}

/**
 * Reads and consumes the wallet's answer on the same device. A repeat leads on again, until the code is released. A
 * valid answer that arrives in another browser ends the login.
 *
 * @throws {Problem} invalid_request, login_not_found, other_browser, wrong_channel, signature_wrong, login_over,
 * identity_refused, acr_unmet, and for a business not_claimed and what `approveForBusiness` throws
 */
export async function returnOnSameDevice(
  ctx: LoginContext,
  loginId: string,
  { returned, browser }: { returned: Returned; browser: BrowserCall },
): Promise<Approved> {
  const user = readAddress("svcID", returned.svcID);
  if (returned.session !== loginId) throw new Problem("login_not_found");
  const attempt = await readAttempt(ctx, loginId);
  const client = await getClient(ctx, attempt);
  if (attempt.channel === "qr") throw new Problem("wrong_channel");
  // Checked before a contract is asked about a signature, so that an attempt that is over costs nothing.
  const isOver = attempt.status === "finished" || attempt.status === "failed";
  if (isOver || isTimeOver(attempt, ctx.clock.now())) throw new Problem("login_over");
  const connection = connectionOf(ctx.config.baseUrl, "app-link", loginId);
  const part = businessPartOf(attempt, returned.business);
  const isClaimed = attempt.claimedBy === user && attempt.requestObject !== null;
  if (part !== null && !isClaimed) throw new Problem("not_claimed");
  const signed = { user, signature: returned.signature, callerAddress: browser.address };
  const isValid = isClaimed
    ? await isSignedBy(ctx, { ...signed, attempt, code: "" })
    : await isSignedWithoutClaim(ctx, { ...signed, loginId, session: loginId, connection });
  if (!isValid) throw signatureWrong(returned.signature);
  if (!isStartedBy(ctx, attempt, browser)) {
    await endAttempt(ctx, attempt, "other_browser");
    throw new Problem("other_browser");
  }
  const acr = "urn:svc:acr:same-device" as const;
  refuseUnfit(attempt, { user, acr });
  const outcome = isClaimed
    ? await decide(ctx, { attempt, client, user, part })
    : await approveAtOnce(ctx, { loginId, user, client, connection, acr });
  ctx.recent.forget(loginId);
  return outcome ?? repeatReturn(ctx, loginId, user);
}

/** Another call was faster: if the browser sent the same answer twice, it goes where the first one led. */
async function repeatReturn(ctx: LoginContext, loginId: string, user: Address): Promise<Approved> {
  const { status, channel, claimedBy } = await readAttempt(ctx, loginId);
  const isOurs =
    (status === "gathering" || status === "approved") &&
    channel === "app-link" &&
    claimedBy === user;
  if (!isOurs) throw new Problem("login_over");
  return status === "gathering" ? "waiting" : "approved";
}

/** Claim and approval in one, for a wallet that did not claim first. */
async function approveAtOnce(
  ctx: LoginContext,
  given: { loginId: string; user: Address; client: Client; connection: string; acr: Acr },
): Promise<Approved | null> {
  const { loginId, client, ...approval } = given;
  const isApproved = await store.approveUnclaimed(ctx.db, loginId, {
    ...approval,
    organizationId: client.organizationId,
    channel: "app-link",
    sessionText: loginId,
    ...approvalTimes(ctx),
  });
  if (!isApproved) return null;
  announceLogin(ctx, loginId, { isApproved: false });
  return "approved";
}

/**
 * The wallet's refusal on the same device; only the browser that began the login can end it in this way.
 *
 * @returns where to go
 */
export async function refuseOnSameDevice(
  ctx: LoginContext,
  loginId: string,
  browser: BrowserCall,
): Promise<string> {
  const { attempt } = await getBrowserAttempt(ctx, loginId, browser);
  if (attempt.channel === "qr") throw new Problem("wrong_channel");
  await endAttempt(ctx, attempt, "declined");
  return backLocation(ctx, attempt);
}
