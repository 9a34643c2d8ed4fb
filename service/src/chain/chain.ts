import type { Address } from "@svc/protocol";
import { createPublicClient, custom, defineChain, formatEther, type PublicClient } from "viem";
import type { Ctx } from "../platform/context.ts";
import { type ChainTotals, openChainMetrics } from "./chain-metrics.ts";
import { readBalance } from "./chain-view.ts";
import type { Chain } from "./context.ts";
import { planContracts } from "./contract-plan.ts";
import { type Deployment, ensureContracts } from "./deployment.ts";
import { openEmbeddedChain } from "./embedded-chain.ts";
import { type ChainNode, NodeAway } from "./node.ts";
import { openSigner } from "./operator.ts";
import type { Signer } from "./signer.ts";
import * as store from "./store.ts";

/** Blocks come with each transaction here, and every few seconds elsewhere. */
const pollMs = { embedded: 100, remote: 3_000 };

/**
 * Opens the chain: starts the embedded one or reaches the configured node, opens the signer, and makes sure that the
 * contracts are there.
 *
 * @throws when it is another chain than at the first start, other code stands at a contract's address, or the node,
 *   the signer or the deployer cannot be had
 */
export async function openChain(ctx: Ctx): Promise<Chain> {
  await using stack = new AsyncDisposableStack();
  const { chainRpcUrl, confirmations } = ctx.config;
  const isEmbedded = chainRpcUrl === null;
  const [node, signer] = await openBoth(ctx, stack);
  const identity = await store.keepIdentity(ctx.db, node.chainId);
  refuseOther(node, identity);
  await store.addSigner(ctx.db, signer.address);
  const operator = signer.address;
  const deployments = planContracts({ salt: ctx.config.contractSalt, operator, identity });
  const { registry, settlement, live, sandbox } = addressesOf(deployments);
  const opened = stack.move();
  const chain: Chain = {
    chainId: node.chainId,
    contracts: { registry, settlement, factories: { live, sandbox } },
    operator,
    node,
    reader: openReader(node, isEmbedded),
    isEmbedded,
    confirmations,
    signer,
    metrics: openChainMetrics(ctx, async () => readTotals(ctx, operator)),
    [Symbol.asyncDispose]: async () => opened.disposeAsync(),
  };
  try {
    await againWhenOwnerGoes(isEmbedded, async () =>
      ensureContracts({ ...ctx, chain }, Object.values(deployments)),
    );
    const isNew = Object.values(identity).includes(null);
    if (isNew) await store.keepContracts(ctx.db, { registry, settlement, live, sandbox });
    return chain;
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

/** What merchants compare receipts with, and what the operator's account has left. */
export interface ChainReport {
  readonly chainId: number;
  readonly registry: Address;
  readonly settlement: Address;
  readonly liveFactory: Address;
  readonly sandboxFactory: Address;
  readonly operator: Address;
  /** Decimal. */
  readonly balanceCoins: string;
}

/** Looks at the chain without changing anything there: before the first start the contracts are where they will be. */
export async function describeChain(ctx: Ctx): Promise<ChainReport> {
  await using stack = new AsyncDisposableStack();
  const [node, signer] = await openBoth(ctx, stack);
  const unknown = { registry: null, settlement: null, live: null, sandbox: null };
  const identity = (await store.findIdentity(ctx.db)) ?? { chainId: node.chainId, ...unknown };
  refuseOther(node, identity);
  const operator = signer.address;
  const { contractSalt: salt } = ctx.config;
  const { live, sandbox, ...own } = addressesOf(planContracts({ salt, operator, identity }));
  const balance = await readBalance({ node }, operator);
  return {
    chainId: node.chainId,
    ...own,
    liveFactory: live,
    sandboxFactory: sandbox,
    operator,
    balanceCoins: formatEther(balance),
  };
}

function refuseOther(node: ChainNode, { chainId }: store.ChainIdentity): void {
  if (chainId !== node.chainId)
    throw new Error(
      `this installation settles on chain ${chainId}, but the node is of chain ${node.chainId}`,
    );
}

/** Another process takes the embedded chain over within a second or two. */
const takeoverMs = { most: 30_000, pause: 500 };

/** The process that ran the embedded chain may die while this one starts; it waits for the next. */
async function againWhenOwnerGoes(isEmbedded: boolean, work: () => Promise<void>): Promise<void> {
  const deadline = Date.now() + takeoverMs.most;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isOver = !isEmbedded || Date.now() > deadline;
      if (isOver || !(error instanceof NodeAway)) throw error;
      await new Promise((resolve) => setTimeout(resolve, takeoverMs.pause));
    }
  }
}

/** Both at once; when one fails, the other is closed. */
async function openBoth(ctx: Ctx, stack: AsyncDisposableStack): Promise<[ChainNode, Signer]> {
  const { chainRpcUrl } = ctx.config;
  const [node, signer] = await Promise.allSettled([
    chainRpcUrl === null ? openEmbeddedChain(ctx) : openRemote(chainRpcUrl),
    openSigner(ctx),
  ]);
  if (node.status === "fulfilled") stack.use(node.value);
  if (signer.status === "fulfilled") stack.use(signer.value);
  if (node.status === "rejected") throw node.reason;
  if (signer.status === "rejected") throw signer.reason;
  return [node.value, signer.value];
}

/** The HTTP client takes a tenth of a start to load; the embedded chain does without. */
async function openRemote(url: string): Promise<ChainNode> {
  const { openRemoteNode } = await import("./remote-node.ts");
  return openRemoteNode(url);
}

function addressesOf(
  deployments: Readonly<Record<store.ContractName, Deployment>>,
): Record<store.ContractName, Address> {
  const { registry, settlement, live, sandbox } = deployments;
  return {
    registry: registry.address,
    settlement: settlement.address,
    live: live.address,
    sandbox: sandbox.address,
  };
}

async function readTotals(ctx: Ctx, operator: Address): Promise<ChainTotals> {
  const { queued, sent, spent } = await store.readTotals(ctx.db, operator);
  const today = Math.floor(ctx.clock.now() / 86_400);
  return { queued, sent, spentWeiToday: spent.day === today ? spent.wei : 0n };
}

/** The one place that makes a client of the chain. */
function openReader(node: ChainNode, isEmbedded: boolean): PublicClient {
  const chain = defineChain({
    id: node.chainId,
    name: "settlement",
    nativeCurrency: { name: "coin", symbol: "coin", decimals: 18 },
    rpcUrls: { default: { http: [] } },
  });
  const request = async ({
    method,
    params,
  }: {
    method: string;
    params?: unknown;
  }): Promise<unknown> => node.request(method, Array.isArray(params) ? params : []);
  return createPublicClient({
    chain,
    transport: custom({ request }, { retryCount: 0 }),
    ccipRead: false,
    pollingInterval: isEmbedded ? pollMs.embedded : pollMs.remote,
  });
}
