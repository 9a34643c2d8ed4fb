import { type Address, parseAddress } from "@svc/protocol";
import { Problem } from "../../platform/http/problems.ts";
import { Type } from "../../platform/http/schema.ts";

/** Of a wallet's route about one business. */
export const BusinessParams = Type.Object({ address: Type.String({ maxLength: 100 }) });

/** What is no address names no business. @throws {Problem} business_not_found */
export function businessAddressOf({ address: text }: { readonly address: string }): Address {
  const address = parseAddress(text);
  if (address === null) throw new Problem("business_not_found");
  return address;
}
