import { type BusinessPart, isHexOf, parseAddress } from "@svc/protocol";
import { invalidRequest } from "../../platform/http/problems.ts";

/**
 * What a wallet says of the business it acts for, in a body or a query.
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
  const address = parseAddress(given.address);
  if (address === null) throw invalidRequest("business must be an address of 20 bytes in hex");
  if (!isHexOf(approval, 65)) throw invalidRequest("approval must be 65 bytes in hex");
  return { address, epoch, validUntil, approval };
}
