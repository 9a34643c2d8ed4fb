// Nodes that lack methods, or spell their answers in other ways: for a gate before the chain of a test.
import { isRecord } from "@svc/protocol";
import type { Gate } from "./anvil.ts";

/** What becomes of each call. */
export type Decide = Parameters<Gate["decide"]>[0];

export const fail = (code: number, message: string) => ({ error: { code, message } });

const optional = new Set(["eth_feeHistory", "eth_maxPriorityFeePerGas", "eth_getBlockReceipts"]);
const isTag = (value: unknown): boolean => value === "safe" || value === "finalized";

/** Without the methods and tags that came late. */
export const sparse: Decide = (method, params) =>
  optional.has(method) || params.some(isTag) ? fail(-32_601, "does not exist") : "pass";

/** With all of its hex in capitals. */
export const capital: Decide = () => ({ revise: inCapitals });

function inCapitals(value: unknown): unknown {
  if (typeof value === "string")
    return /^0x.+/.test(value) ? `0x${value.slice(2).toUpperCase()}` : value;
  if (Array.isArray(value)) return value.map(inCapitals);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inCapitals(one)]));
}
