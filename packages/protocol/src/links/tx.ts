import type { Address } from "../address.ts";
import type { Hex } from "../encoding.ts";
import { readRoute } from "./connection.ts";
import type { ReturnRoute } from "./connection.ts";
import {
  LinkRefused,
  optionalDecimal,
  optionalHex,
  optionalSeconds,
  requiredAddress,
} from "./parameters.ts";
import type { Pairs, Parameters } from "./parameters.ts";

const uint64Max = 2n ** 64n - 1n;
const uint256Max = 2n ** 256n - 1n;
/** EIP-2681: the last nonce an account can use. */
const nonceMax = 2n ** 64n - 2n;

/** `svc:tx`: send a blockchain transaction. The identity is the sender. Numbers are exact decimal texts. */
export interface TxLink extends ReturnRoute {
  action: "tx";
  identity?: Address;
  /** `val`, in the smallest unit. */
  valueWei: string;
  to: Address;
  data?: Hex;
  /** `ep`, in the smallest unit. */
  energyPriceWei?: string;
  /** `el`. */
  energyLimit?: string;
  /** `nc`. */
  nonce?: string;
  /** `dl`, Unix seconds. */
  deadline?: number;
}

export function readTx(parameters: Parameters): TxLink {
  const valueWei = optionalDecimal(parameters, "val", uint256Max);
  if (valueWei === undefined) throw new LinkRefused("val", "is missing");
  const data = optionalHex(parameters, "data");
  const energyPriceWei = optionalDecimal(parameters, "ep", uint256Max);
  const energyLimit = optionalDecimal(parameters, "el", uint64Max);
  const nonce = optionalDecimal(parameters, "nc", nonceMax);
  const deadline = optionalSeconds(parameters, "dl");
  return {
    action: "tx",
    valueWei,
    to: requiredAddress(parameters, "to"),
    ...(data === undefined ? {} : { data }),
    ...(energyPriceWei === undefined ? {} : { energyPriceWei }),
    ...(energyLimit === undefined ? {} : { energyLimit }),
    ...(nonce === undefined ? {} : { nonce }),
    ...(deadline === undefined ? {} : { deadline }),
    ...readRoute(parameters, "tx"),
  };
}

export function writeTx(link: TxLink): Pairs {
  return [
    ["val", link.valueWei],
    ["to", link.to],
    ["data", link.data],
    ["ep", link.energyPriceWei],
    ["el", link.energyLimit],
    ["nc", link.nonce],
    ["conn", link.connection],
    ["dl", link.deadline === undefined ? undefined : String(link.deadline)],
    ["type", link.returnType],
  ];
}
