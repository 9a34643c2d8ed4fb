import type { Address } from "@svc/protocol";
import { credentialRegistry, settlement } from "@svc/contracts";
import { createPublicClient, custom, defineChain, encodeDeployData, type PublicClient } from "viem";
import type { Ctx } from "../platform/context.ts";
import { type ChainTotals, openChainMetrics } from "./chain-metrics.ts";
import type { Chain } from "./context.ts";
import { type Deployment, ensureContracts, planDeployment } from "./deployment.ts";
import { openEmbeddedChain } from "./embedded-chain.ts";
import type { ChainNode } from "./node.ts";
import { openRemoteNode } from "./remote-node.ts";
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
  if (identity.chainId !== node.chainId)
    throw new Error(
      `this installation settles on chain ${identity.chainId}, but the node is of chain ${node.chainId}`,
    );
  await store.addSigner(ctx.db, signer.address);
  const deployments = planContracts(ctx, { signer, identity });
  const opened = stack.move();
  const chain: Chain = {
    chainId: node.chainId,
    contracts: {
      registry: deployments.registry.address,
      settlement: deployments.settlement.address,
    },
    operator: signer.address,
    node,
    reader: openReader(node, isEmbedded),
    isEmbedded,
    confirmations,
    signer,
    metrics: openChainMetrics(ctx, async () => readTotals(ctx, signer.address)),
    [Symbol.asyncDispose]: async () => opened.disposeAsync(),
  };
  try {
    await ensureContracts({ ...ctx, chain }, [deployments.registry, deployments.settlement]);
    if (identity.registry === null) await store.keepContracts(ctx.db, chain.contracts);
    return chain;
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

/** Both at once; when one fails, the other is closed. */
async function openBoth(ctx: Ctx, stack: AsyncDisposableStack): Promise<[ChainNode, Signer]> {
  const { chainRpcUrl } = ctx.config;
  const [node, signer] = await Promise.allSettled([
    chainRpcUrl === null ? openEmbeddedChain(ctx) : openRemoteNode(chainRpcUrl),
    openSigner(ctx),
  ]);
  if (node.status === "fulfilled") stack.use(node.value);
  if (signer.status === "fulfilled") stack.use(signer.value);
  if (node.status === "rejected") throw node.reason;
  if (signer.status === "rejected") throw signer.reason;
  return [node.value, signer.value];
}

/** Contracts keep the addresses of the first start: with another signer or salt they would be others, and empty. */
function planContracts(
  ctx: Ctx,
  { signer, identity }: { signer: Signer; identity: store.ChainIdentity },
): Record<"registry" | "settlement", Deployment> {
  const salt = ctx.config.contractSalt;
  const registry = planDeployment({
    name: "CredentialRegistry",
    salt,
    initCode: encodeDeployData({
      abi: credentialRegistry.abi,
      bytecode: credentialRegistry.bytecode,
      args: [signer.address],
    }),
    codeHash: credentialRegistry.deployedBytecodeHash,
  });
  const settled = planDeployment({
    name: "Settlement",
    salt,
    initCode: settlement.bytecode,
    codeHash: settlement.deployedBytecodeHash,
  });
  return {
    registry: { ...registry, address: identity.registry ?? registry.address },
    settlement: { ...settled, address: identity.settlement ?? settled.address },
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
