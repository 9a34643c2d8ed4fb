import type { WalletContext } from "./context.ts";
import { receiveCredentials, type Collection } from "./receive.ts";
import { WalletRefusal } from "./refusal.ts";
import { membersOf, refusalOfAnswer } from "./transport.ts";

/** A code is on its way to an address. */
export interface EmailVerification {
  readonly verificationId: string;
  /** Origin of the broker that sent it. */
  readonly broker: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** Has a code sent to an address. @throws {WalletRefusal} broker_refused, unreachable, unsupported */
export async function addEmail(ctx: WalletContext, email: string): Promise<EmailVerification> {
  const broker = await getFirstBroker(ctx);
  const path = "/w/emails";
  const answer = await ctx.sessions.call(broker, { path, body: { email } });
  const { verificationId, expiresAt } = membersOf(answer.text);
  if (answer.status !== 202 || typeof verificationId !== "string" || typeof expiresAt !== "number")
    throw refusalOfAnswer(`${broker}${path}`, answer);
  return { verificationId, broker, expiresAt };
}

/** Sends the code back and collects the credential. @throws {WalletRefusal} broker_refused (wrong code), unreachable */
export async function confirmEmail(
  ctx: WalletContext,
  { verificationId, code }: { verificationId: string; code: string },
): Promise<Collection & { readonly credentialId: string }> {
  const broker = await getFirstBroker(ctx);
  const path = `/w/emails/${encodeURIComponent(verificationId)}`;
  const answer = await ctx.sessions.call(broker, { path, body: { code } });
  const { credentialId } = membersOf(answer.text);
  if (answer.status !== 200 || typeof credentialId !== "string")
    throw refusalOfAnswer(`${broker}${path}`, answer);
  return { credentialId, ...(await receiveCredentials(ctx, broker)) };
}

async function getFirstBroker(ctx: WalletContext): Promise<string> {
  const [broker] = await ctx.brokers();
  if (broker === undefined)
    throw new WalletRefusal("unsupported", "this wallet knows no broker that could verify it");
  return broker;
}
