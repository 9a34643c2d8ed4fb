import type { Address } from "../address.ts";
import { readRoute } from "./connection.ts";
import type { ReturnRoute } from "./connection.ts";
import { requiredShowable } from "./parameters.ts";
import type { Pairs, Parameters } from "./parameters.ts";

/** `svc:login`: prove an identity to a session. */
export interface LoginLink extends ReturnRoute {
  action: "login";
  identity?: Address;
  /** `sess`: opaque; the broker's own are `<loginId>.<step>.<mac>` or a login id. */
  session: string;
}

export function readLogin(parameters: Parameters): LoginLink {
  return {
    action: "login",
    session: requiredShowable(parameters, "sess"),
    ...readRoute(parameters, "login"),
  };
}

export function writeLogin(link: LoginLink): Pairs {
  return [
    ["sess", link.session],
    ["conn", link.connection],
    ["type", link.returnType],
  ];
}
