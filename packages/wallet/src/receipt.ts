import { parseReceipt, type Receipt } from "@svc/protocol";
import { askInTurn } from "./asking-brokers.ts";
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import { membersOf, refusalOfAnswer } from "./transport.ts";

/**
 * The settlement receipt of a request that this identity approved: what it consented to, and that this is on chain. To
 * be sure, compare it with the chain; the wallet only reads it.
 *
 * @param id the `referenceKey`, as the history has it
 * @throws {WalletRefusal} not_found before the order is settled, and for somebody else's order; broker_refused,
 * unreachable
 */
export async function fetchReceipt(ctx: WalletContext, id: string): Promise<Receipt> {
  const { found, unasked } = await askInTurn(ctx, async (broker) => {
    const path = `/w/orders/${encodeURIComponent(id)}/receipt`;
    const answer = await ctx.sessions.call(broker, { path });
    if (answer.status === 404) return null;
    if (answer.status !== 200) throw refusalOfAnswer(`${broker}${path}`, answer);
    const receipt = parseReceipt(membersOf(answer.text));
    if ("fault" in receipt)
      throw new WalletRefusal("broker_refused", `${broker} sent an invalid receipt`);
    if (receipt.referenceKey === id && receipt.user === ctx.identity.address) return receipt;
    throw new WalletRefusal(
      "broker_refused",
      `${broker} sent a receipt other than the one asked for`,
    );
  });
  if (found !== null) return found;
  throw unasked ?? new WalletRefusal("not_found", `there is no receipt of ${id} for this identity`);
}
