// Calls that are made at once wait for each other's locks and connections. Where the machine stalls for longer than the
// service lets them wait, it refuses some, of which nothing has happened. A caller tries again, and so do these.
import { isOutage } from "../service/src/platform/database/database-fault.ts";

const triesMax = 20;
/** The service lets a call wait five seconds for a lock, and ten for a connection: a sooner refusal has another cause. */
const waitedMs = 4_500;

/** Calls again where the service says, after a long wait, that it cannot answer now. */
export async function untilAvailable<A extends { readonly status: number }>(
  call: () => Promise<A>,
): Promise<A> {
  for (let tries = 1; ; tries += 1) {
    const beganMs = performance.now();
    const answer = await call();
    const hasWaited = performance.now() - beganMs > waitedMs;
    if (answer.status !== 503 || !hasWaited || tries === triesMax) return answer;
  }
}

/** The same for work in this process. */
export async function untilReached<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    const beganMs = performance.now();
    try {
      return await work();
    } catch (error) {
      const hasWaited = performance.now() - beganMs > waitedMs;
      if (!isOutage(error) || !hasWaited || tries === triesMax) throw error;
    }
  }
}
