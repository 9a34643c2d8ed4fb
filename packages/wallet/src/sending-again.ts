import { WalletRefusal } from "./refusal.ts";
import type { CallAnswer } from "./transport.ts";

const pausesMs = [1000, 2000, 4000];
/** The person waits, and a call that hung, or was refused slowly, has used up what there is. */
const withinMs = 15_000;

/**
 * Sends the same bytes again to a broker that cannot take them now (503), or gives no answer, four times in all. It may
 * have taken them all the same, and then gives the same answer; whoever begins anew is told that it is over.
 *
 * @param send a call whose repetition means nothing new to the broker
 * @throws {WalletRefusal} as `send` does
 */
export async function sendAgain(send: () => Promise<CallAnswer>): Promise<CallAnswer> {
  const endMs = performance.now() + withinMs;
  const isInTime = (): boolean => performance.now() < endMs;
  for (const ms of pausesMs) {
    const answer = await send().catch((error: unknown) => {
      // A redirect has no cause, and stays one.
      const isBroken = error instanceof WalletRefusal && error.cause !== undefined;
      if (isBroken && isInTime()) return null;
      throw error;
    });
    if (answer !== null && (answer.status !== 503 || !isInTime())) return answer;
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
  return send();
}
