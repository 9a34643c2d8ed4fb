import type { Address } from "../address.ts";
import { readRequiredRoute } from "./connection.ts";
import type { ReturnRoute } from "./connection.ts";
import { optionalShowable, requiredAddress, requiredSeconds } from "./parameters.ts";
import type { Pairs, Parameters } from "./parameters.ts";

/** What a link that asks for fields holds, whether their values are to be shared or not. */
export interface FieldsLink extends Required<ReturnRoute> {
  identity?: Address;
  /** The identity of the requester. */
  from: Address;
  /** `dl`, Unix seconds. */
  deadline: number;
  /** `attr`, never empty; in a `request`, exactly `["business"]` is an offer to a business. */
  attributes: readonly string[];
  /** The requester's id of this request; signed. Additive for `access` (decisions, section 3, "Results left open"). */
  id?: string;
}

/** Reads all but the attributes, whose rules depend on the action. */
export function readFields(
  parameters: Parameters,
  action: "request" | "access",
  attributes: readonly string[],
): FieldsLink {
  const id = optionalShowable(parameters, "id");
  return {
    from: requiredAddress(parameters, "from"),
    deadline: requiredSeconds(parameters, "dl"),
    attributes,
    ...(id === undefined ? {} : { id }),
    ...readRequiredRoute(parameters, action),
  };
}

export function writeFields(link: FieldsLink): Pairs {
  return [
    ["conn", link.connection],
    ["from", link.from],
    ["dl", String(link.deadline)],
    ["attr", link.attributes],
    ["id", link.id],
    ["type", link.returnType],
  ];
}
