// The cap on what transactions may cost in a day (`CHAIN_SPEND_CAP`). Pure.

/** What was spent on a day (days since 1970, UTC), in wei. */
export interface Spending {
  readonly day: number;
  readonly wei: bigint;
  /** The part of it spent on transactions that nobody is charged for. */
  readonly unpaidWei: bigint;
}

/** What a transaction costs. */
export interface Cost {
  readonly kind: string;
  readonly wei: bigint;
}

/** What a day may cost. */
export interface SpendLimits {
  readonly now: number;
  readonly capWei: bigint;
  /** What all transactions that nobody is charged for may cost. */
  readonly unpaidCapWei: bigint;
}

/**
 * Kinds that identities have the service send and that nobody is charged for. There is no end to them: anybody can make
 * identities, verify an e-mail address with each, and withdraw it.
 */
export const unpaidKinds: readonly string[] = [
  "business.create",
  "business.govern",
  "business.keep",
  "business.remove",
  "credential.attest",
  "credential.revoke",
];

/**
 * What all transactions of such a kind may cost in a day: what nobody is charged for leaves half of the cap to the rest.
 */
export function shareOfCap(kind: string, capWei: bigint): bigint {
  return unpaidKinds.includes(kind) ? capWei / 2n : capWei;
}

/**
 * Splits transactions into those that fit into today's cap and those that wait, in their order. One that does not fit
 * does not hold up those behind it.
 *
 * @param costOf in wei
 * @returns `spent` with what all that were taken cost
 */
export function takeWithinCap<T extends { readonly kind: string }>(
  due: readonly T[],
  costOf: (each: T) => bigint,
  given: { spent: Spending; now: number; capWei: bigint },
): { taken: T[]; waiting: T[]; spent: Spending } {
  const { now, capWei } = given;
  let { spent } = given;
  const taken: T[] = [];
  const waiting: T[] = [];
  for (const each of due) {
    const { kind } = each;
    const limits = { now, capWei, unpaidCapWei: shareOfCap(kind, capWei) };
    const next = spend(spent, { kind, wei: costOf(each) }, limits);
    if (next === null) {
      waiting.push(each);
    } else {
      taken.push(each);
      spent = next;
    }
  }
  return { taken, waiting, spent };
}

/**
 * The day's spending after raising the fee of a transaction that was sent, or null when that exceeds the cap.
 * Everything signed after it waits for it, so it may use the whole cap, whatever its kind.
 */
export function spendOnBump(
  spent: Spending,
  more: Cost,
  limits: { now: number; capWei: bigint },
): Spending | null {
  return spend(spent, more, { ...limits, unpaidCapWei: limits.capWei });
}

/** The day's spending with one more cost, or null when that is more than the cap. */
export function spend(
  spent: Spending,
  cost: Cost,
  { now, capWei, unpaidCapWei }: SpendLimits,
): Spending | null {
  const today = Math.floor(now / 86_400);
  // A process whose clock is a little ahead may have begun the next day already.
  const day = spent.day === today + 1 ? spent.day : today;
  const before = spent.day === day ? spent : { wei: 0n, unpaidWei: 0n };
  const isUnpaid = unpaidKinds.includes(cost.kind);
  const wei = before.wei + cost.wei;
  const unpaidWei = before.unpaidWei + (isUnpaid ? cost.wei : 0n);
  const isOver = wei > capWei || (isUnpaid && unpaidWei > unpaidCapWei);
  return cost.wei > 0n && isOver ? null : { day, wei, unpaidWei };
}
