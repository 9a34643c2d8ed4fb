// Whether what a wallet releases is what was asked for (decisions section 1, "Field names").
import { type FieldName, fieldsOfName, isParentName } from "@svc/protocol";
import type { AskedName } from "../credentials/index.ts";

/** Names of a link: all of the required, and which of the optional it offers. */
export interface LinkNames {
  readonly required: readonly AskedName[];
  readonly offered: readonly AskedName[];
}

/**
 * Whether every required name is answered, and no name more than once. One field may answer a parent and its own name.
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
