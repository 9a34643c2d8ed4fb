import { declineDigest, type Address, type Hex } from "@svc/protocol";
import type { WalletContext } from "./context.ts";

/** The signed part of a refusal: who declines what (decisions, section 3, "Refusal and failure"). */
export async function signDecline(
  ctx: WalletContext,
  message: { request: string; connection: string },
): Promise<{ svcID: Address; signature: Hex }> {
  const { identity } = ctx;
  return { svcID: identity.address, signature: await identity.sign(declineDigest(message)) };
}
