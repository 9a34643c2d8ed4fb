// The embedded chain under test: processes over one journal, and ways to hurt what they run.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Address, Hex } from "@svc/protocol";
import { keccak256, serializeTransaction, type TransactionSerializableEIP1559 } from "viem";
import { findFaucet, openEmbeddedChain } from "../service/src/chain/embedded-chain.ts";
import { type ChainNode, NodeAway } from "../service/src/chain/node.ts";
import { openContext, type OpenContext } from "../service/src/compose.ts";
import { parseConfig } from "../service/src/platform/config/config.ts";
import { sql } from "../service/src/platform/database/db.ts";
import { signDigest } from "../service/src/platform/cryptography/secp256k1.ts";
import { patienceMs } from "./patience.ts";

const receiver: Address = "0x00000000000000000000000000000000deadbeef";

/** One process over the journal. */
export interface ChainProcess extends AsyncDisposable {
  readonly ctx: OpenContext;
  readonly node: ChainNode;
}

export async function openContextOf(url: string): Promise<OpenContext> {
  return openContext(
    parseConfig({
      PROFILE: "dev",
      BASE_URL: "http://localhost:4000",
      DATABASE_URL: url,
      MASTER_KEY: "11".repeat(32),
      LOG_LEVEL: "silent",
    }),
  );
}

export async function openProcess(url: string): Promise<ChainProcess> {
  await using stack = new AsyncDisposableStack();
  const ctx = stack.use(await openContextOf(url));
  const node = stack.use(await openEmbeddedChain(ctx));
  const opened = stack.move();
  return { ctx, node, [Symbol.asyncDispose]: async () => opened.disposeAsync() };
}

export type Sign = (nonce: number, more?: Partial<TransactionSerializableEIP1559>) => Hex;

/** Signs for `privateKey` as fast as a test of thousands needs it. */
export function signerOf(privateKey: Uint8Array, chainId: number): Sign {
  return (nonce, more = {}) => {
    const transaction: TransactionSerializableEIP1559 = {
      type: "eip1559",
      chainId,
      nonce,
      to: receiver,
      value: 1n,
      gas: 21_000n,
      maxFeePerGas: 0n,
      maxPriorityFeePerGas: 0n,
      ...more,
    };
    const digest = keccak256(serializeTransaction(transaction), "bytes");
    return serializeTransaction(transaction, signDigest(digest, privateKey));
  };
}

/** Transfers from the faucet. */
export async function openPurse(ctx: OpenContext): Promise<Sign> {
  const faucet = await findFaucet(ctx);
  assert.ok(faucet !== null);
  return signerOf(faucet.privateKey, faucet.chainId);
}

/** Waits until `look` answers with something; a node that is away is asked again. */
export async function untilAnswered<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const deadline = performance.now() + patienceMs;
  while (performance.now() < deadline) {
    const found = await look().catch((error: unknown) => {
      if (error instanceof NodeAway) return null;
      throw error;
    });
    if (found !== null) return found;
    await delay(10);
  }
  return assert.fail(`never happened: ${what}`);
}

export const balanceOf = async (node: ChainNode, address = receiver): Promise<bigint> =>
  BigInt(String(await node.request("eth_getBalance", [address, "latest"])));

export const untilReceived = async (node: ChainNode, value: bigint): Promise<void> => {
  await untilAnswered(`the receiver has ${value}`, async () =>
    (await balanceOf(node)) === value ? value : null,
  );
};

export interface Head {
  readonly number: Hex;
  readonly hash: Hex;
  readonly timestamp: Hex;
}

export const blockOf = async (node: ChainNode, number: Hex | "latest" = "latest"): Promise<Head> =>
  (await node.request("eth_getBlockByNumber", [number, false])) as Head;

/** The process id of the chain's node. */
export async function nodePid({ ctx }: { ctx: Pick<OpenContext, "db"> }): Promise<number> {
  const [row] = await ctx.db.query<{ path: string }>(
    sql`select ipc_path as path from embedded_chain`,
  );
  const isNode = (pid: string): boolean => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      return words[0]?.endsWith("/anvil") === true && words.includes(row?.path ?? "none");
    } catch {
      return false;
    }
  };
  const pid = readdirSync("/proc").find((each) => /^\d+$/.test(each) && isNode(each));
  assert.ok(pid !== undefined, "no node runs");
  return Number(pid);
}

/** How long a process has computed so far. */
export function cpuMsOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // After the name, which may contain anything: state, then ten more, then the ticks of 10 ms of itself and the kernel.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/**
 * Writes a journal of decided blocks whose hashes nobody has seen yet, as if it had been long in use.
 *
 * @param given.each transactions of a block; blocks after the last of `total` are empty
 */
export async function writeJournal(
  ctx: OpenContext,
  given: { sign: Sign; blocks: number; total: number; each: number },
): Promise<void> {
  const places = Array.from({ length: given.total }, (_, nonce) => nonce);
  const raws = places.map((nonce) => given.sign(nonce));
  const faucet = await findFaucet(ctx);
  await ctx.db.query(sql`insert into embedded_block (number, time)
    select number, genesis_time + number from embedded_chain, generate_series(1, ${given.blocks}::int) number`);
  await ctx.db.query(sql`
    insert into embedded_transaction (hash, raw, signer, nonce, cost_wei, block_number, block_index, created_at)
    select hash, decode(substr(raw, 3), 'hex'), ${faucet?.address}, nonce, 1, 1 + nonce / ${given.each}::int,
      nonce % ${given.each}::int, 0
    from unnest(${raws.map((raw) => keccak256(raw))}::text[], ${raws}::text[], ${places}::int[]) as t (hash, raw, nonce)`);
}
