// A chain outside the service, which a test may reorganise, empty and lie for.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { startBoundProcess } from "../service/src/platform/process/bound-process.ts";

export interface Anvil extends AsyncDisposable {
  readonly url: string;
  readonly chainId: number;
  rpc<T = unknown>(method: string, params?: readonly unknown[]): Promise<T>;
  /** Mines this many blocks, which are empty if nothing waits. */
  mine(blocks?: number): Promise<void>;
  /** Replaces the newest blocks by as many empty ones; their transactions do not return to the pool. */
  reorganise(depth: number): Promise<void>;
  /** Whether a transaction that is sent gets its block at once, or waits for `mine`. */
  setAutomine(on: boolean): Promise<void>;
}

const binary = (): string => {
  const arch = process.arch === "arm64" ? "arm64" : "amd64";
  const name = `@foundry-rs/anvil-${process.platform === "darwin" ? "darwin" : "linux"}-${arch}`;
  return join(import.meta.dirname, `../node_modules/${name}/bin/anvil`);
};

/** A slower node counts as hanging, so that its test fails with a message before the runner ends it. */
const patienceMs = 60_000;

/**
 * Starts a node that mines by itself until told otherwise, and that keeps the state of 64 blocks. A block is final once
 * two epochs of `slotsPerEpoch` blocks lie above it.
 *
 * @param options.behind the new node begins with the blocks that this one has now, then goes its own way
 */
export async function startAnvil(
  options: { chainId?: number; slotsPerEpoch?: number; behind?: Pick<Anvil, "url"> } = {},
): Promise<Anvil> {
  const { chainId = 31_999, slotsPerEpoch = 32, behind } = options;
  const { promise: listening, resolve, reject } = Promise.withResolvers<string>();
  const late = setTimeout(() => reject(new Error("anvil does not listen")), patienceMs);
  const child = startBoundProcess(
    [
      [binary(), "--host", "127.0.0.1", "--port", "0", "--no-cors", "--chain-id", String(chainId)],
      ["--accounts", "1", "--hardfork", "osaka", "--order", "fifo", "--prune-history", "64"],
      ["--enable-tx-gas-limit", "--slots-in-an-epoch", String(slotsPerEpoch)],
      behind === undefined ? [] : ["--fork-url", behind.url],
    ].flat(),
    {
      account: null,
      log: (line) => {
        const [, address] = /^Listening on (\S+)/.exec(line) ?? [];
        if (address !== undefined) resolve(`http://${address}`);
      },
    },
  );
  const exited = child.exited.then((status) => {
    throw new Error(`anvil ended with status ${status}`);
  });
  exited.catch(() => undefined);
  const url = await Promise.race([listening, exited]).finally(() => clearTimeout(late));
  child.unref();
  const rpc = async <T>(method: string, params: readonly unknown[] = []): Promise<T> => {
    const answer = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      signal: AbortSignal.timeout(patienceMs),
    });
    const body = (await answer.json()) as { result: T; error?: { message: string } };
    assert.equal(body.error, undefined, `${method}: ${body.error?.message}`);
    return body.result;
  };
  return {
    url,
    chainId,
    rpc,
    mine: async (blocks = 1) => void (await rpc("anvil_mine", [`0x${blocks.toString(16)}`])),
    reorganise: async (depth) => void (await rpc("anvil_reorg", [depth, []])),
    setAutomine: async (on) => void (await rpc("evm_setAutomine", [on])),
    [Symbol.asyncDispose]: async () => void (await child.stop()),
  };
}

/** What a call gets instead of the chain's answer; `pass` for the chain's own. */
type Fault =
  | "pass"
  | "hang"
  | "broken"
  | { readonly result: unknown }
  /** The chain's own result, as another node would tell it. */
  | { readonly revise: (result: unknown) => unknown }
  | { readonly error: { readonly code: number; readonly message: string } };

export interface Gate extends AsyncDisposable {
  readonly url: string;
  /** Decides over every call from now on. */
  decide(fault: (method: string, params: readonly unknown[]) => Fault): void;
  /** Calls that came through, by method. */
  readonly calls: Map<string, number>;
}

interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

const passAll = (): Fault => "pass";

/** Opens a proxy before a chain's node that may hang, break or lie. */
export async function openGate(anvil: Anvil): Promise<Gate> {
  let decide: (method: string, params: readonly unknown[]) => Fault = passAll;
  const calls = new Map<string, number>();
  const answer = async (call: Call): Promise<unknown> => {
    calls.set(call.method, (calls.get(call.method) ?? 0) + 1);
    const fault = decide(call.method, call.params);
    const isOwn = typeof fault === "object" && "revise" in fault;
    if (typeof fault === "object" && !isOwn) return { jsonrpc: "2.0", id: call.id, ...fault };
    if (fault === "broken") throw new Error("broken");
    const passed = await fetch(anvil.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(call),
    });
    const said = (await passed.json()) as Record<string, unknown>;
    return isOwn && "result" in said ? { ...said, result: fault.revise(said["result"]) } : said;
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = JSON.parse(await text(request)) as Call | Call[];
    const given = Array.isArray(body) ? body : [body];
    if (given.some((call) => decide(call.method, call.params) === "hang")) return;
    try {
      const answers: unknown[] = [];
      // In their order: a chain takes transactions one after the other.
      for (const call of given) answers.push(await answer(call));
      response.end(JSON.stringify(Array.isArray(body) ? answers : answers[0]));
    } catch {
      response.writeHead(502).end("<html>bad gateway</html>");
    }
  };
  const server = createServer((request, response) => void serve(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/?key=canary`,
    calls,
    decide: (fault) => {
      decide = fault;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
