import { businessAttribute } from "../attributes.ts";
import { readFields } from "./fields.ts";
import type { FieldsLink } from "./fields.ts";
import { LinkRefused, requiredAttributes } from "./parameters.ts";
import type { Parameters } from "./parameters.ts";

/** `svc:request`: share verified fields with a requester. */
export interface RequestLink extends FieldsLink {
  action: "request";
}

export function readRequest(parameters: Parameters): RequestLink {
  const attributes = requiredAttributes(parameters, "attr");
  if (attributes.length > 1 && attributes.includes(businessAttribute)) {
    throw new LinkRefused("attr", `holds the reserved name ${businessAttribute} among others`);
  }
  return { action: "request", ...readFields(parameters, "request", attributes) };
}
