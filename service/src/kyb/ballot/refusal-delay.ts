import type { Ctx } from "../../platform/context.ts";

const delaySeconds = { min: 5, max: 30 };

/**
 * How long after the deciding vote a refusal is announced, 5 to 30 seconds at random (decisions section 6, States), so
 * that its time does not reveal who refused, or when.
 */
export function refusalDelay(random: Pick<Ctx["random"], "below">): number {
  const { min, max } = delaySeconds;
  return min + random.below(max - min + 1);
}
