import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import { call, hostOf, isUnanswered, type Call, type CallAnswer } from "./transport.ts";

/** So three tries in all: a broker ends a request after the fourth wrong answer, even if it is the same one repeated. */
const pausesMs = [1000, 5000];
/** A person waits. Less than the time-out of a single call, so that a call that hung is not repeated. */
const withinMs = 14_000;

/**
 * Makes a call, and repeats it if the broker cannot take it now (503) or gives no answer. If the broker did process the
 * first try, it answers the repeat alike, whereas a person who started over would be told that the request is over.
 *
 * @param request must have no further effect when it is repeated
 * @throws {WalletRefusal} as `call` does
 */
export async function callWithRetries(
  { fetch, tellWait }: Pick<WalletContext, "fetch" | "tellWait">,
  request: Call,
): Promise<CallAnswer> {
  const endMs = performance.now() + withinMs;
  const isInTime = (): boolean => performance.now() < endMs;
  for (const [at, ms] of pausesMs.entries()) {
    const answer = await call(fetch, request).catch((error: unknown) => {
      // The refusal of a redirect has no cause; repeating the call would not change it.
      const isBroken = error instanceof WalletRefusal && error.cause !== undefined;
      if (isBroken && isInTime()) return null;
      throw error;
    });
    const isLost = answer === null || isUnanswered(answer);
    if (answer !== null && (!(isLost || answer.status === 503) || !isInTime())) return answer;
    const fault = isLost ? "gave no answer" : "cannot take it now";
    if (at === 0)
      tellWait?.(`${hostOf(request.url)} ${fault}: it is asked again, for some seconds`);
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
  return call(fetch, request);
}
