import type { Ctx } from "../../platform/context.ts";

const delaySeconds = { min: 5, max: 30 };

/**
 * How long after the vote that decides a refusal is told to whoever asked, 5 to 30 seconds (decisions section 6, States):
 * the moment tells nothing of who refused, or when.
 */
export function refusalDelay(random: Pick<Ctx["random"], "below">): number {
  const { min, max } = delaySeconds;
  return min + random.below(max - min + 1);
}
