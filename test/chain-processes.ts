// Processes of one installation over a chain of the test's own, with a clock that the test moves.
import { randomBytes } from "node:crypto";
import { credentialRegistry } from "@svc/contracts";
import type { Address } from "@svc/protocol";
import { encodeFunctionData } from "viem";
import {
  type Chain,
  type ChainContext,
  chainJobs,
  enqueueTransaction,
  type FinalHandlers,
  type FinalTransaction,
  openChain,
} from "../service/src/chain/index.ts";
import { openContext } from "../service/src/compose.ts";
import { parseConfig } from "../service/src/platform/config/config.ts";
import { openTestDatabase } from "../service/src/platform/database/test-database.ts";
import type { Anvil } from "./anvil.ts";

/** The key that the test chain funds. */
export const fundedKey = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

export interface Installation extends AsyncDisposable {
  readonly environment: NodeJS.ProcessEnv;
  /** Moves the time of every process. */
  advance(seconds: number): void;
  openProcess(changed?: NodeJS.ProcessEnv): Promise<SettlingProcess>;
}

export interface SettlingProcess extends AsyncDisposable {
  readonly ctx: ChainContext;
  readonly chain: Chain;
  /** Everything that was announced as final here, in order. */
  readonly done: FinalTransaction[];
  /** One run of the outbox. */
  work(): Promise<void>;
  /** Queues a settlement with a root of its own; `extraBytes`, which the contract does not read, make it cost more. */
  queue(subjectId: string, options?: { extraBytes?: number; kind?: string }): Promise<string>;
  /** One run of the outbox with these functions of the node replaced, for faults between the process and its chain. */
  workWith(node: Partial<Chain["node"]>): Promise<void>;
}

/**
 * A fresh database and the settings that its processes share. Over a chain of the test's own the clock starts now and
 * stands still; without one there is the embedded chain, and the clock runs.
 */
export async function openInstallation(
  anvil: Pick<Anvil, "url"> | null,
  changed: NodeJS.ProcessEnv = {},
): Promise<Installation> {
  const database = await openTestDatabase();
  let offsetMs = 0;
  const startMs = Date.now();
  const nowMs = (): number => (anvil === null ? Date.now() : startMs) + offsetMs;
  const clock = { nowMs, now: () => Math.floor(nowMs() / 1000) };
  const environment: NodeJS.ProcessEnv = {
    DATABASE_URL: database.url,
    MASTER_KEY: "11".repeat(32),
    LOG_LEVEL: "silent",
    CHAIN: "on",
    ...(anvil === null ? {} : { CHAIN_RPC_URL: anvil.url, SIGNER_KEY: fundedKey }),
    ...changed,
  };
  return {
    environment,
    advance(seconds) {
      offsetMs += seconds * 1000;
    },
    async openProcess(more = {}) {
      await using stack = new AsyncDisposableStack();
      const base = stack.use(await openContext(parseConfig({ ...environment, ...more })));
      const chain = stack.use(await openChain({ ...base, clock }, { mayBeAway: true }));
      const ctx: ChainContext = { ...base, clock, chain };
      const done: FinalTransaction[] = [];
      const opened = stack.move();
      return {
        ctx,
        chain,
        done,
        work: async () => runOutbox(ctx, done),
        workWith: async (node) =>
          runOutbox({ ...ctx, chain: { ...chain, node: { ...plainNode(chain), ...node } } }, done),
        queue: async (subjectId, { extraBytes = 0, kind = "test.settle" } = {}) =>
          ctx.db.transaction(async (tx) =>
            enqueueTransaction(ctx, tx, {
              kind,
              subjectId,
              to: chain.contracts.settlement,
              data: initiateCall(extraBytes),
            }),
          ),
        [Symbol.asyncDispose]: async () => opened.disposeAsync(),
      };
    },
    [Symbol.asyncDispose]: async () => database[Symbol.asyncDispose](),
  };
}

/** Makes another account the administrator of the registry, in the two steps and the day that the contract wants. */
export async function handOverRegistry(
  anvil: Anvil,
  { contracts, operator }: Pick<Chain, "contracts" | "operator">,
  heir: Address,
): Promise<void> {
  const { abi } = credentialRegistry;
  const send = async (from: Address, data: string): Promise<void> => {
    await anvil.rpc("anvil_impersonateAccount", [from]);
    await anvil.rpc("eth_sendTransaction", [{ from, to: contracts.registry, data }]);
    await anvil.mine();
  };
  const begin = { abi, functionName: "beginDefaultAdminTransfer", args: [heir] } as const;
  await send(operator, encodeFunctionData(begin));
  await anvil.rpc("evm_increaseTime", [86_401]);
  await anvil.mine();
  await send(heir, encodeFunctionData({ abi, functionName: "acceptDefaultAdminTransfer" }));
}

/** The embedded node is an instance of a class, whose methods a spread would lose. */
function plainNode({ node }: Chain): Chain["node"] {
  return {
    readChainId: async () => node.readChainId(),
    request: async (method, params) => node.request(method, params),
    submit: async (raws) => node.submit(raws),
    [Symbol.asyncDispose]: async () => node[Symbol.asyncDispose](),
  };
}

async function runOutbox(ctx: ChainContext, done: FinalTransaction[]): Promise<void> {
  const handlers: FinalHandlers = {
    "test.settle": async (_tx, more) => void done.push(...more),
  };
  await chainJobs(ctx, handlers)
    .find((job) => job.name === "chain-outbox")
    ?.run(AbortSignal.any([]));
}

/** `initiate(bytes32)` with a random root. */
function initiateCall(extraBytes: number): `0x${string}` {
  return `0x5ede7516${randomBytes(32 + extraBytes).toString("hex")}`;
}
