// A chain behind the relay of the fake broker, and a relay that breaks, lags and lies when told to.
import type { WalletStorage } from "../src/index.ts";

/** Of the chain's node: its blocks are soon final, so that a test mines few. */
export const slotsPerEpoch = 1;
/** More than lie between the newest block and the final one. */
export const blocksToFinal = 2 * slotsPerEpoch + 3;

/** The chain itself. */
interface Node {
  readonly url: string;
  rpc<T>(method: string, params?: readonly unknown[]): Promise<T>;
}

export interface FakeChain {
  readonly node: Node;
  /** What a wallet calls with: the relay leads here, all else goes where it should. */
  readonly fetch: typeof fetch;
  /** Answers in place of the chain's own, by method. */
  readonly lies: Map<string, string | null>;
  /** Whether the answers to transactions get lost, although these reach the chain. */
  isDown: boolean;
  /** Whether transactions do not even reach the chain. */
  swallows: boolean;
  /** How often something was sent over it. */
  sendsSeen: number;
  readonly fund: (account: string, wei: bigint) => Promise<void>;
  readonly balanceOf: (account: string) => Promise<bigint>;
  /** A relay that keeps its answer to such calls until it is released. */
  slowAt(isSlow: (body: string) => boolean): {
    slow: typeof fetch;
    looked: Promise<void>;
    release: () => void;
  };
  /** A storage whose process is killed after this many of its operations, with the relay that it takes along. */
  killedAfter(
    operationsMax: number,
    inner: WalletStorage,
  ): { storage: WalletStorage; fetch: typeof fetch };
}

interface RpcCall {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** @param broker its origin */
export function openFakeChain(broker: string, node: Node): FakeChain {
  const chain: FakeChain = {
    node,
    lies: new Map(),
    isDown: false,
    swallows: false,
    sendsSeen: 0,
    fetch: async (url, init) =>
      url === `${broker}/w/chain` ? relay(chain, init) : fetch(url, init),
    fund: async (account, wei) =>
      void (await node.rpc("anvil_setBalance", [account, `0x${wei.toString(16)}`])),
    balanceOf: async (account) =>
      BigInt(await node.rpc<string>("eth_getBalance", [account, "latest"])),
    slowAt: (isSlow) => slowAt(chain, isSlow),
    killedAfter: (operationsMax, inner) => killedAfter(chain, operationsMax, inner),
  };
  return chain;
}

async function relay(chain: FakeChain, init?: RequestInit): Promise<Response> {
  const { node, lies } = chain;
  const body = typeof init?.body === "string" ? init.body : "{}";
  const asked = JSON.parse(body) as RpcCall | readonly RpcCall[];
  const calls = "method" in asked ? [asked] : asked;
  const answerWithLies = async ({ id, method, params }: RpcCall): Promise<object> => {
    const result = lies.has(method) ? lies.get(method) : await node.rpc(method, params);
    return { jsonrpc: "2.0", id, result };
  };
  if (calls.some(({ method }) => lies.has(method))) {
    const answers = await Promise.all(calls.map(answerWithLies));
    return Response.json("method" in asked ? answers[0] : answers);
  }
  const isSend = body.includes("eth_sendRawTransaction");
  if (chain.swallows && isSend) throw new TypeError("the connection broke");
  const answer = await fetch(node.url, init);
  if (isSend) chain.sendsSeen += 1;
  if (chain.isDown && isSend) throw new TypeError("the connection broke");
  return answer;
}

function slowAt(
  chain: FakeChain,
  isSlow: (body: string) => boolean,
): ReturnType<FakeChain["slowAt"]> {
  const [looked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow: typeof fetch = async (url, init) => {
    const answer = await chain.fetch(url, init);
    if (typeof init?.body !== "string" || !isSlow(init.body)) return answer;
    looked.resolve();
    await released.promise;
    return answer;
  };
  return { slow, looked: looked.promise, release: released.resolve };
}

function killedAfter(
  chain: FakeChain,
  operationsMax: number,
  inner: WalletStorage,
): ReturnType<FakeChain["killedAfter"]> {
  let operations = 0;
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    operations += 1;
    if (operations > operationsMax) throw new Error("killed");
    return work();
  };
  const storage: WalletStorage = {
    get: async (key) => step(async () => inner.get(key)),
    put: async (key, text) => step(async () => inner.put(key, text)),
    add: async (key, text) => step(async () => inner.add(key, text)),
    remove: async (key) => step(async () => inner.remove(key)),
    list: async (folder) => step(async () => inner.list(folder)),
  };
  const killedFetch: typeof fetch = async (url, init) => {
    if (operations >= operationsMax) throw new Error("killed");
    return chain.fetch(url, init);
  };
  return { storage, fetch: killedFetch };
}
