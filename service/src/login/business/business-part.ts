import { type BusinessPart, isHexOf } from "@svc/protocol";
import { readAddress } from "../../platform/http/address-input.ts";
import { invalidRequest } from "../../platform/http/problems.ts";

/**
 * Reads the business that a wallet acts for, from a body or a query.
 *
 * @throws {Problem} invalid_request
 */
export function readBusinessPart(given: {
  readonly address: string;
  readonly epoch: number;
  readonly validUntil: number;
  readonly approval: string;
}): BusinessPart {
  const { epoch, validUntil, approval } = given;
  const address = readAddress("business", given.address);
  if (!isHexOf(approval, 65)) throw invalidRequest("approval must be 65 bytes in hex");
  return { address, epoch, validUntil, approval };
}
