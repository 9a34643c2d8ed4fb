// The cap on what transactions may cost in a day (`CHAIN_SPEND_CAP`). Pure.

/** What the transactions signed on a day may cost at most, in wei. */
export interface Spending {
  /** Days since 1970, UTC. */
  readonly day: number;
  readonly wei: bigint;
  /** The part of it for {@link unpaidKinds}. */
  readonly unpaidWei: bigint;
}

/** The most that one transaction can cost. */
export interface Cost {
  readonly kind: string;
  readonly wei: bigint;
}

export interface SpendLimits {
  /** Unix seconds. */
  readonly now: number;
  /** For a day. */
  readonly capWei: bigint;
  /** For a day, for {@link unpaidKinds} together. */
  readonly unpaidCapWei: bigint;
}

/**
 * Kinds that identities make the service send without anybody being charged. They are unlimited: anybody can make
 * identities, verify an e-mail address with each, and withdraw it. So they share half of the cap.
 */
export const unpaidKinds: readonly string[] = [
  "business.create",
  "business.govern",
  "business.keep",
  "business.remove",
  "credential.attest",
  "credential.revoke",
];

/** The part of the cap that is available to transactions of this kind. */
export function shareOfCap(kind: string, capWei: bigint): bigint {
  return unpaidKinds.includes(kind) ? capWei / 2n : capWei;
}

/**
 * Splits transactions into those that fit into today's cap and those that have to wait, in their order. One that does
 * not fit does not delay later ones.
 *
 * @param costOf in wei
 * @returns `spent`: the spending including those taken
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
 * The day's spending after the fee of a sent transaction is raised; null if that exceeds the cap. Everything signed
 * after it waits for it, so it may use the whole cap, whatever its kind.
 */
export function spendOnBump(
  spent: Spending,
  more: Cost,
  limits: { now: number; capWei: bigint },
): Spending | null {
  return spend(spent, more, { ...limits, unpaidCapWei: limits.capWei });
}

/** The day's spending with one more cost; null if that exceeds the cap. */
export function spend(
  spent: Spending,
  cost: Cost,
  { now, capWei, unpaidCapWei }: SpendLimits,
): Spending | null {
  const today = Math.floor(now / 86_400);
  // Another process, whose clock is a little ahead, may have begun the next day already.
  const day = spent.day === today + 1 ? spent.day : today;
  const before = spent.day === day ? spent : { wei: 0n, unpaidWei: 0n };
  const isUnpaid = unpaidKinds.includes(cost.kind);
  const wei = before.wei + cost.wei;
  const unpaidWei = before.unpaidWei + (isUnpaid ? cost.wei : 0n);
  const isOver = wei > capWei || (isUnpaid && unpaidWei > unpaidCapWei);
  return cost.wei > 0n && isOver ? null : { day, wei, unpaidWei };
}
