/** CHF with at most two decimals, for members whose wire name says CHF; exact below 90 trillion Rappen. */
export function chfOfRappen(rappen: bigint): number {
  return Number(rappen) / 100;
}

/** Reads `500` or `500.05` as Rappen; null for anything else. */
export function rappenOfChf(text: string): bigint | null {
  const [, francs, decimals = ""] = /^(\d{1,9})(?:\.(\d{1,2}))?$/.exec(text) ?? [];
  return francs === undefined ? null : BigInt(francs) * 100n + BigInt(decimals.padEnd(2, "0"));
}
