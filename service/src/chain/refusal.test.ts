import assert from "node:assert/strict";
import { test } from "node:test";
import { RpcError } from "./node.ts";
import {
  isHeldAlready,
  isNonceUsed,
  isOfContract,
  isOfLimit,
  isOfNode,
  isOutOfFunds,
  isTooEarly,
  isUnderpaid,
} from "./refusal.ts";

const questions = {
  "held already": isHeldAlready,
  "of a used nonce": isNonceUsed,
  "too early": isTooEarly,
  "out of funds": isOutOfFunds,
  underpaid: isUnderpaid,
};

type Meaning = keyof typeof questions | "refused";

const refusals: [client: string, message: string, meaning: Meaning][] = [
  ["Geth", "already known", "held already"],
  ["Besu", "Known transaction", "held already"],
  ["Nethermind", "AlreadyKnown", "held already"],
  ["Erigon", "ALREADY_EXISTS: already known", "held already"],
  ["Erigon", "INTERNAL_ERROR: existing tx with same hash", "held already"],
  ["OpenEthereum", "Transaction with the same hash was already imported.", "held already"],
  [
    "zkSync",
    "known transaction. transaction with hash 0x12 is already in the system",
    "held already",
  ],
  ["Geth", "nonce too low: next nonce 5, tx nonce 4", "of a used nonce"],
  ["Besu", "Nonce too low", "of a used nonce"],
  ["Nethermind", "OldNonce, Current nonce: 5, nonce of rejected tx: 4", "of a used nonce"],
  ["OpenEthereum", "Transaction nonce is too low. Try incrementing the nonce.", "of a used nonce"],
  ["zkSync", "nonce too low. allowed nonce range: 5 - 55, actual: 4", "of a used nonce"],
  ["Arbitrum", "nonce too high: address 0x12, tx: 6 state: 5", "too early"],
  ["Nethermind", "NonceGap, Future nonce. Expected nonce: 5", "too early"],
  ["Besu", "Transaction nonce is too distant from current sender nonce", "too early"],
  ["Geth", "gapped-nonce tx from delegated accounts", "too early"],
  ["Geth", "insufficient funds for gas * price + value: balance 0, tx cost 7", "out of funds"],
  ["Besu", "Upfront cost exceeds account balance", "out of funds"],
  [
    "Besu",
    "transaction up-front cost 0x07 exceeds transaction sender account balance 0x00",
    "out of funds",
  ],
  ["Nethermind", "InsufficientFunds, Account balance: 0, cumulative cost: 7", "out of funds"],
  ["Nethermind", "InsufficientFunds, Balance is 0 less than sending value + gas 7", "out of funds"],
  ["Nethermind", "insufficient sender balance", "out of funds"],
  ["Erigon", "INTERNAL_ERROR: insufficient funds", "out of funds"],
  ["Arbitrum", "not enough funds for gas", "out of funds"],
  ["Geth", "transaction underpriced: tip needed 5, tip permitted 1", "underpaid"],
  ["Geth", "transaction gas price below minimum: gas tip cap 1, minimum needed 5", "underpaid"],
  ["Geth", "replacement transaction underpriced", "underpaid"],
  ["Geth", "max fee per gas less than block base fee: address 0x12, maxFeePerGas: 1", "underpaid"],
  ["Besu", "Gas price below configured minimum gas price", "underpaid"],
  ["Besu", "Gas price below current base fee", "underpaid"],
  ["Nethermind", "FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 1, BaseFee: 7", "underpaid"],
  ["Nethermind", "FeeTooLowToCompete", "underpaid"],
  ["Nethermind", "ReplacementNotAllowed", "underpaid"],
  ["Erigon", "fee too low", "underpaid"],
  ["Erigon", "could not replace existing tx", "underpaid"],
  [
    "OpenEthereum",
    "Transaction gas price 5wei is too low. There is another transaction with same nonce in the queue.",
    "underpaid",
  ],
  ["Celo", "gasprice is less than gas price minimum floor", "underpaid"],
  ["Hedera", "Gas price '1' is below configured minimum gas price '7'", "underpaid"],
  ["Metis", "gas price too low: 1 wei, use at least tx.gasPrice = 7 wei", "underpaid"],
  ["Geth", "intrinsic gas too low: gas 1, minimum needed 21000", "refused"],
  ["Geth", "exceeds block gas limit", "refused"],
  ["Nethermind", "GasLimitExceeded, Gas limit: 7, gas limit of rejected tx: 8", "refused"],
  ["Geth", "tx fee (1.20 ether) exceeds the configured cap (1.00 ether)", "refused"],
  ["Besu", "Transaction fee cap exceeded", "refused"],
  ["Geth", "txpool is full", "refused"],
  ["Geth", "future transaction tries to replace pending", "refused"],
  ["Geth", "in-flight transaction limit reached for delegated accounts", "refused"],
];

for (const [client, message, meaning] of refusals) {
  test(`a transaction of which ${client} says "${message}" is ${meaning}`, () => {
    const error = new RpcError(-32_000, message);
    const meanings = Object.entries(questions).filter(([, isIt]) => isIt(error));
    assert.deepEqual(
      meanings.map(([name]) => name),
      meaning === "refused" ? [] : [meaning],
    );
  });
}

const failedCalls: [
  code: number,
  message: string,
  where: "in the contract" | "at the node" | "somewhere",
][] = [
  [3, "execution reverted: not found", "in the contract"],
  [-32_000, "Execution reverted", "in the contract"],
  [-32_015, "VM execution error.", "in the contract"],
  [-32_603, "Error: VM Exception while processing transaction: reverted", "in the contract"],
  [-32_000, "gas required exceeds allowance (16777216)", "in the contract"],
  [-32_000, "invalid opcode: INVALID", "in the contract"],
  [-32_000, "header not found", "at the node"],
  [-32_000, "missing trie node 12 (path ) state 0x12 is not available", "at the node"],
  [-32_000, "World state unavailable", "at the node"],
  [-32_002, "No state available for block 0x12", "at the node"],
  [-32_000, "execution aborted (timeout = 5s)", "at the node"],
  [-32_015, "upstream node timed out", "at the node"],
  [-32_003, "daily request limit reached - upgrade your account", "at the node"],
  [-32_001, "block not found: latest", "at the node"],
  [-32_601, "the method does not exist", "at the node"],
  [4444, "pruned history unavailable", "at the node"],
  [-32_603, "Internal error", "somewhere"],
];

const limits: [code: number, message: string, isLimit: boolean][] = [
  [429, "Your app has exceeded its throughput", true],
  [-32_005, "daily request count exceeded, request rate limited", true],
  [-32_005, "You've exceeded the RPS limit available on the current plan", true],
  [-32_007, "50/second request limit reached - reduce calls per second", true],
  [-32_016, "over rate limit", true],
  [-32_000, "Too Many Requests", true],
  [-32_000, "exceeded its compute units per second capacity", true],
  [-32_005, "query returned more than 10000 results", false],
  [-32_602, "exceed maximum block range: 2000", false],
  [-32_600, "block range is too large", false],
  [-32_005, "limit exceeded", false],
  [3, "execution reverted: too many requests", false],
];

for (const [code, message, isLimit] of limits) {
  test(`${code}, "${message}", is ${isLimit ? "a" : "no"} limit on how often the node is asked`, () => {
    assert.equal(isOfLimit(new RpcError(code, message)), isLimit);
  });
}

for (const [code, message, where] of failedCalls) {
  test(`a call that ends with ${code}, "${message}", failed ${where}`, () => {
    const error = new RpcError(code, message);
    assert.deepEqual(
      [isOfContract(error), isOfNode(error)],
      [where === "in the contract", where === "at the node"],
    );
  });
}
