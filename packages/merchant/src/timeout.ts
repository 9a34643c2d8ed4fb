/** Whether a timer takes it: beyond 24 days Node would end it at once. */
export function isTimeout(ms: number): boolean {
  return Number.isSafeInteger(ms) && ms >= 1 && ms < 2 ** 31;
}
