// Whether what a wallet releases is what was asked for (decisions section 1, "Field names").
import { type FieldName, fieldsOfName, isParentName } from "@svc/protocol";
import type { AskedName } from "../credentials/index.ts";

/** The names that a link asks for: the required ones, and the optional ones that the user has verified. */
export interface LinkNames {
  readonly required: readonly AskedName[];
  readonly offered: readonly AskedName[];
}

/**
 * Whether every required name is answered, and no field is released that answers no name or a parent answered already.
 * One field may answer both its own name and its parent.
 *
 * @param released each field once
 */
export function isComplete(
  { required, offered }: LinkNames,
  released: readonly FieldName[],
): boolean {
  const asked: ReadonlySet<AskedName> = new Set([...required, ...offered]);
  const parents = [...asked].filter(isParentName);
  const isAnswered = (name: AskedName): boolean =>
    fieldsOfName(name).some((field) => released.includes(field));
  // A field belongs to one parent at most, so there is no choice of which parent it answers.
  const answered = released
    .filter((field) => !asked.has(field))
    .map((field) => parents.find((parent) => fieldsOfName(parent).includes(field)));
  return (
    required.every(isAnswered) &&
    !answered.includes(undefined) &&
    new Set(answered).size === answered.length
  );
}
