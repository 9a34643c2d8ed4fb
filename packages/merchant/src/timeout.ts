/** Whether a timer accepts it: beyond 24 days Node's timer would fire at once. */
export function isTimeout(ms: number): boolean {
  return Number.isSafeInteger(ms) && ms >= 1 && ms < 2 ** 31;
}
