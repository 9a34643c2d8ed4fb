import { credentialRegistry } from "@svc/contracts";
import type { Address } from "@svc/protocol";
import { formatEther } from "viem/utils";
import type { Ctx } from "../platform/context.ts";
import { type ChainTotals, openChainMetrics } from "./chain-metrics.ts";
import { readBalance, readNewest } from "./chain-view.ts";
import { checkReads } from "./checked-node.ts";
import type { Chain } from "./context.ts";
import { planContracts } from "./contract-plan.ts";
import { readContract } from "./contract-read.ts";
import { type Deployment, ensureContracts } from "./deployment.ts";
import { openEmbeddedChain } from "./embedded-chain.ts";
import { examineFirst } from "./examined-node.ts";
import {
  type ChainIdentity,
  type ContractName,
  findIdentity,
  keepContracts,
  keepIdentity,
} from "./identity-store.ts";
import { type ChainNode, NodeAway, refusedAsAway, WrongChain } from "./node.ts";
import { openSigner } from "./open-signer.ts";
import { addSigner, hasSigned, readTotals } from "./transaction-store.ts";

/** Opens the chain unless `CHAIN=off`; see `openChain` of `index.ts`. */
export async function openChain(ctx: Ctx, { mayBeAway }: { mayBeAway: boolean }): Promise<Chain> {
  await using stack = new AsyncDisposableStack();
  const signer = stack.use(await openSigner(ctx));
  const node = stack.use(await openNode(ctx));
  const isEmbedded = ctx.config.chainRpcUrl === null;
  const relayNode = isEmbedded ? node : stack.use(await openNode(ctx));
  const signatureNode = isEmbedded ? node : stack.use(await openNode(ctx, { batchMax: 1 }));
  const identity =
    (await findIdentity(ctx.db)) ?? (await keepIdentity(ctx.db, await node.readChainId()));
  await addSigner(ctx.db, signer.address);
  const isKnown = await hasSigned(ctx.db, signer.address);
  const { contractSalt: salt } = ctx.config;
  const deployments = planContracts({ salt, operator: signer.address, identity });
  const contracts = addressesOf(deployments);
  const opened = stack.move();
  const close = async (): Promise<void> => opened.disposeAsync();
  const { chainId } = identity;
  const nodes = { node, relayNode, signatureNode };
  const chain = chainOver(ctx, { ...nodes, signer, contracts, chainId, close });
  const examine = async (): Promise<void> => {
    try {
      refuseOther(await node.readChainId(), identity);
      // Before anything is sent: an account that has sent something is not checked any more at later starts.
      if (!isKnown && identity.registry !== null) await refuseStranger(chain);
      await ensureContracts({ ...ctx, chain }, Object.values(deployments));
    } catch (error) {
      refusedAsAway(error);
    }
  };
  const isNew = Object.values(identity).includes(null);
  try {
    await againWhenOwnerGoes(chain.isEmbedded, examine);
    if (isNew) await keepContracts(ctx.db, contracts);
    return chain;
  } catch (error) {
    if (mayBeAway && !isNew && !chain.isEmbedded && error instanceof NodeAway) {
      chain.metrics.raise("node_unreachable", { err: error });
      return examinedLater(chain, examine);
    }
    await close();
    throw error;
  }
}

/** The connections to the node. */
type ChainNodes = Pick<Chain, "node" | "relayNode" | "signatureNode">;

function chainOver(
  ctx: Ctx,
  given: Pick<Chain, keyof ChainNodes | "signer" | "chainId"> & {
    readonly contracts: Readonly<Record<ContractName, Address>>;
    readonly close: () => Promise<void>;
  },
): Chain {
  const { signer, chainId, close } = given;
  const { registry, settlement, live, sandbox } = given.contracts;
  const isEmbedded = ctx.config.chainRpcUrl === null;
  const checked = (node: ChainNode): ChainNode =>
    isEmbedded ? node : checkReads(node, { chainId, clock: ctx.clock });
  return {
    chainId,
    contracts: { registry, settlement, factories: { live, sandbox } },
    operator: signer.address,
    node: checked(given.node),
    relayNode: checked(given.relayNode),
    signatureNode: checked(given.signatureNode),
    isEmbedded,
    confirmations: ctx.config.confirmations,
    signer,
    metrics: openChainMetrics(ctx, async () => totalsOf(ctx, signer.address)),
    [Symbol.asyncDispose]: close,
  };
}

/**
 * The chain behind a node that was unreachable at the start. Its calls throw {@link NodeAway} until the checks of a
 * start succeed; while they find another chain, an alarm is raised.
 */
function examinedLater(chain: Chain, examine: () => Promise<void>): Chain {
  const examined = examineFirst(async () => {
    try {
      await examine();
    } catch (error) {
      if (!(error instanceof WrongChain)) throw error;
      chain.metrics.raise("other_chain", { err: error });
      throw new NodeAway(error.message, { cause: error });
    }
  });
  const { node, relayNode, signatureNode } = chain;
  return {
    ...chain,
    node: examined(node),
    relayNode: examined(relayNode),
    signatureNode: examined(signatureNode),
  };
}

/** The addresses that merchants compare receipts with, and the state of the operator's account and of the node. */
export interface ChainReport {
  readonly chainId: number;
  readonly registry: Address;
  readonly settlement: Address;
  readonly liveFactory: Address;
  readonly sandboxFactory: Address;
  readonly operator: Address;
  /** Decimal. */
  readonly balanceCoins: string;
  /** The newest block that the node has, and its time (Unix seconds), which is old if the node stands still. */
  readonly newestBlock: number;
  readonly newestBlockAt: number;
}

/**
 * Describes the chain without changing anything. Before the first start it predicts the addresses of the contracts.
 */
export async function describeChain(ctx: Ctx): Promise<ChainReport> {
  await using stack = new AsyncDisposableStack();
  const signer = stack.use(await openSigner(ctx));
  const node = stack.use(await openNode(ctx));
  const chainId = await node.readChainId();
  const unknown = { registry: null, settlement: null, live: null, sandbox: null };
  const identity = (await findIdentity(ctx.db)) ?? { chainId, ...unknown };
  refuseOther(chainId, identity);
  const operator = signer.address;
  const { contractSalt: salt } = ctx.config;
  const { live, sandbox, ...own } = addressesOf(planContracts({ salt, operator, identity }));
  const [balance, newest] = await Promise.all([
    readBalance({ node }, operator),
    readNewest({ node }),
  ]);
  return {
    chainId,
    ...own,
    liveFactory: live,
    sandboxFactory: sandbox,
    operator,
    balanceCoins: formatEther(balance),
    newestBlock: newest.number,
    newestBlockAt: newest.time,
  };
}

function refuseOther(found: number, { chainId }: ChainIdentity): void {
  if (chainId !== found)
    throw new WrongChain(
      `this installation settles on chain ${chainId}, but the node is of chain ${found}`,
    );
}

/**
 * Refuses an operator's account that never sent anything for this installation and is not the registry's administrator:
 * all its transactions would revert, so the key must be a mistake.
 *
 * @throws {WrongChain}
 */
async function refuseStranger(chain: Chain): Promise<void> {
  const { operator } = chain;
  const { registry: address } = chain.contracts;
  const { abi } = credentialRegistry;
  const admin = await readContract(chain, { address, abi, functionName: "defaultAdmin" });
  if (admin.toLowerCase() === operator) return;
  throw new WrongChain(
    `the registry ${address} is administered by ${admin.toLowerCase()}, and ${operator} never sent anything for this installation: look at SIGNER_KEY or SIGNER_ADDRESS`,
  );
}

/** How long to wait for another process to take over the embedded chain, which it does within a second or two. */
const takeoverMs = { most: 30_000, pause: 500 };

/** Retries while no process runs the embedded chain: the one that did may die while this one starts. */
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

/** Loads the HTTP client only if it is needed: that takes a tenth of the start-up time. */
async function openNode(ctx: Ctx, options: { batchMax?: number } = {}): Promise<ChainNode> {
  const { chainRpcUrl } = ctx.config;
  if (chainRpcUrl === null) return openEmbeddedChain(ctx);
  const { openRemoteNode } = await import("./remote-node.ts");
  return openRemoteNode(chainRpcUrl, options);
}

function addressesOf(
  deployments: Readonly<Record<ContractName, Deployment>>,
): Record<ContractName, Address> {
  const { registry, settlement, live, sandbox } = deployments;
  return {
    registry: registry.address,
    settlement: settlement.address,
    live: live.address,
    sandbox: sandbox.address,
  };
}

async function totalsOf(ctx: Ctx, operator: Address): Promise<ChainTotals> {
  const { queued, sent, spent } = await readTotals(ctx.db, operator);
  const today = Math.floor(ctx.clock.now() / 86_400);
  return { queued, sent, spentWeiToday: spent.day === today ? spent.wei : 0n };
}
