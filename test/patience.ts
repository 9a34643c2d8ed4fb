/**
 * After this a wait for what ought to happen says what never came. It is no promise of how soon: where neighbours take
 * the processors of a machine, the same work takes ten times as long.
 */
export const patienceMs = 200_000;
