// What the outside may ask of the chain (running: `chain.rpcUrl`). Everything that is not here is refused: `anvil_*`,
// `evm_*`, `hardhat_*`, `debug_*` and whatever a node learns one day.
import { type Hex, isRecord } from "@svc/protocol";
import { keccak256 } from "viem/utils";
import { createBodyTurns } from "../platform/http/body-turns.ts";
import { checkPrice } from "./admission.ts";
import { priorityFeeFallback } from "./chain-view.ts";
import type { ChainContext } from "./context.ts";
import { createFairTurns } from "./fair-turns.ts";
import { type ChainNode, NodeAway, RpcError } from "./node.ts";
import { isHeldAlready } from "./refusal.ts";

/** Gas of one call: enough to verify a signature by ERC-6492, and at most a few tenths of a second of computing. */
const callGasMax = 10_000_000n;
/** Blocks of one search. */
const logBlocksMax = 10_000;
const feeBlocksMax = 100;

/**
 * What others pay per unit of gas on the embedded chain outside `dev`. Their computation is repeated at every start, so
 * it costs coin, which the operator hands out.
 */
const weiPerGas = 1_000_000_000n;

type Params = readonly unknown[];
type Check = (params: Params, node: ChainNode) => Params | Promise<Params>;

const none: Check = () => [];
const upTo =
  (count: number): Check =>
  (params) =>
    params.slice(0, count);

/** The methods that are passed on, each with what remains of its parameters. */
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
 * Calls that may compute for long. They take turns by caller, so that the node has time left for the service itself,
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
 * Calls whose answers may be long. Few are under way at once, since each answer is in memory as a whole. What waits holds
 * little, and of a network there are 200 at most (four requests), so that many networks together do not fill the queue.
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

/** What is sent is read here, before anybody has paid for anything: all of one request would take a tenth of a second. */
const takeSendingTurn = createBodyTurns();

function tooManyWait(): RpcError {
  return new RpcError(codes.busy, "too many calls wait; try again later");
}

/**
 * Characters of all answers to one request. Whoever asks pays nothing for what a contract returns, reverts with or
 * emits, and a single call of 10 million gas can return 2 MB.
 */
const answersLengthMax = 4 * 1024 * 1024;

/**
 * Answers the calls of one request, in their order, each as JSON; never throws. What does not fit any more is answered
 * with an error.
 *
 * @param caller who asks, as for {@link answerCall}
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
 * Answers one JSON-RPC 2.0 call; never throws.
 *
 * @param caller who asks: what its calls compute is done by turns with those of others
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

/** Wallets need a tip, and not every node suggests one: they get the one that the service pays itself. */
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
 * The embedded chain writes it to its journal first, so there an answer means that it will be mined; elsewhere it means
 * that the node has it.
 */
async function send(ctx: ChainContext, raw: unknown): Promise<Hex> {
  if (typeof raw !== "string" || !/^0x(?:[0-9a-fA-F]{2})+$/.test(raw))
    throw new RpcError(codes.params, "a transaction is hex");
  const lower = raw.toLowerCase() as Hex;
  if (costsGas(ctx)) checkPrice(lower, weiPerGas);
  const { relayNode: node, isEmbedded } = ctx.chain;
  const hash = keccak256(lower);
  if (isEmbedded) await node.submit([lower]);
  else await hand(node, { raw: lower, hash });
  return hash;
}

/**
 * A refusal by the node goes back to the sender, since the service does not try again. Sending a known transaction
 * again is no error.
 */
async function hand(node: ChainNode, { raw, hash }: { raw: Hex; hash: Hex }): Promise<void> {
  try {
    await node.request("eth_sendRawTransaction", [raw]);
  } catch (error) {
    if (isHeldAlready(error)) return;
    if (!(error instanceof RpcError)) throw error;
    if (!isRecord(await node.request("eth_getTransactionByHash", [hash]))) throw error;
  }
}

/** Without overrides of state or block, and with a bound on its gas. */
function checkCall(params: Params): Params {
  const [call, block = "latest", ...overrides] = params;
  // If they were dropped silently, the answer would be to another question.
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
  // To nodes null is no hash: they would search the blocks that are named beside it.
  if (typeof filter["blockHash"] === "string") return [filter];
  const told = await node.request("eth_blockNumber", []);
  if (!isQuantity(told)) throw new NodeAway("the chain's node tells no block number");
  const head = BigInt(told);
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

/** Many nodes read the name of a member in any case, the last one that is given: it would get round the bound. */
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

/** Both bounds of a search are the newest block where nothing is said. */
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
