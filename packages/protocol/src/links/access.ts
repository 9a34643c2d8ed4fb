import type { Address } from "../address.ts";
import { readRequiredRoute } from "./connection.ts";
import type { ReturnRoute } from "./connection.ts";
import {
  optionalShowable,
  refuseBusiness,
  requiredAddress,
  requiredAttributes,
  requiredSeconds,
} from "./parameters.ts";
import type { Pairs, Parameters } from "./parameters.ts";

/** `svc:access`: prove that fields are verified, without showing their values. */
export interface AccessLink extends Required<ReturnRoute> {
  action: "access";
  identity?: Address;
  /** The identity of the requester. */
  from: Address;
  /** `dl`, Unix seconds. */
  deadline: number;
  /** `attr`: the entry policy, never empty. */
  attributes: readonly string[];
  /** Additive, as in `request`: the result names it (decisions, section 3, "Results left open"). */
  id?: string;
}

export function readAccess(parameters: Parameters): AccessLink {
  const attributes = requiredAttributes(parameters, "attr");
  refuseBusiness(attributes, "attr");
  const id = optionalShowable(parameters, "id");
  return {
    action: "access",
    from: requiredAddress(parameters, "from"),
    deadline: requiredSeconds(parameters, "dl"),
    attributes,
    ...(id === undefined ? {} : { id }),
    ...readRequiredRoute(parameters, "access"),
  };
}

export function writeAccess(link: AccessLink): Pairs {
  return [
    ["conn", link.connection],
    ["from", link.from],
    ["dl", String(link.deadline)],
    ["attr", link.attributes],
    ["id", link.id],
    ["type", link.returnType],
  ];
}
