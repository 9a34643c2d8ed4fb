import { type Address, type Hex, type Hex32, hexOfBytes, keccak256 } from "@svc/protocol";
import { concat, formatEther, getCreate2Address } from "viem/utils";
import { bufferOfHex, keccakOfHex } from "../platform/hex.ts";
import { readBalance } from "./chain-view.ts";
import type { ChainContext } from "./context.ts";
import { NoAnswer, WrongChain } from "./node.ts";
import { workOutbox } from "./outbox.ts";
import * as store from "./transaction-store.ts";
import { ownKinds } from "./transaction.ts";

/** The common CREATE2 deployer, present on most chains and the embedded one: addresses depend on salt and code. */
const deployer: Address = "0x4e59b44847b379578588920ca78fbf26c0b4956c";

/** A contract that has to be deployed before anything else is sent. */
export interface Deployment {
  readonly name: string;
  readonly address: Address;
  /** Creation code with the constructor's arguments. */
  readonly initCode: Hex;
  readonly salt: Hex32;
  /** keccak256 of the code that must stand at the address, with zeros in place of immutables. */
  readonly codeHash: Hex32;
  /** The offset of each immutable, which is a word, in the code. */
  readonly immutablesAt?: readonly number[];
}

/** Computes the address. In the constructor `msg.sender` is the deployer, so the owner has to be an argument. */
export function planDeployment(given: Omit<Deployment, "address">): Deployment {
  const bytecodeHash = keccakOfHex(given.initCode);
  const address = getCreate2Address({ from: deployer, salt: given.salt, bytecodeHash });
  return { ...given, address: address.toLowerCase() as Address };
}

/** A slow chain gets ten minutes to mine; a wrong setting must not wait for ever. */
const looksMax = 600;
const lookMs = { embedded: 50, remote: 1000 };

/**
 * Checks that the contracts stand at their addresses, and deploys those that are missing. Processes that start together
 * queue only one transaction for each.
 *
 * @throws if other code stands there, the deployer is missing on this chain, or they were not mined in 10 minutes
 */
export async function ensureContracts(
  ctx: ChainContext,
  deployments: readonly Deployment[],
): Promise<void> {
  const missing = await listMissing(ctx, deployments);
  if (missing.length === 0) return;
  const deployerCode = await codeAt(ctx, deployer);
  if (deployerCode === "0x")
    throw new WrongChain(`chain ${ctx.chain.chainId} has no CREATE2 deployer at ${deployer}`);
  await ctx.db.transaction(async (tx) => {
    for (const { address, salt, initCode } of missing) {
      const data = concat([salt, initCode]);
      const given = { kind: ownKinds.deploy, subjectId: address, to: deployer, data };
      await store.insertTransaction(tx, given, ctx.clock.now());
    }
  });
  await waitFor(ctx, missing);
}

async function waitFor(ctx: ChainContext, missing: readonly Deployment[]): Promise<void> {
  const names = missing.map((each) => each.name).join(", ");
  for (let tries = 0; tries < looksMax; tries += 1) {
    await workOutbox(ctx, {}, { only: ownKinds.deploy });
    if (await areThere(ctx, missing)) return;
    if (tries === 0 && !ctx.chain.isEmbedded) await logWaiting(ctx, names);
    await new Promise((resolve) => {
      setTimeout(resolve, ctx.chain.isEmbedded ? lookMs.embedded : lookMs.remote);
    });
  }
  throw new Error(`the contracts were not mined in time: ${names}`);
}

/** Logs the balance too: at the first start the operator's account may not have any coin. */
async function logWaiting(ctx: ChainContext, contracts: string): Promise<void> {
  const { operator } = ctx.chain;
  const balanceCoins = formatEther(await readBalance(ctx.chain, operator));
  ctx.log.info({ contracts, operator, balanceCoins }, "waiting until the contracts are mined");
}

/**
 * Whether all contracts are deployed by now. The status of a transaction is read before the code: if it became final in
 * between, the other order would report a contract as missing although it is there.
 *
 * @throws {WrongChain} if a deployment is final, but there is no code: it reverted, or the chain is another one
 */
async function areThere(ctx: ChainContext, deployments: readonly Deployment[]): Promise<boolean> {
  const endings = new Map<Address, string>();
  for (const { address } of deployments) {
    const status = await store.findStatus(ctx.db, ownKinds.deploy, address);
    if (status === "succeeded" || status === "reverted") endings.set(address, status);
  }
  const missing = await listMissing(ctx, deployments);
  for (const { name, address } of missing) {
    const ending = endings.get(address);
    if (ending !== undefined)
      throw new WrongChain(`the deployment of ${name} ${ending}, but nothing is at ${address}`);
  }
  return missing.length === 0;
}

/** Those without any code. @throws {WrongChain} for one with other code */
async function listMissing(
  ctx: ChainContext,
  deployments: readonly Deployment[],
): Promise<Deployment[]> {
  const codes = await Promise.all(deployments.map(async (each) => codeAt(ctx, each.address)));
  return deployments.filter(({ name, address, codeHash, immutablesAt = [] }, at) => {
    const code = codes[at] ?? "0x";
    if (code === "0x") return true;
    if (hexOfBytes(keccak256(withoutImmutables(code, immutablesAt))) !== codeHash)
      throw new WrongChain(`other code than this version's ${name} stands at ${address}`);
    return false;
  });
}

function withoutImmutables(code: Hex, starts: readonly number[]): Uint8Array {
  const bytes = bufferOfHex(code);
  for (const start of starts) bytes.fill(0, start, start + 32);
  return bytes;
}

async function codeAt({ chain }: ChainContext, address: Address): Promise<Hex> {
  const code = await chain.node.request("eth_getCode", [address, "latest"]);
  if (typeof code !== "string" || !/^0x(?:[0-9a-f]{2})*$/i.test(code))
    throw new NoAnswer("the chain's node answered with something else than code");
  return code as Hex;
}
