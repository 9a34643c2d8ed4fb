import {
  declineDigest,
  type Address,
  type Hex,
  type Link,
  type RefusalReason,
} from "@svc/protocol";
import type { WalletContext } from "./context.ts";
import type { Declining, SentRefusal } from "./request.ts";
import { WalletRefusal } from "./refusal.ts";
import { connectionOf, findBroker } from "./requester.ts";

/** The signed part of a refusal: who declines what (decisions, section 3, "Refusal and failure"). */
export async function signDecline(
  ctx: WalletContext,
  message: { request: string; connection: string },
): Promise<{ svcID: Address; signature: Hex }> {
  const { identity } = ctx;
  return { svcID: identity.address, signature: await identity.sign(declineDigest(message)) };
}

/**
 * Makes the refusal of a link that has no session. It is signed if it is only shown, if it goes to a broker, where only
 * signed refusals count, and if the person wants that for an unknown requester.
 *
 * @param refusal.request the id that the requester gave it; empty if it has none. With neither an id nor a connection
 * it is not signed: a signature that names nothing would count for every such link.
 */
export async function refuseLink(
  ctx: WalletContext,
  link: Exclude<Link, { action: "login" }>,
  refusal: { error: RefusalReason; request: string; declining: Declining },
): Promise<SentRefusal> {
  const { error, request, declining } = refusal;
  const connection = connectionOf(link);
  const id = request === "" ? {} : { id: request };
  const isNamed = request !== "" || connection !== undefined;
  const maySign =
    declining.signed || connection === undefined || (await findBroker(ctx, link)) !== null;
  if (!isNamed || !maySign) return { error, ...id };
  const signed = await signDecline(ctx, { request, connection: connection ?? "" });
  return { error, ...id, ...signed };
}

/** @throws {WalletRefusal} expired if the deadline of the link has passed */
export async function refuseLate(ctx: WalletContext, link: Link): Promise<void> {
  if (await isLate(ctx, link))
    throw new WalletRefusal("expired", "the deadline of the link has passed");
}

/** Whether the deadline of the link has passed. */
export async function isLate(ctx: WalletContext, link: Link): Promise<boolean> {
  const deadline = "deadline" in link ? link.deadline : undefined;
  return deadline !== undefined && (await ctx.now()) > deadline;
}
