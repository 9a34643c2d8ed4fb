import { setTimeout as delay } from "node:timers/promises";
import type { Ctx } from "../platform/context.ts";
import { hasUnattested } from "./credential-store.ts";

const pollMs = 100;

/**
 * Waits until a running service has attested these credentials and company records. Does not wait with `CHAIN=off`.
 *
 * @param patienceSeconds the longest wait, by the machine's clock
 * @returns whether all of them are attested
 */
export async function waitForAttestation(
  ctx: Pick<Ctx, "db" | "config">,
  ids: readonly string[],
  patienceSeconds: number,
): Promise<boolean> {
  const patienceMs = ctx.config.chain === "off" ? 0 : patienceSeconds * 1000;
  const deadlineMs = performance.now() + patienceMs;
  while (await hasUnattested(ctx.db, ids)) {
    if (performance.now() >= deadlineMs) return false;
    await delay(pollMs);
  }
  return true;
}
