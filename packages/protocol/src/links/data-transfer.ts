import type { Address } from "../address.ts";
import { readTransferReturnType } from "./connection.ts";
import type { TransferReturnType } from "./connection.ts";
import {
  LinkRefused,
  optionalAttributes,
  optionalDecimal,
  optionalShowable,
  refuseBusiness,
} from "./parameters.ts";
import type { Pairs, Parameters } from "./parameters.ts";

const minutesMin = 5;
const minutesMax = 60;
const minutesDefault = 10;

/** `svc:<identity>?..`: the holder is asked to hand over fields, without a service in between. */
export interface DataTransferLink {
  action: "data-transfer";
  identity?: Address;
  /** `attr`; empty when the link names none and the holder picks. */
  attributes: readonly string[];
  returnType: TransferReturnType;
  /** `exp`: how long the handed-over data can be fetched, 5 to 60 minutes. */
  expiresInMinutes: number;
  /** `aud`, additive: whom the transfer is made out to; signed. */
  audience?: string;
  /** `nonce`, additive: the asker's random value; signed. */
  nonce?: string;
}

export function readDataTransfer(parameters: Parameters): DataTransferLink {
  const attributes = optionalAttributes(parameters, "attr");
  refuseBusiness(attributes, "attr");
  const minutes = Number(optionalDecimal(parameters, "exp", 1000n) ?? minutesDefault);
  if (minutes < minutesMin || minutes > minutesMax) {
    throw new LinkRefused("exp", `is not between ${minutesMin} and ${minutesMax} minutes`);
  }
  const audience = optionalShowable(parameters, "aud");
  const nonce = optionalShowable(parameters, "nonce");
  return {
    action: "data-transfer",
    attributes,
    returnType: readTransferReturnType(parameters),
    expiresInMinutes: minutes,
    ...(audience === undefined ? {} : { audience }),
    ...(nonce === undefined ? {} : { nonce }),
  };
}

export function writeDataTransfer(link: DataTransferLink): Pairs {
  return [
    ["attr", link.attributes],
    ["exp", String(link.expiresInMinutes)],
    ["aud", link.audience],
    ["nonce", link.nonce],
    ["type", link.returnType],
  ];
}
