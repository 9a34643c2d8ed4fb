import { type Address, parseAddress } from "@svc/protocol";
import { invalidRequest } from "./problems.ts";

/**
 * Reads an address, in any spelling of one (decisions section 1).
 *
 * @param name that of the member or parameter that holds it
 * @throws {Problem} invalid_request
 */
export function readAddress(name: string, text: string): Address {
  const address = parseAddress(text);
  if (address === null)
    throw invalidRequest(
      text.startsWith("svcid:")
        ? `${name} must be the address alone, without svcid:`
        : `${name} must be an address of 20 bytes in hex, its checksum right where it is in mixed case`,
    );
  return address;
}
