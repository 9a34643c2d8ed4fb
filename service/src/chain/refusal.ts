// Classifies errors of nodes. There are no common codes, so it is done by their messages, which differ by client: the
// table in `refusal.test.ts` says which client uses which.
import { RpcError } from "./node.ts";

const words = {
  held: /already ?known|already ?imported|known transaction|same hash/i,
  used: /nonce (?:is )?too low|old ?nonce|nonce_too_low/i,
  early: /nonce too high|nonce ?gap|gapped.nonce|nonce is too distant/i,
  funds:
    /insufficient[ _]?(?:sender )?(?:funds|balance)|cost .*exceeds .*balance|not enough (?:funds|balance)|out of funds/i,
  fee: /underpriced|fee[ _]?too[ _]?low|price .*too low|(?:price|fee).* (?:less than|below) .*(?:base ?fee|minimum)|replacement ?not ?allowed|not replace existing|same nonce in/i,
  reverts: /revert|\bE?VM\b/i,
  lacks:
    /not found|not available|unavailable|missing trie node|pruned|aborted|timed? ?out|limit exceeded|too many|syncing|indexing/i,
  limits: /rate.?limit|too many requests|(?:request|rps|usage) limit|request count|compute units/i,
} as const;

function says(error: unknown, what: keyof typeof words): boolean {
  return error instanceof RpcError && words[what].test(error.message);
}

/** The node has these bytes already. */
export function isHeldAlready(error: unknown): boolean {
  return says(error, "held");
}

/** The nonce was used, by these bytes or by another transaction. */
export function isNonceUsed(error: unknown): boolean {
  return says(error, "used");
}

/** The node has not got the transactions with lower nonces yet. */
export function isTooEarly(error: unknown): boolean {
  return says(error, "early");
}

/** The account cannot pay. */
export function isOutOfFunds(error: unknown): boolean {
  return says(error, "funds");
}

/** The node would take the transaction for a higher fee. */
export function isUnderpaid(error: unknown): boolean {
  return says(error, "fee");
}

/** The server limits calls: the same call would succeed later. */
export function isOfLimit(error: RpcError): boolean {
  // A contract chooses its revert message, so that may contain anything.
  return error.code === 429 || (says(error, "limits") && !says(error, "reverts"));
}

/** The codes of failed calls; -32000 may also mean that the node lacks something. */
const callCodes = new Set([3, -32_000, -32_003, -32_015]);

/** Whether a call failed in the contract, and not because the node limits calls or lacks the state. */
export function isOfContract(error: unknown): boolean {
  if (!(error instanceof RpcError)) return false;
  if (says(error, "reverts")) return true;
  return callCodes.has(error.code) && !isOfLimit(error) && !says(error, "lacks");
}

/** No such method, resource not found or unavailable, a limit, history that is gone. */
const ownCodes = new Set([-32_601, -32_001, -32_002, -32_005, 4444]);

/** Whether a call failed because of the node, which says nothing about the call. */
export function isOfNode(error: unknown): boolean {
  if (!(error instanceof RpcError) || isOfContract(error)) return false;
  return ownCodes.has(error.code) || isOfLimit(error) || says(error, "lacks");
}
