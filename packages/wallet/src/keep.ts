import { keepDigest, type Address } from "@svc/protocol";
import { chainIdOf, readBusiness } from "./business-wallet.ts";
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";

/** A business, and the broker that has it. */
export interface KeptBusiness {
  readonly address: Address;
  readonly broker: string;
}

/**
 * Ends the removal of this identity, or else a move of the business by the operator: it shows that this member is still
 * there.
 *
 * @returns what ended
 * @throws {WalletRefusal} not_found if there is neither, broker_refused
 */
export async function keepMembership(
  ctx: WalletContext,
  business: KeptBusiness & { readonly move: Readonly<Record<string, unknown>> | null },
): Promise<{ ended: string }> {
  if (await endRemoval(ctx, business)) return { ended: "removal" };
  const nonce = business.move?.["keepNonce"];
  if (typeof nonce !== "number" || !Number.isSafeInteger(nonce) || nonce < 0)
    throw new WalletRefusal("not_found", "there is no removal of this identity, and no move");
  await sendKeep(ctx, business, nonce);
  return { ended: "move" };
}

/**
 * Ends the removal of this identity, by the number that it has on chain.
 *
 * @returns false if there is none on chain
 * @throws {WalletRefusal} broker_refused
 */
export async function endRemoval(ctx: WalletContext, business: KeptBusiness): Promise<boolean> {
  const { removal } = await readBusiness(ctx, business.broker, business.address);
  if (removal?.member !== ctx.identity.address) return false;
  await sendKeep(ctx, business, removal.keepNonce);
  return true;
}

async function sendKeep(
  ctx: WalletContext,
  { broker, address }: KeptBusiness,
  nonce: number,
): Promise<void> {
  const chainId = await chainIdOf(ctx, broker);
  const signature = await ctx.identity.sign(keepDigest({ chainId, business: address, nonce }));
  const path = `/w/businesses/${address}/keep`;
  await ctx.sessions.ask(broker, { path, body: { signature } });
}
