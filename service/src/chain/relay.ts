// The JSON-RPC methods that the outside may call. All others are refused: `anvil_*`, `evm_*`, `hardhat_*`, `debug_*`,
// and any that nodes may add.
import { type Hex, hexOfBytes, isRecord } from "@svc/protocol";
import { createBodyTurns } from "../platform/http/body-turns.ts";
import { keccakOfHex } from "../platform/hex.ts";
import { checkPrice } from "./admission.ts";
import { priorityFeeFallback } from "./chain-view.ts";
import type { ChainContext } from "./context.ts";
import { createFairTurns } from "./fair-turns.ts";
import { type ChainNode, NodeAway, RpcError } from "./node.ts";
import { isHeldAlready } from "./refusal.ts";

/** Gas of one call: enough to verify a signature by ERC-6492, and at most a few tenths of a second of computing. */
const callGasMax = 10_000_000n;
/** The most blocks of one search for logs. */
const logBlocksMax = 10_000;
const feeBlocksMax = 100;

/**
 * The price of a unit of gas for others on the embedded chain, except in `dev`. Their computation is repeated in every
 * replay, so it costs coin, which only the operator gives out.
 */
const weiPerGas = 1_000_000_000n;

type Params = readonly unknown[];
type Check = (params: Params, node: ChainNode) => Params | Promise<Params>;

const none: Check = () => [];
const upTo =
  (count: number): Check =>
  (params) =>
    params.slice(0, count);

/** The methods that are passed on to the node, each with a check that returns the parameters to pass on. */
const methods: Record<string, Check> = {
  eth_chainId: none,
  net_version: none,
  eth_blockNumber: none,
  eth_gasPrice: none,
  eth_maxPriorityFeePerGas: none,
  eth_feeHistory: checkFeeHistory,
  eth_getBalance: upTo(2),
  eth_getCode: upTo(2),
  eth_getStorageAt: upTo(3),
  eth_getTransactionCount: upTo(2),
  eth_getTransactionByHash: upTo(1),
  eth_getTransactionReceipt: upTo(1),
  eth_getBlockByHash: upTo(2),
  eth_getBlockByNumber: upTo(2),
  eth_getLogs: checkLogs,
  eth_call: checkCall,
  eth_estimateGas: checkCall,
};

const codes = {
  unreadable: -32_600,
  unknownMethod: -32_601,
  params: -32_602,
  away: -32_603,
  busy: -32_005,
};

/**
 * Calls that may compute for long. Callers take turns with them, so that the node has time left for the service itself,
 * and no caller crowds out the others.
 */
const computing = new Set(["eth_call", "eth_estimateGas"]);
const takeTurn = createFairTurns({
  atOnce: 2,
  waitingMax: 1_000,
  ofOwnerMax: 100,
  onFull: tooManyWait,
});

/**
 * Calls whose answers may be long. Few run at once, since each answer is in memory as a whole. Waiting calls need
 * little memory, and a network has at most 200 of them (in four requests), so it takes many networks to fill the queue.
 */
const lengthy = new Set([
  "eth_getBlockByHash",
  "eth_getBlockByNumber",
  "eth_getLogs",
  "eth_getTransactionReceipt",
]);
const takeLengthyTurn = createFairTurns({
  atOnce: 8,
  waitingMax: 10_000,
  ofOwnerMax: 1_000,
  onFull: tooManyWait,
});

/** Transactions are parsed here, unpaid: all of one request would block the event loop for a tenth of a second. */
const takeSendingTurn = createBodyTurns();

function tooManyWait(): RpcError {
  return new RpcError(codes.busy, "too many calls wait; try again later");
}

/**
 * The most characters of all answers to one request. A single call of 10 million gas can return 2 MB, and costs its
 * caller nothing.
 */
const answersLengthMax = 4 * 1024 * 1024;

/**
 * Answers the calls of one request, in their order, each as JSON. An answer that does not fit any more is replaced by
 * an error.
 *
 * @param caller as for {@link answerCall}
 */
export async function answerCalls(
  ctx: ChainContext,
  calls: readonly unknown[],
  caller: string,
): Promise<string[]> {
  let left = answersLengthMax;
  return Promise.all(
    calls.map(async (call) => {
      const text = JSON.stringify(await answerCall(ctx, call, caller));
      if (text.length > left) return JSON.stringify(errorOf(idOf(call), tooLong()));
      left -= text.length;
      return text;
    }),
  );
}

function tooLong(): RpcError {
  return new RpcError(codes.busy, "the answers to one request have at most 4 MiB; ask for less");
}

/**
 * Answers one JSON-RPC 2.0 call. Refusals, and that the node is away, are answers too.
 *
 * @param caller the network that makes the call: networks take turns with expensive calls
 */
export async function answerCall(
  ctx: ChainContext,
  call: unknown,
  caller: string,
): Promise<object> {
  if (!isRecord(call) || typeof call["method"] !== "string")
    return errorOf(null, new RpcError(codes.unreadable, "this is no JSON-RPC 2.0 call"));
  const id = idOf(call);
  try {
    const params = call["params"] ?? [];
    if (!Array.isArray(params)) throw new RpcError(codes.params, "params must be a list");
    return {
      jsonrpc: "2.0",
      id,
      result: await ask(ctx, { method: call["method"], params, caller }),
    };
  } catch (error) {
    if (error instanceof RpcError) return errorOf(id, error);
    if (!(error instanceof NodeAway)) throw error;
    return errorOf(id, new RpcError(codes.away, "the chain cannot answer now"));
  }
}

function idOf(call: unknown): string | number | null {
  const id = isRecord(call) ? call["id"] : null;
  return typeof id === "string" || typeof id === "number" ? id : null;
}

const priceMethods = new Set(["eth_gasPrice", "eth_maxPriorityFeePerGas"]);

function costsGas({ chain, config }: ChainContext): boolean {
  return chain.isEmbedded && config.profile !== "dev";
}

async function ask(
  ctx: ChainContext,
  { method, params, caller }: { method: string; params: Params; caller: string },
): Promise<unknown> {
  if (method === "eth_sendRawTransaction") {
    const turn = Promise.withResolvers<void>();
    takeSendingTurn(caller, turn.resolve);
    await turn.promise;
    return send(ctx, params[0]);
  }
  // web3.py asks for it to learn whether it is connected; which node it is, is nobody's business.
  if (method === "web3_clientVersion") return "svc";
  const check = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (check === undefined)
    throw new RpcError(codes.unknownMethod, "this method is not available here");
  const { relayNode: node } = ctx.chain;
  if (priceMethods.has(method) && costsGas(ctx)) return `0x${weiPerGas.toString(16)}`;
  const checked = await check(params, node);
  const request = async (): Promise<unknown> => node.request(method, checked);
  if (computing.has(method)) return takeTurn(caller, request);
  if (lengthy.has(method)) return takeLengthyTurn(caller, request);
  if (method === "eth_maxPriorityFeePerGas") return request().catch(asTip);
  const result = await request();
  return method === "eth_feeHistory" && costsGas(ctx) ? withOurPrice(result) : result;
}

/** Wallets need a tip, and not every node suggests one: then they get the one that the service itself pays. */
function asTip(error: unknown): string {
  if (error instanceof RpcError) return `0x${priorityFeeFallback.toString(16)}`;
  throw error;
}

/** The service's own transactions pay nothing, so the node's fee history would suggest too low a price. */
function withOurPrice(history: unknown): unknown {
  if (!isRecord(history) || !Array.isArray(history["reward"])) return history;
  const ours = `0x${weiPerGas.toString(16)}`;
  const raise = (paid: unknown): unknown =>
    isQuantity(paid) && BigInt(paid) > weiPerGas ? paid : ours;
  return {
    ...history,
    reward: history["reward"].map((each: unknown) =>
      Array.isArray(each) ? each.map(raise) : each,
    ),
  };
}

/**
 * Sends a transaction and returns its hash. On the embedded chain it is then in the journal and will be mined;
 * elsewhere the node has it.
 */
async function send(ctx: ChainContext, raw: unknown): Promise<Hex> {
  if (typeof raw !== "string" || !/^0x(?:[0-9a-fA-F]{2})+$/.test(raw))
    throw new RpcError(codes.params, "a transaction is hex");
  const lower = raw.toLowerCase() as Hex;
  if (costsGas(ctx)) checkPrice(lower, weiPerGas);
  const { relayNode: node, isEmbedded } = ctx.chain;
  const hash = hexOfBytes(keccakOfHex(lower));
  if (isEmbedded) await node.submit([lower]);
  else await hand(node, { raw: lower, hash });
  return hash;
}

/** Passes a transaction on to the node. A refusal is thrown to the sender; that the node has it already is none. */
async function hand(node: ChainNode, { raw, hash }: { raw: Hex; hash: Hex }): Promise<void> {
  try {
    await node.request("eth_sendRawTransaction", [raw]);
  } catch (error) {
    if (isHeldAlready(error)) return;
    if (!(error instanceof RpcError)) throw error;
    if (!isRecord(await node.request("eth_getTransactionByHash", [hash]))) throw error;
  }
}

/** Refuses overrides of state or block, and bounds the gas. */
function checkCall(params: Params): Params {
  const [call, block = "latest", ...overrides] = params;
  // Not dropped silently: the answer would be to another question.
  if (overrides.some((each) => each !== undefined && each !== null))
    throw new RpcError(codes.params, "overrides are not available here");
  if (!isRecord(call)) throw new RpcError(codes.params, "the call must be an object");
  refuseOtherSpelling(call, ["gas"]);
  const gas = call["gas"] === undefined ? callGasMax : quantity(call["gas"], "gas");
  const bounded = { ...call, gas: `0x${(gas > callGasMax ? callGasMax : gas).toString(16)}` };
  return [bounded, block];
}

async function checkLogs(params: Params, node: ChainNode): Promise<Params> {
  const [filter] = params;
  if (!isRecord(filter)) throw new RpcError(codes.params, "the filter must be an object");
  refuseOtherSpelling(filter, ["fromBlock", "toBlock", "blockHash"]);
  // Not for null: nodes would then search the range of blocks beside it, unbounded.
  if (typeof filter["blockHash"] === "string") return [filter];
  const answer = await node.request("eth_blockNumber", []);
  if (!isQuantity(answer)) throw new NodeAway("the chain's node tells no block number");
  const head = BigInt(answer);
  const from = blockNumberOf(filter["fromBlock"], head);
  const to = blockNumberOf(filter["toBlock"], head);
  if (to - from < 0n || to - from >= BigInt(logBlocksMax))
    throw new RpcError(
      codes.params,
      `fromBlock and toBlock must span at most ${logBlocksMax} blocks`,
    );
  const bounds = { fromBlock: `0x${from.toString(16)}`, toBlock: `0x${to.toString(16)}` };
  return [{ ...filter, ...bounds }];
}

/** Many nodes match names case-insensitively, and the last one wins: `GAS` would evade the bound on `gas`. */
function refuseOtherSpelling(
  given: Readonly<Record<string, unknown>>,
  names: readonly string[],
): void {
  const isOther = (member: string): boolean =>
    names.some((name) => name !== member && name.toLowerCase() === member.toLowerCase());
  const other = Object.keys(given).find(isOther);
  if (other !== undefined)
    throw new RpcError(codes.params, `${other.slice(0, 20)} is spelled otherwise`);
}

/** By default, and for all tags but `earliest`, the newest block. */
function blockNumberOf(value: unknown, head: bigint): bigint {
  if (value === "earliest") return 0n;
  const isNewest = [undefined, null, "latest", "pending", "safe", "finalized"].includes(
    value as string | null | undefined,
  );
  return isNewest ? head : quantity(value, "a block number");
}

function checkFeeHistory(params: Params): Params {
  const [count, newest = "latest", percentiles = []] = params;
  const blocks = quantity(
    typeof count === "number" ? `0x${count.toString(16)}` : count,
    "blockCount",
  );
  if (blocks > BigInt(feeBlocksMax))
    throw new RpcError(codes.params, `at most ${feeBlocksMax} blocks`);
  const isShort = Array.isArray(percentiles) && percentiles.length <= 10;
  if (!isShort) throw new RpcError(codes.params, "at most 10 percentiles");
  return [`0x${blocks.toString(16)}`, newest, percentiles];
}

function isQuantity(value: unknown): value is string {
  return typeof value === "string" && /^0x[0-9a-fA-F]{1,64}$/.test(value);
}

function quantity(value: unknown, name: string): bigint {
  if (!isQuantity(value)) throw new RpcError(codes.params, `${name} must be a hex quantity`);
  return BigInt(value);
}

function errorOf(id: string | number | null, { code, message, data }: RpcError): object {
  return { jsonrpc: "2.0", id, error: { code, message, ...(data === undefined ? {} : { data }) } };
}
