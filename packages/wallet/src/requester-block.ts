import type { WalletContext } from "./context.ts";
import type { KeptBusiness } from "./keep.ts";
import { refusalOfAnswer } from "./transport.ts";

/** Which organization a business takes no more requests of, or takes them of again. */
export interface RequesterBlock {
  /** A request of that organization to the business, open or ended. */
  readonly requestId: string;
  readonly isBlocked: boolean;
}

/** Has a business take no more requests of whoever made this one. @throws {WalletRefusal} broker_refused */
export async function blockRequester(
  ctx: WalletContext,
  { address, broker }: KeptBusiness,
  { requestId, isBlocked }: RequesterBlock,
): Promise<void> {
  const path = `/w/businesses/${address}/block`;
  const answer = await ctx.sessions.call(broker, { path, body: { requestId, isBlocked } });
  if (answer.status !== 200) throw refusalOfAnswer(`${broker}${path}`, answer);
}
