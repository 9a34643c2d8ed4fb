import type { Ctx } from "../../platform/context.ts";

/** Counted from the vote's second, rounded down: up to one second of the first has passed when the vote comes. */
const delaySeconds = { min: 6, max: 30 };

/**
 * The second at which a refusal is announced, after that of the deciding vote: 5 to 30 seconds after the vote, at random
 * (decisions section 6, States), so that its time does not reveal who refused, or when.
 */
export function refusalDelay(random: Pick<Ctx["random"], "below">): number {
  const { min, max } = delaySeconds;
  return min + random.below(max - min + 1);
}
