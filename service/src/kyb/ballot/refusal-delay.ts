import type { Ctx } from "../../platform/context.ts";

/** Counted from the second of the vote, rounded down, so the vote may be up to a second later: hence 6, not 5. */
const delaySeconds = { min: 6, max: 30 };

/**
 * How many seconds after that of the deciding vote a refusal is announced: 5 to 30 seconds after the vote, at random
 * (decisions section 6, States), so that the time does not reveal who refused, or when.
 */
export function refusalDelay(random: Pick<Ctx["random"], "below">): number {
  const { min, max } = delaySeconds;
  return min + random.below(max - min + 1);
}
