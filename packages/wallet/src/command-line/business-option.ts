import { parseAddress, type Address } from "@svc/protocol";
import { UsageError, type Input, type Option } from "./verb.ts";

/** Which business is meant. */
export const businessOption = {
  business: {
    value: "0x..",
    description: "Act for this business; needed where the identity votes in several.",
  },
} as const satisfies Record<string, Option>;

/** Undefined where it is left to the wallet. @throws {UsageError} */
export function readBusinessOption(input: Input): Address | undefined {
  const given = input.optional("business");
  if (given === undefined) return undefined;
  const address = parseAddress(given);
  if (address === null) throw new UsageError("--business is an address of 20 bytes in hex");
  return address;
}
