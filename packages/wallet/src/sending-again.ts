import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import { call, hostOf, type Call, type CallAnswer } from "./transport.ts";

/** Three times in all: of four wrong answers to a request whose own answers were all lost, the broker would end it. */
const pausesMs = [1000, 5000];
/** The person waits, and a call that hung has used up what there is: this is less than a call waits for its answer. */
const withinMs = 14_000;

/** What a gateway answers where the broker behind it gave it no answer (RFC 9110 sections 15.6.3 and 15.6.5). */
const unanswered: ReadonlySet<number> = new Set([502, 504]);

/**
 * Makes a call, and the same again where the broker cannot take it now (503), or gives no answer. It may have taken it all
 * the same, and then gives the same answer; whoever begins anew is told that it is over.
 *
 * @param request means nothing new to the broker when it is repeated
 * @throws {WalletRefusal} as `call` does
 */
export async function sendAgain(
  { fetch, tellWait }: Pick<WalletContext, "fetch" | "tellWait">,
  request: Call,
): Promise<CallAnswer> {
  const endMs = performance.now() + withinMs;
  const isInTime = (): boolean => performance.now() < endMs;
  for (const [at, ms] of pausesMs.entries()) {
    const answer = await call(fetch, request).catch((error: unknown) => {
      // A redirect has no cause, and stays one.
      const isBroken = error instanceof WalletRefusal && error.cause !== undefined;
      if (isBroken && isInTime()) return null;
      throw error;
    });
    const isLost = answer === null || unanswered.has(answer.status);
    if (answer !== null && (!(isLost || answer.status === 503) || !isInTime())) return answer;
    const fault = isLost ? "gave no answer" : "cannot take it now";
    if (at === 0)
      tellWait?.(`${hostOf(request.url)} ${fault}: it is asked again, for some seconds`);
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
  return call(fetch, request);
}
