import { isRecord, type Address, type Hex, type Hex32 } from "@svc/protocol";
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import { call, type Call, elementsOf, hostOf, membersOf, refusalOfAnswer } from "./transport.ts";

/** What has to be known about the chain to make a transaction. */
export interface ChainState {
  readonly balanceWei: bigint;
  /** The sender's next nonce, counting transactions that wait. */
  readonly nonce: number;
  /** The most that a unit of gas may cost, and the tip within it. */
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** A transaction that was taken into a block. */
interface Inclusion {
  readonly hash: Hex32;
  readonly isReverted: boolean;
}

/** What a chain says about a transaction and about its sender's nonces. */
interface Fate {
  /** How many of the sender's nonces final blocks have used; 0 if the chain reports no final block. */
  readonly finalCount: number;
  /** Null while no block has it. */
  readonly inclusion: Inclusion | null;
  /** Whether the chain has it, in a block or waiting; true also if the chain does not say. */
  readonly isKnown: boolean;
}

/** The chain behind a broker, by its relay `/w/chain`. */
export interface ChainClient {
  /** @throws {WalletRefusal} chain_refused, unreachable */
  readChainId(): Promise<number>;
  /** Asks a contract. @param data selector and arguments @throws {WalletRefusal} chain_refused, unreachable */
  read(contract: Address, data: Hex): Promise<string>;
  /** @throws {WalletRefusal} chain_refused, unreachable */
  readState(sender: Address): Promise<ChainState>;
  /**
   * Reads all of it in one call, so that a single node behind the relay answers.
   *
   * @throws {WalletRefusal} unreachable
   */
  readFate(sender: Address, hash: Hex32): Promise<Fate>;
  /** @returns units of gas @throws {WalletRefusal} chain_refused when the transaction would fail, and for no estimate */
  estimateGas(tx: Readonly<Record<string, string>>): Promise<bigint>;
  /**
   * Sends it; it is not an error if the chain has it already.
   *
   * @throws {WalletRefusal} chain_refused if the chain does not accept it
   */
  send(raw: Hex, hash: Hex32): Promise<void>;
  /** @throws {WalletRefusal} chain_refused when it takes longer than two minutes */
  waitFor(hash: Hex32): Promise<Inclusion>;
}

/** What a transaction takes before any code runs (EIP-2028); with a smaller limit it is never mined. */
const gasMin = 21_000n;
const waitMsMax = 120_000;
/** Between two looks: short at first, for chains that mine at once. */
const pauseMs = { first: 25, max: 500 };

/** Opens the relay of a broker. */
export function openChain(
  { fetch: send }: Pick<WalletContext, "fetch">,
  broker: string,
): ChainClient {
  const { ask, askAtOnce } = askChain(send, broker);
  const number = async (method: string, params: readonly unknown[]): Promise<bigint> =>
    quantityOf(await ask(method, params), method);
  const knows = async (hash: Hex32): Promise<boolean> =>
    isRecord(await ask("eth_getTransactionByHash", [hash]));
  return {
    readChainId: async () => idOf(await number("eth_chainId", [])),
    async read(to, data) {
      const answer = await ask("eth_call", [{ to, data }, "latest"]);
      return typeof answer === "string" ? answer : "0x";
    },
    async readState(sender) {
      const [balanceWei, nonce, price, tip] = await Promise.all([
        number("eth_getBalance", [sender, "latest"]),
        number("eth_getTransactionCount", [sender, "pending"]),
        number("eth_gasPrice", []),
        number("eth_maxPriorityFeePerGas", []),
      ]);
      // This is still enough after six full blocks, each of which raises the price by an eighth (EIP-1559).
      const maxFeePerGas = price * 2n;
      return {
        balanceWei,
        nonce: countOf(nonce, "eth_getTransactionCount"),
        maxFeePerGas,
        maxPriorityFeePerGas: tip < maxFeePerGas ? tip : maxFeePerGas,
      };
    },
    async readFate(sender, hash) {
      const [count, receipt, transaction] = await askAtOnce([
        ["eth_getTransactionCount", [sender, "finalized"]],
        ["eth_getTransactionReceipt", [hash]],
        ["eth_getTransactionByHash", [hash]],
      ]);
      const isSaid = [receipt, transaction].every(
        (reply) => reply?.result !== undefined && !reply.error,
      );
      return {
        finalCount: isQuantity(count?.result) ? Number(count.result) : 0,
        inclusion: inclusionOf(hash, receipt?.result),
        isKnown: !isSaid || isRecord(transaction?.result),
      };
    },
    estimateGas: async (tx) => gasOf(await number("eth_estimateGas", [tx])),
    async send(raw, hash) {
      try {
        await ask("eth_sendRawTransaction", [raw]);
      } catch (error) {
        const isThere =
          error instanceof WalletRefusal && error.code === "chain_refused" && (await knows(hash));
        if (!isThere) throw error;
      }
    },
    async waitFor(hash) {
      const endMs = performance.now() + waitMsMax;
      for (let ms = pauseMs.first; performance.now() < endMs; ms = Math.min(2 * ms, pauseMs.max)) {
        const inclusion = inclusionOf(hash, await ask("eth_getTransactionReceipt", [hash]));
        if (inclusion !== null) return inclusion;
        await new Promise((resolve) => setTimeout(resolve, ms));
      }
      throw new WalletRefusal(
        "chain_refused",
        `the chain has not taken ${hash} in yet; approve the same link again to go on waiting`,
      );
    },
  };
}

/** What the chain answers to one call, by JSON-RPC 2.0. */
interface Reply {
  readonly result?: unknown;
  readonly error?: unknown;
}

type Question = readonly [method: string, params: readonly unknown[]];

function askChain(send: WalletContext["fetch"], broker: string) {
  const url = `${broker}/w/chain`;
  const post = async (body: Call["body"] & object): Promise<string | null> => {
    const answer = await call(send, { url, body });
    if (answer.status !== 200) throw refusalOfAnswer(url, answer);
    return answer.text;
  };
  const resultOf = ({ result, error }: Reply): unknown => {
    if (error === undefined) return result;
    const { message } = isRecord(error) ? error : {};
    const said = typeof message === "string" ? message.slice(0, 300) : "without saying why";
    throw new WalletRefusal("chain_refused", `the chain at ${hostOf(url)} refuses: ${said}`);
  };
  return {
    ask: async (...[method, params]: Question): Promise<unknown> =>
      resultOf(membersOf(await post({ jsonrpc: "2.0", id: 1, method, params }))),
    /** Asks all questions in one call. @returns the replies in the order of the questions, as far as there are any */
    askAtOnce: async (questions: readonly Question[]): Promise<readonly (Reply | undefined)[]> => {
      const calls = questions.map(([method, params], id) => ({
        jsonrpc: "2.0",
        id,
        method,
        params,
      }));
      const replies = elementsOf(await post(calls)).filter(isRecord);
      return calls.map(({ id }) => replies.find((each) => each["id"] === id));
    },
  };
}

function inclusionOf(hash: Hex32, receipt: unknown): Inclusion | null {
  if (!isRecord(receipt) || typeof receipt["blockNumber"] !== "string") return null;
  return { hash, isReverted: receipt["status"] !== "0x1" };
}

function quantityOf(value: unknown, method: string): bigint {
  if (!isQuantity(value))
    throw new WalletRefusal("chain_refused", `the chain's answer to ${method} is not a number`);
  return BigInt(value);
}

/** No chain has the id zero (EIP-155), and no transaction can name it. */
function idOf(value: bigint): number {
  if (value > 0n) return countOf(value, "eth_chainId");
  throw new WalletRefusal("chain_refused", "the chain answers eth_chainId with zero");
}

function gasOf(value: bigint): bigint {
  if (value >= gasMin) return value;
  throw new WalletRefusal("chain_refused", "the chain estimates less gas than any call takes");
}

function countOf(value: bigint, method: string): number {
  if (value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
  throw new WalletRefusal("chain_refused", `the chain answers ${method} with no such number`);
}

function isQuantity(value: unknown): value is string {
  return typeof value === "string" && /^0x[0-9a-f]{1,64}$/i.test(value);
}
