import { type Address, type Hex, type Hex32, parseAddress } from "@svc/protocol";
import { databaseNowMs, isClockRight, watchClock } from "../platform/clock.ts";
import type { Ctx } from "../platform/context.ts";
import { placeIn } from "../platform/cryptography/seal.ts";
import { addressOfPrivateKey } from "../platform/cryptography/secp256k1.ts";
import { FailureRow } from "../platform/telemetry/repetition.ts";
import { checkTurn, readTransaction } from "./admission.ts";
import { type LockSession, openLockSession } from "./embedded-lock-store.ts";
import { ChainDiffers, type ChainOwner, openChainOwner, RetiredNodes } from "./embedded-owner.ts";
import { OwnerConnection } from "./embedded-owner-connection.ts";
import * as store from "./embedded-store.ts";
import type { Ipc } from "./ipc.ts";
import { removeLeftovers } from "./node-directory.ts";
import { type ChainNode, NodeAway, RpcError } from "./node.ts";

/** Transactions of one block, at most. */
const blockMax = 300;
/** Gas of one block, at most: about a second of computing, so that every block can be mined, and replayed. */
const blockGasMax = 60_000_000;
/** How often the journal is polled; notifications only make it sooner. */
const pollMs = 1_000;
const openWithinMs = 30_000;
/** A block is mined when the shared clock jumps by this much or more. */
const jumpMs = 500;

/** The first turn failed; the log has all that is known about it. */
class EmbeddedChainFault extends Error {
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`the embedded chain cannot be started: ${reason}`, { cause });
    this.name = "EmbeddedChainFault";
  }
}

const faucetKeyPlace = placeIn(store.faucetKeyColumn, "true");

/**
 * Opens the embedded chain. Of all processes over the database one owns it (by an advisory lock): it runs the node,
 * mines and replays. The others write transactions to the journal and read from the node over the same socket. When the
 * owner dies, its node dies with it, and the next owner replays the journal, with the same block hashes.
 *
 * @throws when no node can be started or reached in 30 s, or the replayed chain is not the one that was
 */
export async function openEmbeddedChain(ctx: Ctx): Promise<ChainNode> {
  await isClockRight(ctx.db, ctx.clock);
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
    genesisTime: blockTime(ctx),
    faucetAddress: addressOfPrivateKey(key),
    faucetKeySealed: ctx.seal.seal(key, faucetKeyPlace),
  };
}

/**
 * By the database's clock: no block may be older than the one before it, so one mined by a clock that is hours ahead would
 * have every deadline of these hours pass on the chain.
 */
function blockTime({ clock }: Pick<Ctx, "clock">): number {
  return Math.floor(databaseNowMs(clock) / 1000);
}

const noHash: Hex32 = `0x${"0".repeat(64)}`;

class EmbeddedChain implements ChainNode {
  readonly #ctx: Ctx;
  readonly #identity: store.EmbeddedIdentity;
  #owned: ChainOwner | null = null;
  /** The connection that has the lock, or asks for it. */
  #session: LockSession | null = null;
  /** To the owner, where that is another process. */
  readonly #elsewhere: OwnerConnection;
  #work: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isAsked = false;
  #offsetMs: number;
  /** Measures the distance from the database's clock anew where it may have changed. */
  readonly #measureClock: () => Promise<boolean>;
  readonly #retired = new RetiredNodes();
  /** Why the last turn failed. */
  #fault: unknown = null;
  readonly #failures = new FailureRow();
  #unsubscribe: (() => void)[] = [];

  constructor(ctx: Ctx, identity: store.EmbeddedIdentity) {
    this.#ctx = ctx;
    this.#identity = identity;
    this.#elsewhere = new OwnerConnection(ctx.db);
    this.#offsetMs = ctx.clock.nowMs() - Date.now();
    const measure = async (): Promise<boolean> =>
      isClockRight(this.#owned?.session ?? ctx.db, ctx.clock);
    this.#measureClock = watchClock(measure, () => undefined);
  }

  async open(): Promise<void> {
    const { notifications } = this.#ctx;
    const hurry = (): void => this.#hurry();
    this.#unsubscribe = [
      await notifications.subscribe("embedded_chain", hurry),
      // The clock's own handler may read the new offset a little later; the next poll sees it in any case.
      await notifications.subscribe("clock", () => void setTimeout(hurry, 20)),
      await notifications.subscribe("embedded_chain_owner", () => this.#elsewhere.renew()),
    ];
    const deadline = Date.now() + openWithinMs;
    for (;;) {
      this.#wake();
      await this.#work;
      if (this.#owned !== null || (await this.#isReachable())) return;
      if (this.#fault !== null) throw new EmbeddedChainFault(this.#fault);
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
      const [given] = params;
      const signer = typeof given === "string" ? parseAddress(given) : null;
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
    this.#elsewhere[Symbol.dispose]();
    await this.#letGo();
    await this.#retired[Symbol.asyncDispose]();
  }

  async #admit(raw: string): Promise<void> {
    const transaction = readTransaction(raw, this.#identity.chainId);
    const { db, clock } = this.#ctx;
    const known = await store.readSigner(db, transaction.signer, transaction.hash);
    if (known.isKnown) return;
    const balanceWei = await this.#balanceOf(transaction.signer);
    try {
      checkTurn(transaction, { ...known, balanceWei });
    } catch (error) {
      // What was mined since the journal was read counted twice: as open, and as gone from the balance.
      const { openWei } = await store.readSigner(db, transaction.signer, transaction.hash);
      if (openWei < known.openWei) return this.#admit(raw);
      throw error;
    }
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
      if (this.#elsewhere.leadsTo(path)) return balance;
      this.#elsewhere.renew();
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
   * Does whatever is due. A failure is logged, one a minute of several in a row, and the next turn tries again.
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
      this.#failures.end();
    } catch (error) {
      await this.#letGo();
      if (error instanceof ChainDiffers) {
        this.#ctx.log.fatal({ err: error }, "the embedded chain is another than it was");
        throw error;
      }
      this.#fault = error;
      if (this.#failures.add(error))
        this.#ctx.log.error({ err: error, ...this.#failures.told }, "the embedded chain failed");
    } finally {
      if (!this.#isClosed) this.#timer = setTimeout(() => this.#wake(), pollMs).unref();
    }
  }

  /** @returns null while another process has the chain */
  async #tryOwn(): Promise<ChainOwner | null> {
    const { db } = this.#ctx;
    const session = (this.#session ??= await openLockSession(db.connectionString));
    if (!(await session.tryLock())) return null;
    const before = await store.findPath(db);
    const owner = await openChainOwner(this.#ctx, {
      identity: this.#identity,
      session,
      retired: this.#retired,
      onLost: (lost) => {
        if (this.#isClosed || this.#owned !== lost) return;
        this.#ctx.log.warn({}, "the embedded chain was lost and will be replayed");
        this.#wake();
      },
    });
    // By now the node of a process that was killed has ended too.
    await removeLeftovers(before);
    return owner;
  }

  async #letGo(): Promise<void> {
    const [owned, session] = [this.#owned, this.#session];
    this.#owned = null;
    this.#session = null;
    await owned?.[Symbol.asyncDispose]();
    // The lock is released last, so that there are never two nodes.
    await session?.[Symbol.asyncDispose]();
  }

  async #mine(owned: ChainOwner): Promise<void> {
    const { clock } = this.#ctx;
    const offsetMs = clock.nowMs() - Date.now();
    let mayBeEmpty = offsetMs - this.#offsetMs > jumpMs;
    // What was in the journal when this process began to close is still mined; what comes later is left to the next
    // owner.
    for (let isFirst = true; isFirst || !this.#isClosed; isFirst = false) {
      await this.#measureClock();
      const given = { time: blockTime(this.#ctx), max: blockMax, gasMax: blockGasMax, mayBeEmpty };
      const block = await store.decideBlock(owned.session, given);
      this.#offsetMs = offsetMs;
      if (block === null) return;
      mayBeEmpty = false;
      await owned.mine(block);
    }
  }

  /** The owner's own connection, or one to the owner's node. @throws {NodeAway} */
  async #ipc(): Promise<Ipc> {
    return this.#owned === null ? this.#elsewhere.ipc() : this.#owned.ipc;
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
