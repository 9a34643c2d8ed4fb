import { commitmentOf, isHexOf, type Hex32 } from "@svc/protocol";

/** Null for a malformed pepper. The service document writes peppers without `0x`. */
export function commitmentOfValue(value: { data: string; pepper: string }): Hex32 | null {
  const { data, pepper } = value;
  const hex = pepper.startsWith("0x") ? pepper : `0x${pepper}`;
  return isHexOf(hex, 32) ? commitmentOf({ data, pepper: hex }) : null;
}
