import { type Address, type Hex, type Hex32, isRecord } from "@svc/protocol";
import { NoAnswer, NodeAway, RpcError } from "./node.ts";
import type { Chain } from "./context.ts";
import { type ChainView, type Fees, feesAt, type Receipt } from "./transaction.ts";

interface Block {
  readonly number: number;
  readonly hash: Hex32;
  /** Unix seconds. */
  readonly time: number;
  /** Wei; 0 before EIP-1559 and on the embedded chain. */
  readonly baseFee: bigint;
}

/** The part of a chain that the outbox needs. */
export type Readable = Pick<Chain, "node" | "isEmbedded" | "confirmations">;

/** Used when a node does not suggest a priority fee: 1 gwei. */
export const priorityFeeFallback = 1_000_000_000n;

/**
 * Reads everything that verdicts on these transactions need. Blocks are compared by hash, and nonces counted at the
 * final block's hash, so that a reorganisation between two answers can delay a verdict, but never make a wrong one
 * final.
 *
 * @returns also `nonces`, the count of the newest block
 */
export async function readView(
  chain: Readable,
  signer: Address,
  hashes: readonly Hex32[],
): Promise<ChainView & { nonces: number }> {
  const head = await readBlock(chain, "latest");
  const deep = chain.confirmations - 1;
  const final = deep === 0 ? head : await findFinal(chain, head.number - deep);
  const [nonces, finalNonces, receipts] = await Promise.all([
    countNonces(chain, signer, "latest"),
    countFinalNonces(chain, signer, final),
    Promise.all(hashes.map(async (hash) => findReceipt(chain, hash))),
  ]);
  const found = receipts.filter((receipt) => receipt !== null);
  // After the receipts: if one of their blocks was replaced meanwhile, its hash differs from the receipt's.
  const numbers = [...new Set(found.map((receipt) => receipt.blockNumber))];
  const [seen, ...blocks] = await Promise.all([
    // In one batch with the blocks, so that the same node answers both: a node that stands still may hold blocks that
    // the others have replaced, and only by its own newest block are they not deep enough.
    deep === 0 || numbers.length === 0 ? head.number : readHead(chain),
    ...numbers.map(async (number) =>
      chain.isEmbedded && number === head.number ? head : findBlock(chain, number),
    ),
  ]);
  const held = blocks.filter((block) => block !== null);
  // If blocks are final at once, all that were found are, also one that is newer than the head that was read.
  const newest = deep === 0 ? Math.max(head.number, ...held.map((block) => block.number)) : seen;
  return {
    nonces,
    finalNumber: newest - deep,
    finalNonces,
    receipts: new Map(found.map((receipt) => [receipt.hash, receipt])),
    blocks: new Map(held.map((block) => [block.number, block])),
  };
}

/**
 * Whether the final block in which an account used a nonce contains one of these transactions: a node may have a block
 * before it has the receipts.
 *
 * @returns false also if the node cannot tell, for example because it has pruned the states: such a transaction must
 * not delay all others for ever
 */
export async function isInFinalBlock(
  chain: Readable,
  given: { readonly signer: Address; readonly nonce: number; readonly hashes: readonly Hex32[] },
): Promise<boolean> {
  if (chain.isEmbedded) return false;
  try {
    const block = await findBlockOfNonce(chain, given);
    const found = await chain.node.request("eth_getBlockByNumber", [hexOf(block), false]);
    const held: unknown = isRecord(found) ? found["transactions"] : null;
    return Array.isArray(held) && held.some((hash) => given.hashes.includes(hashOf(hash)));
  } catch (error) {
    if (error instanceof NodeAway && !(error instanceof NoAnswer)) throw error;
    return false;
  }
}

/** The final block in which the account used the nonce: backwards in steps that double, then by bisection. */
async function findBlockOfNonce(
  chain: Readable,
  { signer, nonce }: { readonly signer: Address; readonly nonce: number },
): Promise<number> {
  const isUsedAt = async (block: number): Promise<boolean> =>
    block >= 0 &&
    Number(await readQuantity(chain, "eth_getTransactionCount", [signer, hexOf(block)])) > nonce;
  let used = (await readHead(chain)) - (chain.confirmations - 1);
  if (!(await isUsedAt(used))) throw new NodeAway("the chain's node has fewer blocks than it had");
  let [unused, step] = [used - 1, 1];
  while (await isUsedAt(unused)) {
    used = unused;
    step *= 2;
    unused = Math.max(-1, unused - step);
  }
  while (used - unused > 1) {
    const middle = Math.floor((used + unused) / 2);
    if (await isUsedAt(middle)) used = middle;
    else unused = middle;
  }
  return used;
}

/** The present market's fees. */
export async function readFees(chain: Readable): Promise<Fees> {
  if (chain.isEmbedded) return { maxFee: 0n, priorityFee: 0n };
  const [head, priorityFee] = await Promise.all([
    readBlock(chain, "latest"),
    readQuantity(chain, "eth_maxPriorityFeePerGas", []).catch((error: unknown) => {
      if (error instanceof RpcError) return priorityFeeFallback;
      throw error;
    }),
  ]);
  return feesAt(head.baseFee, priorityFee);
}

/** The number of the newest block. */
export async function readHead(chain: Pick<Chain, "node">): Promise<number> {
  return Number(await readQuantity(chain, "eth_blockNumber", []));
}

/** The newest block with its time. */
export async function readNewest(
  chain: Pick<Chain, "node">,
): Promise<{ readonly number: number; readonly time: number }> {
  return readBlock(chain, "latest");
}

/** The time of a block, Unix seconds. @throws {NodeAway} if the node does not have it */
export async function readTime(chain: Pick<Chain, "node">, block: number): Promise<number> {
  return (await readBlock(chain, block)).time;
}

/** The present balance of an account, in wei. */
export async function readBalance(chain: Pick<Chain, "node">, account: Address): Promise<bigint> {
  return readQuantity(chain, "eth_getBalance", [account, "latest"]);
}

/** How many nonces the account has used up to that block. */
export async function countNonces(
  chain: Readable,
  signer: Address,
  block: "latest" | { blockHash: Hex32 },
): Promise<number> {
  return Number(await readQuantity(chain, "eth_getTransactionCount", [signer, block]));
}

/** 0, by which nothing is displaced, if the node has pruned that block's state. */
async function countFinalNonces(
  chain: Readable,
  signer: Address,
  final: Block | null,
): Promise<number> {
  if (final === null) return 0;
  // The embedded chain keeps the newest state only, and what is newest there is final.
  if (chain.isEmbedded) return countNonces(chain, signer, "latest");
  try {
    return await countNonces(chain, signer, { blockHash: final.hash });
  } catch (error) {
    if (error instanceof RpcError) return 0;
    throw error;
  }
}

/** @throws {RpcError} if the call would revert, or the node refuses to estimate */
export async function estimateGas(
  chain: Readable,
  call: { from: Address; to: Address; data: Hex },
): Promise<bigint> {
  return readQuantity(chain, "eth_estimateGas", [call]);
}

async function readBlock(chain: Pick<Chain, "node">, tag: "latest" | number): Promise<Block> {
  const block = await findBlock(chain, tag);
  if (block === null) throw new NoAnswer(`the chain's node does not know its block ${tag}`);
  return block;
}

async function findBlock(
  chain: Pick<Chain, "node">,
  tag: "latest" | number,
): Promise<Block | null> {
  if (typeof tag === "number" && tag < 0) return null;
  const name = typeof tag === "number" ? hexOf(tag) : tag;
  const block = await chain.node.request("eth_getBlockByNumber", [name, false]);
  if (!isRecord(block)) return null;
  return {
    number: Number(quantityOf(block["number"])),
    hash: hashOf(block["hash"]),
    time: Number(quantityOf(block["timestamp"])),
    baseFee: quantityOf(block["baseFeePerGas"] ?? "0x0"),
  };
}

/** A block by number; null if the node that answers has not enough blocks after it for it to be final. */
async function findFinal(chain: Readable, number: number): Promise<Block | null> {
  const [seen, block] = await Promise.all([readHead(chain), findBlock(chain, number)]);
  return seen - (chain.confirmations - 1) < number ? null : block;
}

async function findReceipt(chain: Readable, hash: Hex32): Promise<Receipt | null> {
  const receipt = await chain.node.request("eth_getTransactionReceipt", [hash]);
  if (!isRecord(receipt) || typeof receipt["blockHash"] !== "string") return null;
  return {
    hash,
    blockHash: hashOf(receipt["blockHash"]),
    blockNumber: Number(quantityOf(receipt["blockNumber"])),
    succeeded: quantityOf(receipt["status"]) === 1n,
  };
}

async function readQuantity(
  chain: Pick<Chain, "node">,
  method: string,
  params: readonly unknown[],
): Promise<bigint> {
  return quantityOf(await chain.node.request(method, params));
}

const hexOf = (number: number): string => `0x${number.toString(16)}`;

function quantityOf(value: unknown): bigint {
  if (typeof value !== "string" || !/^0x[0-9a-fA-F]{1,64}$/.test(value))
    throw new NoAnswer("the chain's node answered with something else than a number");
  return BigInt(value);
}

/** A hash in an answer of the node. @throws {NodeAway} for anything else */
export function hashOf(value: unknown): Hex32 {
  if (typeof value !== "string" || !/^0x[0-9a-f]{64}$/i.test(value))
    throw new NoAnswer("the chain's node answered with something else than a hash");
  return value.toLowerCase() as Hex32;
}
