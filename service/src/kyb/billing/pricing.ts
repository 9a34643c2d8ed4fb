import {
  type BusinessFieldName,
  businessFieldNames,
  entryOfBusinessField,
  type SubjectType,
} from "@svc/protocol";

export type Tier = "A" | "B" | "C";
export const currency = "CHF";

/** What one field costs, however many persons it covers. */
export interface PriceLine {
  readonly field: BusinessFieldName;
  readonly tier: Tier;
  readonly cents: number;
}

/** The price list: Rappen by tier, and the tier of each group. Change it here, and quotes, prices and charges follow. */
const centsOfTier: Readonly<Record<Tier, number>> = { A: 100, B: 250, C: 400 };
const tierOfPersons: Tier = "C";
const tierOfGroup: Readonly<Partial<Record<string, Tier>>> = {
  activity: "A",
  address: "A",
  contact: "A",
  declared: "A",
  identity: "A",
  incorporation: "A",
  shareholder: "A",
  state: "A",
  aggregate: "B",
  document: "B",
  licence: "B",
  registry: "B",
  screening: "B",
  structure: "B",
  tax: "B",
};

/**
 * What a field costs; null if the list has no price for it. Fields that are about a person according to the catalogue
 * are tier C.
 */
export function priceOf(field: BusinessFieldName): PriceLine | null {
  const { group, naturalPersonPii } = entryOfBusinessField(field);
  const tier = naturalPersonPii ? tierOfPersons : tierOfGroup[group];
  return tier === undefined ? null : { field, tier, cents: centsOfTier[tier] };
}

/** A field as the price list shows it. */
export interface PricedField {
  readonly name: BusinessFieldName;
  readonly tier: Tier;
  readonly cents: number;
  readonly naturalPersonPii: boolean;
  readonly subjectType: SubjectType;
}

/** Every field that has a price, in catalogue order. */
export function listPrices(): PricedField[] {
  return businessFieldNames.flatMap((name) => {
    const price = priceOf(name);
    if (price === null) return [];
    const { naturalPersonPii, subjectType } = entryOfBusinessField(name);
    return [{ name, tier: price.tier, cents: price.cents, naturalPersonPii, subjectType }];
  });
}

/** The total of price lines, in Rappen. */
export function totalOf(lines: readonly Pick<PriceLine, "cents">[]): number {
  return lines.reduce((sum, { cents }) => sum + cents, 0);
}
