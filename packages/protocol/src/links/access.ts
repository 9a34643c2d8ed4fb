import { readFields } from "./fields.ts";
import type { FieldsLink } from "./fields.ts";
import { refuseBusiness, requiredAttributes } from "./parameters.ts";
import type { Parameters } from "./parameters.ts";

/** `svc:access`: prove that fields are verified, without showing their values. */
export interface AccessLink extends FieldsLink {
  action: "access";
}

export function readAccess(parameters: Parameters): AccessLink {
  const attributes = requiredAttributes(parameters, "attr");
  refuseBusiness(attributes, "attr");
  return { action: "access", ...readFields(parameters, "access", attributes) };
}
