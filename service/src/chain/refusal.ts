// What a node means by an error. Nodes share no codes for it, so their words tell, and those differ by client: the table of
// `refusal.test.ts` says whose each is.
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

/** The node refuses a transaction since it has these bytes. */
export function isHeldAlready(error: unknown): boolean {
  return says(error, "held");
}

/** The nonce was used, by these bytes or by another transaction. */
export function isNonceUsed(error: unknown): boolean {
  return says(error, "used");
}

/** The node takes a transaction only after those with lower nonces. */
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

/** The server was asked too often: the same call is answered later. */
export function isOfLimit(error: RpcError): boolean {
  // A contract chooses the words with which it reverts.
  return error.code === 429 || (says(error, "limits") && !says(error, "reverts"));
}

/** With these codes nodes tell how a call ended, and with -32000 also what they lack themselves. */
const callCodes = new Set([3, -32_000, -32_003, -32_015]);

/** Whether a call failed in the contract: a node that limits us, or lacks the state, has not asked it. */
export function isOfContract(error: unknown): boolean {
  if (!(error instanceof RpcError)) return false;
  if (says(error, "reverts")) return true;
  return callCodes.has(error.code) && !isOfLimit(error) && !says(error, "lacks");
}

/** No such method, resource not found or unavailable, a limit, history that is gone. */
const ownCodes = new Set([-32_601, -32_001, -32_002, -32_005, 4444]);

/** Whether a call failed for what the node lacks, which says nothing of the call. */
export function isOfNode(error: unknown): boolean {
  if (!(error instanceof RpcError) || isOfContract(error)) return false;
  return ownCodes.has(error.code) || isOfLimit(error) || says(error, "lacks");
}
