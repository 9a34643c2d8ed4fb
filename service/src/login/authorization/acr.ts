import { type Acr, acrs } from "../../accounts/index.ts";

export function isAcr(text: string): text is Acr {
  return acrs.some((acr) => acr === text);
}

/** Whether `acr` satisfies a demand for `minimum`. */
export function acrAtLeast(acr: Acr, minimum: Acr): boolean {
  return acrs.indexOf(acr) >= acrs.indexOf(minimum);
}

/** The weakest of several acceptable values: `acr_values` lists alternatives. The list must not be empty. */
export function acrWeakest(list: readonly Acr[]): Acr {
  return list.reduce((weakest, acr) => (acrAtLeast(weakest, acr) ? acr : weakest));
}
