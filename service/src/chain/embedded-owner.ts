import { type Hex32, isRecord } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import { type AnvilProcess, startAnvilProcess } from "./anvil-process.ts";
import { hashOf } from "./chain-view.ts";
import type { LockSession } from "./embedded-lock-store.ts";
import * as store from "./embedded-store.ts";
import type { Ipc } from "./ipc.ts";
import { RpcError } from "./node.ts";

/** Transactions in one message to the node; it does not keep the order of more. */
const batchMax = 30;
/**
 * The state is folded (dumped into one row) after this many blocks and transactions together, so that a start replays
 * no more than that, in about a second. Each {@link foldGas} of gas limits counts as one more, which bounds the replay
 * to about 15 seconds even if transactions compute a lot.
 */
const foldEvery = 3_000;
const foldGas = 250_000;
/** How long a replaced node is kept to answer calls under way. */
const retireMs = 5_000;
const replayPage = 500;

interface Ownership {
  readonly identity: store.EmbeddedIdentity;
  /** The connection that has the lock. */
  readonly session: LockSession;
  readonly retired: RetiredNodes;
  /** Called when the node or the lock is gone. */
  readonly onLost: (owner: ChainOwner) => void;
}

/**
 * Starts the node of the process that has the lock, and rebuilds the chain in it from the journal.
 *
 * @throws {ChainDiffers} if the rebuilt chain has other block hashes
 */
export async function openChainOwner(ctx: Ctx, ownership: Ownership): Promise<ChainOwner> {
  const owner = new ChainOwner(ctx, ownership, await startNode(ctx, ownership.identity));
  try {
    await owner.open();
    return owner;
  } catch (error) {
    await owner[Symbol.asyncDispose]();
    throw error;
  }
}

/** Runs the node, for as long as the connection that holds the lock lives. */
export class ChainOwner implements AsyncDisposable {
  readonly #ctx: Ctx;
  readonly #ownership: Ownership;
  #node: AnvilProcess;
  /** Whether the node was announced to other processes and is watched. */
  #isOpen = false;
  #isLost = false;
  /** Blocks, transactions and gas since the last fold. */
  #sinceFold = 0;

  constructor(ctx: Ctx, ownership: Ownership, node: AnvilProcess) {
    this.#ctx = ctx;
    this.#ownership = ownership;
    this.#node = node;
  }

  /** For everything that only the owner may write. */
  get session(): LockSession {
    return this.#ownership.session;
  }

  /** Whether the node or the connection is gone. */
  get isLost(): boolean {
    return this.#isLost;
  }

  get ipc(): Ipc {
    return this.#node.ipc;
  }

  /** Replays the journal and announces the node to other processes. @throws {ChainDiffers} */
  async open(): Promise<void> {
    await this.#replay();
    await this.#announce();
    this.#isOpen = true;
  }

  /** Mines a block that {@link store.decideBlock} has written to the journal. @throws {ChainDiffers} */
  async mine(block: store.Block): Promise<void> {
    await this.#mineBlock(block, { compare: true });
    await this.#foldWhenDue(block.number);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#node[Symbol.asyncDispose]();
  }

  async #announce(): Promise<void> {
    await store.announcePath(this.session, this.#node.path);
    void this.#watch(this.#node);
  }

  /** Waits for the loss of the lock or the node; then another process takes over, or this one in its next turn. */
  async #watch(node: AnvilProcess): Promise<void> {
    await Promise.race([node.exited.catch(() => undefined), this.session.closed]);
    // The node was replaced on purpose, and its successor is watched.
    if (this.#node !== node) return;
    this.#isLost = true;
    // So that calls that wait for its answer fail now, also those of a turn that is mining.
    node.ipc.close();
    this.#ownership.onLost(this);
  }

  async #replay(): Promise<void> {
    const { db } = this.#ctx;
    let after = await this.#unfold(this.ipc);
    for (;;) {
      const blocks = await store.listBlocks(db, { after, limit: replayPage });
      for (const [index, block] of blocks.entries()) {
        // Hashes are chained, so comparing the last one of each page compares all of them.
        const isLast = index === blocks.length - 1;
        await this.#mineBlock(block, { compare: isLast });
      }
      after = blocks.at(-1)?.number ?? after;
      if (blocks.length < replayPage) break;
    }
    await this.#foldWhenDue(after);
  }

  /** Loads the fold, if there is one. @returns the number of its block; 0 without a fold */
  async #unfold(ipc: Ipc): Promise<number> {
    const fold = await store.findFold(this.#ctx.db);
    if (fold === null) return 0;
    await ipc.request("anvil_loadState", [`0x${fold.state.toString("hex")}`]);
    const { number, hash } = headOf(await ipc.request("eth_getBlockByNumber", ["latest", false]));
    if (number !== fold.number || hash !== fold.hash) throw new ChainDiffers(fold.number);
    return fold.number;
  }

  async #mineBlock(block: store.Block, { compare }: { compare: boolean }): Promise<void> {
    const { ipc } = this;
    for (let from = 0; from < block.raws.length; from += batchMax) {
      const raws = block.raws.slice(from, from + batchMax);
      const answers = await ipc.batch(raws.map((raw) => ["eth_sendRawTransaction", [raw]]));
      for (const answer of answers) {
        // Admission is stricter than the node, so this should not happen. Not thrown, because every replay would fail
        // in the same way: without this transaction the chain stays the same.
        if (answer instanceof RpcError)
          this.#ctx.log.error(
            { err: answer },
            "the embedded chain refused a transaction of its journal, and goes on without it",
          );
        else if (answer instanceof Error) throw answer;
      }
    }
    await ipc.request("evm_mine", [`0x${block.time.toString(16)}`]);
    this.#sinceFold += 1 + block.raws.length + block.gas / foldGas;
    if (!compare) return;
    const head = headOf(await ipc.request("eth_getBlockByNumber", ["latest", false]));
    const isOther = block.hash !== null && block.hash !== head.hash;
    if (isOther || head.number !== block.number) throw new ChainDiffers(block.number);
    if (block.hash === null) await store.keepHash(this.session, block.number, head.hash);
  }

  async #foldWhenDue(number: number): Promise<void> {
    if (this.#sinceFold < foldEvery) return;
    this.#sinceFold = 0;
    try {
      const dump = String(await this.ipc.request("anvil_dumpState", [false]));
      const state = Buffer.from(dump.slice(2), "hex");
      await store.keepFold(this.session, { number, state });
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      this.#ctx.log.error(
        { err: error },
        "the state of the embedded chain is too large to be stored: starts take longer and longer, see operate.md",
      );
      return;
    }
    await this.#goOnFromFold();
  }

  /**
   * Continues in a node that was started from the fold, as every later replay will be: a fold holds no block hashes, so
   * BLOCKHASH would answer differently in the node that mined the blocks.
   */
  async #goOnFromFold(): Promise<void> {
    const before = this.#node;
    const node = await startNode(this.#ctx, this.#ownership.identity);
    try {
      await this.#unfold(node.ipc);
    } catch (error) {
      await node[Symbol.asyncDispose]();
      throw error;
    }
    this.#node = node;
    this.#ownership.retired.add(before);
    // While the chain is still being opened, open() announces the node.
    if (this.#isOpen) await this.#announce();
  }
}

/** Nodes that were replaced, kept for a while so that calls under way are answered. */
export class RetiredNodes implements AsyncDisposable {
  readonly #nodes = new Map<AnvilProcess, NodeJS.Timeout>();

  add(node: AnvilProcess): void {
    this.#nodes.set(node, setTimeout(() => void this.#end(node), retireMs).unref());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#nodes.keys()].map(async (node) => this.#end(node)));
  }

  async #end(node: AnvilProcess): Promise<void> {
    clearTimeout(this.#nodes.get(node));
    this.#nodes.delete(node);
    await node[Symbol.asyncDispose]();
  }
}

/**
 * The replayed chain differs from the original one: the journal or the node has changed. Continuing would fork a chain
 * that others rely on.
 */
export class ChainDiffers extends Error {
  constructor(number: number) {
    super(
      `the embedded chain came back with another block ${number}: its journal or its node was changed`,
    );
    this.name = "ChainDiffers";
  }
}

async function startNode(ctx: Ctx, identity: store.EmbeddedIdentity): Promise<AnvilProcess> {
  const { chainId, genesisTime, faucetAddress } = identity;
  const genesis = { chainId, time: genesisTime, faucet: faucetAddress };
  return startAnvilProcess(genesis, (line) => ctx.log.debug({ line }, "the embedded chain says"));
}

/** Number and hash of a block in the node's answer. @throws if it is no block */
function headOf(block: unknown): { number: number; hash: Hex32 } {
  const { hash, number } = isRecord(block) ? block : {};
  return { number: Number(number), hash: hashOf(hash) };
}
