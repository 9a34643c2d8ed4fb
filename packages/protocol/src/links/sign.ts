import type { Address } from "../address.ts";
import type { Hex } from "../encoding.ts";
import { readRoute } from "./connection.ts";
import type { ReturnRoute } from "./connection.ts";
import { LinkRefused, optionalHex, optionalSeconds } from "./parameters.ts";
import type { Pairs, Parameters } from "./parameters.ts";

/** `svc:sign`: sign bytes by EIP-191. */
export interface SignLink extends ReturnRoute {
  action: "sign";
  identity?: Address;
  /** At least one byte. */
  data: Hex;
  /** `dl`, Unix seconds. */
  deadline?: number;
}

export function readSign(parameters: Parameters): SignLink {
  const data = optionalHex(parameters, "data");
  if (data === undefined) throw new LinkRefused("data", "is missing");
  if (data === "0x") throw new LinkRefused("data", "is empty");
  const deadline = optionalSeconds(parameters, "dl");
  return {
    action: "sign",
    data,
    ...(deadline === undefined ? {} : { deadline }),
    ...readRoute(parameters, "sign"),
  };
}

export function writeSign(link: SignLink): Pairs {
  return [
    ["data", link.data],
    ["conn", link.connection],
    ["dl", link.deadline === undefined ? undefined : String(link.deadline)],
    ["type", link.returnType],
  ];
}
