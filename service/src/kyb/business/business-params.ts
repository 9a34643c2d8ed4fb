import { type Address, parseAddress } from "@svc/protocol";
import { Problem } from "../../platform/http/problems.ts";
import { Type } from "../../platform/http/schema.ts";
import { givenAddress } from "../member-schemas.ts";

/** The parameters of a wallet's route about one business. */
export const BusinessParams = Type.Object({ address: givenAddress("The business") });

/** The address in the route's path. @throws {Problem} business_not_found for anything else */
export function businessAddressOf({ address: text }: { readonly address: string }): Address {
  const address = parseAddress(text);
  if (address === null) throw new Problem("business_not_found");
  return address;
}
