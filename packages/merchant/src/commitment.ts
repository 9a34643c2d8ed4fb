import { commitmentOf, isHexOf, type Hex32 } from "@svc/protocol";

/** Null for a pepper that is none. Without `0x` it stands in the service document. */
export function commitmentOfValue(value: { data: string; pepper: string }): Hex32 | null {
  const { data, pepper } = value;
  const hex = pepper.startsWith("0x") ? pepper : `0x${pepper}`;
  return isHexOf(hex, 32) ? commitmentOf({ data, pepper: hex }) : null;
}
