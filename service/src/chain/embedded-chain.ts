import { type Address, type Hex, type Hex32, isRecord, parseAddress } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import { placeIn } from "../platform/cryptography/seal.ts";
import { addressOfPrivateKey } from "../platform/cryptography/secp256k1.ts";
import { checkTurn, readTransaction } from "./admission.ts";
import { type AnvilProcess, removeLeftovers, startAnvilProcess } from "./anvil-process.ts";
import { type LockSession, openLockSession } from "./embedded-lock-store.ts";
import * as store from "./embedded-store.ts";
import { type Ipc, openIpc } from "./ipc.ts";
import { type ChainNode, NodeAway, RpcError } from "./node.ts";

/** Transactions of one block, at most. */
const blockMax = 300;
/** Gas of one block, at most: about a second of computing, so that every block can be mined, and replayed. */
const blockGasMax = 60_000_000;
/** Transactions in one message to the node, which does not keep the order of more. */
const batchMax = 30;
/** How often the journal is polled; notifications only make it sooner. */
const pollMs = 1_000;
/**
 * The state is folded (dumped into one row) after this many blocks and transactions together, so that a start has no
 * more to replay, which takes about a second. Each {@link foldGas} of their gas limits counts as one more, which bounds
 * the replay to a quarter of a minute.
 */
const foldEvery = 3_000;
const foldGas = 250_000;
/** For how long a replaced node is kept to answer calls that are under way. */
const retireMs = 5_000;
const replayPage = 500;
const openWithinMs = 30_000;
/** A block is mined when the shared clock jumps by this much or more. */
const jumpMs = 500;

const faucetKeyPlace = placeIn(store.faucetKeyColumn, "true");

/**
 * Opens the embedded chain. Of all processes over the database one owns it (by an advisory lock): it runs the node,
 * mines and replays. The others write transactions to the journal and read from the node over the same socket. When the
 * owner dies, its node dies with it, and the next owner replays the journal, with the same block hashes.
 *
 * @throws when no node can be started or reached in 30 s, or the replayed chain is not the one that was
 */
export async function openEmbeddedChain(ctx: Ctx): Promise<ChainNode> {
  const identity = await store.keepIdentity(ctx.db, newIdentity(ctx));
  const chain = new EmbeddedChain(ctx, identity);
  try {
    await chain.open();
    return chain;
  } catch (error) {
    await chain[Symbol.asyncDispose]();
    throw error;
  }
}

function newIdentity(ctx: Ctx): store.EmbeddedIdentity {
  const key = ctx.random.bytes(32);
  return {
    // 31 bits, and none of the small numbers that public chains have.
    chainId: 2 ** 30 + ctx.random.below(2 ** 30),
    genesisTime: ctx.clock.now(),
    faucetAddress: addressOfPrivateKey(key),
    faucetKeySealed: ctx.seal.seal(key, faucetKeyPlace),
  };
}

const noHash: Hex32 = `0x${"0".repeat(64)}`;

/** The right to run the node, for as long as the connection that holds the lock lives. The node has the whole chain. */
interface Ownership {
  readonly session: LockSession;
  node: AnvilProcess;
  /** The node or the connection is gone. */
  isLost: boolean;
}

class EmbeddedChain implements ChainNode {
  readonly #ctx: Ctx;
  readonly #identity: store.EmbeddedIdentity;
  #owned: Ownership | null = null;
  /** The connection that has the lock, or asks for it. */
  #session: LockSession | null = null;
  #reading: { path: string; ipc: Ipc } | null = null;
  #work: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isAsked = false;
  #offsetMs: number;
  #sinceFold = 0;
  /** Nodes that were replaced, kept until the calls to them are answered. */
  readonly #retired = new Map<AnvilProcess, NodeJS.Timeout>();
  /** Why the last turn failed. */
  #fault: unknown = null;
  #unsubscribe: (() => void)[] = [];

  constructor(ctx: Ctx, identity: store.EmbeddedIdentity) {
    this.#ctx = ctx;
    this.#identity = identity;
    this.#offsetMs = ctx.clock.nowMs() - Date.now();
  }

  async open(): Promise<void> {
    const { notifications } = this.#ctx;
    const hurry = (): void => this.#hurry();
    this.#unsubscribe = [
      await notifications.subscribe("embedded_chain", hurry),
      // The clock's own handler may read the new offset a little later; the next poll sees it in any case.
      await notifications.subscribe("clock", () => void setTimeout(hurry, 20)),
      await notifications.subscribe("embedded_chain_owner", () => this.#readElsewhere()),
    ];
    const deadline = Date.now() + openWithinMs;
    for (;;) {
      this.#wake();
      await this.#work;
      if (this.#owned !== null || (await this.#isReachable())) return;
      if (this.#fault !== null)
        throw new Error("the embedded chain cannot be started", { cause: this.#fault });
      if (Date.now() > deadline) throw new NodeAway("the embedded chain did not open in time");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async readChainId(): Promise<number> {
    return this.#identity.chainId;
  }

  async request(method: string, params: readonly unknown[] = []): Promise<unknown> {
    // The node only knows what is mined; waiting transactions are in the journal.
    if (method === "eth_getTransactionCount" && params[1] === "pending") {
      const signer = parseAddress(String(params[0]));
      if (signer !== null) {
        const { nextNonce } = await store.readSigner(this.#ctx.db, signer, noHash);
        return `0x${nextNonce.toString(16)}`;
      }
    }
    const ipc = await this.#ipc();
    return ipc.request(method, atPresent(method, params.map(toNewest), this.#ctx.clock.now()));
  }

  /** Settles when the journal has them; they are mined right afterwards. */
  async submit(rawTransactions: readonly Hex[]): Promise<void> {
    let fault: RpcError | null = null;
    for (const raw of rawTransactions) {
      try {
        await this.#admit(raw);
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        fault ??= error;
      }
    }
    this.#hurry();
    if (fault !== null) throw fault;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const end of this.#unsubscribe) end();
    // A failure has already been reported to whoever opened the chain, or has ended the process.
    await this.#work.catch(() => undefined);
    this.#reading?.ipc.close();
    await this.#letGo();
    await Promise.all([...this.#retired.keys()].map(async (node) => this.#end(node)));
  }

  async #admit(raw: string): Promise<void> {
    const transaction = readTransaction(raw, this.#identity.chainId);
    const { db, clock } = this.#ctx;
    const known = await store.readSigner(db, transaction.signer, transaction.hash);
    if (known.isKnown) return;
    const balanceWei = await this.#balanceOf(transaction.signer);
    checkTurn(transaction, { ...known, balanceWei });
    if (await store.insertTransaction(db, transaction, clock.now())) return;
    // The nonce was taken since it was checked, perhaps by these very bytes.
    const after = await store.readSigner(db, transaction.signer, transaction.hash);
    if (!after.isKnown) checkTurn(transaction, { ...after, balanceWei });
  }

  /** Asks the node that mines: a replaced node still answers for a while, and does not know what was mined since. */
  async #balanceOf(signer: Address): Promise<bigint> {
    for (;;) {
      const balance = BigInt(String(await this.request("eth_getBalance", [signer, "latest"])));
      if (this.#owned !== null) return balance;
      // The path of a new node is stored before it mines.
      const path = await store.findPath(this.#ctx.db);
      if (this.#reading?.path === path) return balance;
      this.#readElsewhere();
    }
  }

  /** Mines soon; in a process that does not own the chain nothing happens, since the owner will. */
  #hurry(): void {
    if (this.#owned !== null) this.#wake();
  }

  /** Asks for a turn. Turns never overlap, so that no two of them mine or replay at the same time. */
  #wake(): void {
    if (this.#isClosed || this.#isAsked) return;
    this.#isAsked = true;
    this.#work = this.#next(this.#work);
  }

  async #next(before: Promise<void>): Promise<void> {
    await before;
    this.#isAsked = false;
    await this.#turn();
  }

  /**
   * Does whatever is due. A failure is logged, and the next turn tries again.
   *
   * @throws {ChainDiffers} which ends the process unless it is just starting: nobody handles it, on purpose
   */
  async #turn(): Promise<void> {
    clearTimeout(this.#timer);
    this.#fault = null;
    try {
      if (this.#owned?.isLost === true) await this.#letGo();
      this.#owned ??= await this.#tryOwn();
      if (this.#owned !== null) await this.#mine(this.#owned);
    } catch (error) {
      await this.#letGo();
      if (error instanceof ChainDiffers) {
        this.#ctx.log.fatal({ err: error }, "the embedded chain is another than it was");
        throw error;
      }
      this.#ctx.log.error({ err: error }, "the embedded chain failed");
      this.#fault = error;
    } finally {
      if (!this.#isClosed) this.#timer = setTimeout(() => this.#wake(), pollMs).unref();
    }
  }

  /** @returns null while another process has the chain */
  async #tryOwn(): Promise<Ownership | null> {
    const { db } = this.#ctx;
    const session = (this.#session ??= await openLockSession(db.connectionString));
    if (!(await session.tryLock())) return null;
    removeLeftovers(await store.findPath(db));
    const owned: Ownership = { session, node: await this.#startNode(), isLost: false };
    try {
      await this.#replay(owned);
      await store.tellPath(session, owned.node.path);
    } catch (error) {
      await owned.node[Symbol.asyncDispose]();
      throw error;
    }
    void this.#watch(owned);
    return owned;
  }

  async #startNode(): Promise<AnvilProcess> {
    const { chainId, genesisTime, faucetAddress } = this.#identity;
    const genesis = { chainId, time: genesisTime, faucet: faucetAddress };
    return startAnvilProcess(genesis, (line) =>
      this.#ctx.log.debug({ line }, "the embedded chain says"),
    );
  }

  /** Notices the loss of the lock or the node: then another process starts over, or this one in its next turn. */
  async #watch(owned: Ownership): Promise<void> {
    const { node, session } = owned;
    await Promise.race([node.exited.catch(() => undefined), session.closed]);
    // The node was replaced on purpose, and its successor is watched.
    if (owned.node !== node) return;
    owned.isLost = true;
    // Calls that wait for its answer fail now, those of a turn included.
    node.ipc.close();
    if (this.#isClosed || this.#owned !== owned) return;
    this.#ctx.log.warn({}, "the embedded chain was lost and will be replayed");
    this.#wake();
  }

  async #letGo(): Promise<void> {
    const [owned, session] = [this.#owned, this.#session];
    this.#owned = null;
    this.#session = null;
    await owned?.node[Symbol.asyncDispose]();
    // The lock is released last, so that there are never two nodes.
    await session?.[Symbol.asyncDispose]();
  }

  /** Rebuilds the chain from the journal. @throws {ChainDiffers} */
  async #replay(owned: Ownership): Promise<void> {
    const { db } = this.#ctx;
    let after = await this.#unfold(owned.node.ipc);
    this.#sinceFold = 0;
    for (;;) {
      const blocks = await store.listBlocks(db, { after, limit: replayPage });
      for (const [index, block] of blocks.entries()) {
        // Hashes are chained, so comparing the last one of each page compares all of them.
        const isLast = index === blocks.length - 1;
        await this.#mineBlock(owned, block, { compare: isLast });
      }
      after = blocks.at(-1)?.number ?? after;
      if (blocks.length < replayPage) break;
    }
    await this.#foldWhenDue(owned, after);
  }

  /** @returns the number of the block that the fold ends with, 0 where there is none */
  async #unfold(ipc: Ipc): Promise<number> {
    const fold = await store.findFold(this.#ctx.db);
    if (fold === null) return 0;
    await ipc.request("anvil_loadState", [`0x${fold.state.toString("hex")}`]);
    const { number, hash } = headOf(await ipc.request("eth_getBlockByNumber", ["latest", false]));
    if (number !== fold.number || hash !== fold.hash) throw new ChainDiffers(fold.number);
    return fold.number;
  }

  async #mine(owned: Ownership): Promise<void> {
    const { clock } = this.#ctx;
    const offsetMs = clock.nowMs() - Date.now();
    let mayBeEmpty = offsetMs - this.#offsetMs > jumpMs;
    // What was in the journal when this process began to close is still mined; what comes later is left to the next
    // owner.
    for (let isFirst = true; isFirst || !this.#isClosed; isFirst = false) {
      const given = { time: clock.now(), max: blockMax, gasMax: blockGasMax, mayBeEmpty };
      const block = await store.decideBlock(owned.session, given);
      this.#offsetMs = offsetMs;
      if (block === null) return;
      mayBeEmpty = false;
      await this.#mineBlock(owned, block, { compare: true });
      await this.#foldWhenDue(owned, block.number);
    }
  }

  async #mineBlock(
    { session, node: { ipc } }: Ownership,
    block: store.Block,
    { compare }: { compare: boolean },
  ): Promise<void> {
    for (let from = 0; from < block.raws.length; from += batchMax) {
      const raws = block.raws.slice(from, from + batchMax);
      const answers = await ipc.batch(raws.map((raw) => ["eth_sendRawTransaction", [raw]]));
      for (const answer of answers) {
        // Admission is stricter than the node, so this should not happen. If it does, it happens in every replay too,
        // and the chain stays the same.
        if (answer instanceof RpcError)
          this.#ctx.log.error(
            { err: answer },
            "the embedded chain refused a journaled transaction",
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
    if (block.hash === null) await store.keepHash(session, block.number, head.hash);
  }

  async #foldWhenDue(owned: Ownership, number: number): Promise<void> {
    if (this.#sinceFold < foldEvery) return;
    this.#sinceFold = 0;
    const { session, node } = owned;
    try {
      const dump = String(await node.ipc.request("anvil_dumpState", [false]));
      await store.keepFold(session, { number, state: Buffer.from(dump.slice(2), "hex") });
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      this.#ctx.log.error(
        { err: error },
        "the embedded chain is too large to be folded: starts take longer and longer, see operate.md",
      );
      return;
    }
    await this.#goOnFromFold(owned);
  }

  /**
   * Continues in a node that was started from the fold, as every later replay will be: a fold holds no block hashes, so
   * BLOCKHASH would answer differently in the node that mined the blocks.
   */
  async #goOnFromFold(owned: Ownership): Promise<void> {
    const before = owned.node;
    const node = await this.#startNode();
    try {
      await this.#unfold(node.ipc);
    } catch (error) {
      await node[Symbol.asyncDispose]();
      throw error;
    }
    owned.node = node;
    const timer = setTimeout(() => void this.#end(before), retireMs);
    this.#retired.set(before, timer.unref());
    // While the chain is still being opened, no node is known to others or watched.
    if (this.#owned === owned) {
      await store.tellPath(owned.session, node.path);
      void this.#watch(owned);
    }
  }

  async #end(node: AnvilProcess): Promise<void> {
    clearTimeout(this.#retired.get(node));
    this.#retired.delete(node);
    await node[Symbol.asyncDispose]();
  }

  /** Calls under way stay with the node that they were made to. */
  #readElsewhere(): void {
    const before = this.#reading?.ipc;
    this.#reading = null;
    if (before !== undefined) setTimeout(() => before.close(), retireMs).unref();
  }

  /** The owner's own connection, or one to the owner's node. @throws {NodeAway} */
  async #ipc(): Promise<Ipc> {
    if (this.#owned !== null) return this.#owned.node.ipc;
    const path = await this.#knownPath();
    if (this.#reading?.path === path) return this.#reading.ipc;
    const ipc = await openIpc(path);
    this.#reading = { path, ipc };
    void this.#forgetWhenClosed(ipc);
    return ipc;
  }

  async #forgetWhenClosed(ipc: Ipc): Promise<void> {
    await ipc.closed;
    if (this.#reading?.ipc === ipc) this.#reading = null;
  }

  async #knownPath(): Promise<string> {
    if (this.#reading !== null) return this.#reading.path;
    const path = await store.findPath(this.#ctx.db);
    if (path === null) throw new NodeAway("no process runs the embedded chain yet");
    return path;
  }

  async #isReachable(): Promise<boolean> {
    try {
      await this.request("eth_chainId");
      return true;
    } catch {
      return false;
    }
  }
}

/**
 * The replayed chain differs from the original one: the journal or the node has changed. Continuing would fork a chain
 * that others rely on.
 */
class ChainDiffers extends Error {
  constructor(number: number) {
    super(
      `the embedded chain came back with another block ${number}: its journal or its node was changed`,
    );
    this.name = "ChainDiffers";
  }
}

/** A block as the node tells it. @throws when it does not */
function headOf(block: unknown): { number: number; hash: Hex32 } {
  const { hash = null, number = null } = isRecord(block) ? block : {};
  if (typeof hash !== "string" || !/^0x[0-9a-f]{64}$/.test(hash))
    throw new Error("the chain's node tells no block");
  return { number: Number(number), hash: hash as Hex32 };
}

/**
 * Only one node mines, so the newest block is final. Asked for `finalized`, anvil would look for a state that it does
 * not keep.
 */
const toNewest = (param: unknown): unknown =>
  param === "finalized" || param === "safe" ? "latest" : param;

const askedByTime = new Set(["eth_call", "eth_estimateGas"]);

/**
 * On an idle chain the last block may be hours old, or from before the clock was moved: calls that depend on the time
 * are made as of now.
 */
function atPresent(method: string, params: readonly unknown[], now: number): readonly unknown[] {
  const [call, block = "latest", overrides = null] = params;
  const isPresent = block === "latest" || block === "pending";
  if (!askedByTime.has(method) || !isPresent || params.length > 3) return params;
  return [call, block, overrides, { time: `0x${now.toString(16)}` }];
}

/** The account that holds the coin of the genesis block. */
export async function findFaucet(
  ctx: Ctx,
): Promise<{ address: Address; privateKey: Uint8Array; chainId: number } | null> {
  const identity = await store.findIdentity(ctx.db);
  if (identity === null) return null;
  const privateKey = ctx.seal.open(identity.faucetKeySealed, faucetKeyPlace);
  return { address: identity.faucetAddress, privateKey, chainId: identity.chainId };
}
