import type { Ctx } from "../context.ts";
import type { Listener } from "../http/listener.ts";

/**
 * Ends the work of a process. From now on nothing new begins; requests, jobs and deliveries under way have the same
 * `DRAIN_SECONDS` to come to their ends, and connections that are still open then are cut.
 */
export async function drain(
  { config: { drainSeconds }, log }: Pick<Ctx, "config" | "log">,
  parts: { readonly listener: Listener; readonly works: readonly AsyncDisposable[] },
): Promise<void> {
  const { listener, works } = parts;
  log.info({ drainSeconds }, "the process is asked to end and drains");
  const endings = [listener, ...works].map(async (part) => part[Symbol.asyncDispose]());
  if (!(await isWithin(drainSeconds, Promise.allSettled(endings))))
    log.warn({ drainSeconds }, "work was left at the end of the drain; its connections are cut");
  listener.cut();
  await Promise.all(endings);
}

async function isWithin(seconds: number, ending: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => late.resolve(false), seconds * 1000);
  const ended = await Promise.race([ending.then(() => true), late.promise]);
  clearTimeout(timer);
  return ended;
}
