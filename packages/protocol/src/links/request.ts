import type { Address } from "../address.ts";
import { businessAttribute } from "../attributes.ts";
import { readRequiredRoute } from "./connection.ts";
import type { ReturnRoute } from "./connection.ts";
import {
  LinkRefused,
  optionalShowable,
  requiredAddress,
  requiredAttributes,
  requiredSeconds,
} from "./parameters.ts";
import type { Pairs, Parameters } from "./parameters.ts";

/** `svc:request`: share verified fields with a requester. */
export interface RequestLink extends Required<ReturnRoute> {
  action: "request";
  identity?: Address;
  /** The identity of the requester. */
  from: Address;
  /** `dl`, Unix seconds. */
  deadline: number;
  /** `attr`, never empty; exactly `["business"]` is an offer to a business. */
  attributes: readonly string[];
  /** The requester's id of this request; signed. */
  id?: string;
}

export function readRequest(parameters: Parameters): RequestLink {
  const attributes = requiredAttributes(parameters, "attr");
  if (attributes.length > 1 && attributes.includes(businessAttribute)) {
    throw new LinkRefused("attr", `holds the reserved name ${businessAttribute} among others`);
  }
  const id = optionalShowable(parameters, "id");
  return {
    action: "request",
    from: requiredAddress(parameters, "from"),
    deadline: requiredSeconds(parameters, "dl"),
    attributes,
    ...(id === undefined ? {} : { id }),
    ...readRequiredRoute(parameters, "request"),
  };
}

export function writeRequest(link: RequestLink): Pairs {
  return [
    ["conn", link.connection],
    ["from", link.from],
    ["dl", String(link.deadline)],
    ["attr", link.attributes],
    ["id", link.id],
    ["type", link.returnType],
  ];
}
