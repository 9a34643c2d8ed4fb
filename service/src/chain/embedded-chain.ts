import { type Address, type Hex, parseAddress } from "@svc/protocol";
import { databaseNowMs, isClockRight, watchClock } from "../platform/clock.ts";
import type { Ctx } from "../platform/context.ts";
import { placeIn } from "../platform/cryptography/seal.ts";
import { addressOfPrivateKey } from "../platform/cryptography/secp256k1.ts";
import { FailureStreak } from "../platform/telemetry/repetition.ts";
import { checkTurn, readTransaction } from "./admission.ts";
import { type LockSession, openLockSession } from "./embedded-lock-store.ts";
import { ChainDiffers, type ChainOwner, openChainOwner, RetiredNodes } from "./embedded-owner.ts";
import { OwnerConnection } from "./embedded-owner-connection.ts";
import * as store from "./embedded-store.ts";
import type { Ipc } from "./ipc.ts";
import { removeLeftovers } from "./node-directory.ts";
import { type ChainNode, NodeAway, RpcError } from "./node.ts";

/** The most transactions of one block. */
const blockMax = 300;
/** The most gas of one block: about a second of computing, well within the time-out of a call when it is replayed. */
const blockGasMax = 60_000_000;
/** How often the journal is polled; notifications only make it sooner. */
const pollMs = 1_000;
const openWithinMs = 30_000;
/** A block is mined when the shared clock jumps by this much or more. */
const jumpMs = 500;

/** The embedded chain could not be opened; the log has the details. */
class EmbeddedChainFault extends Error {
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`the embedded chain cannot be started: ${reason}`, { cause });
    this.name = "EmbeddedChainFault";
  }
}

const faucetKeyPlace = placeIn(store.faucetKeyColumn, "true");

/**
 * Opens the embedded chain. Of all processes that share the database, the one with an advisory lock owns it: it runs
 * the node, mines and replays. The others write transactions to the journal and read from the node over its socket.
 * When the owner dies, its node dies with it, and the next owner replays the journal, which gives the same block
 * hashes.
 *
 * @throws if no node can be started or reached in 30 s, or the replay gives another chain
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
 * Unix seconds by the database's clock, not this machine's: a block must not be older than its predecessor, so after
 * one from a clock that is hours ahead, the chain's time would stay ahead, and deadlines pass too early.
 */
function blockTime({ clock }: Pick<Ctx, "clock">): number {
  return Math.floor(databaseNowMs(clock) / 1000);
}

class EmbeddedChain implements ChainNode {
  readonly #ctx: Ctx;
  readonly #identity: store.EmbeddedIdentity;
  #owned: ChainOwner | null = null;
  /** The connection that has the lock, or tries to get it. */
  #session: LockSession | null = null;
  /** The connection to the node of another process that owns the chain. */
  readonly #elsewhere: OwnerConnection;
  #work: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isAsked = false;
  #offsetMs: number;
  /** Measures the difference to the database's clock again if it may have changed. */
  readonly #measureClock: () => Promise<boolean>;
  readonly #retired = new RetiredNodes();
  /** Why the last turn failed. */
  #fault: unknown = null;
  readonly #failures = new FailureStreak();
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
    // The node only knows mined transactions; pending ones are in the journal.
    if (method === "eth_getTransactionCount" && params[1] === "pending") {
      const [given] = params;
      const signer = typeof given === "string" ? parseAddress(given) : null;
      if (signer !== null) {
        const nextNonce = await store.readNextNonce(this.#ctx.db, signer);
        return `0x${nextNonce.toString(16)}`;
      }
    }
    const ipc = await this.#ipc();
    return ipc.request(method, atPresent(method, params.map(toNewest), this.#ctx.clock.now()));
  }

  /** Resolves when they are in the journal; they are mined right afterwards. */
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
    // A failure was reported by #turn() already.
    await this.#work.catch(() => undefined);
    this.#elsewhere[Symbol.dispose]();
    await this.#letGo();
    await this.#retired[Symbol.asyncDispose]();
  }

  async #admit(raw: string): Promise<void> {
    const transaction = readTransaction(raw, this.#identity.chainId);
    const { signer, hash } = transaction;
    const { db, clock } = this.#ctx;
    const account = await this.#accountOf(signer).catch(async (error: unknown) => {
      if (await store.isJournaled(db, hash)) return null;
      throw error;
    });
    if (account === null) return;
    const { balanceWei, minedCount } = account;
    // Read after the account: what was mined meanwhile counts as open, as it does in the balance.
    const known = await store.readSigner(db, signer, { hash, minedCount });
    if (known.isKnown) return;
    checkTurn(transaction, { ...known, balanceWei });
    if (await store.insertTransaction(db, transaction, clock.now())) return;
    // The nonce was taken since the check, perhaps by these same bytes.
    const after = await store.readSigner(db, signer, { hash, minedCount });
    if (!after.isKnown) checkTurn(transaction, { ...after, balanceWei });
  }

  /**
   * The balance of a signer after so many of its transactions, from the node that mines: a replaced node still answers
   * for a while with an outdated one.
   */
  async #accountOf(signer: Address): Promise<{ balanceWei: bigint; minedCount: number }> {
    for (;;) {
      const ipc = await this.#ipc();
      const ask = async (method: string): Promise<bigint> =>
        BigInt(String(await ipc.request(method, [signer, "latest"])));
      const count = await ask("eth_getTransactionCount");
      const balanceWei = await ask("eth_getBalance");
      if (count !== (await ask("eth_getTransactionCount"))) continue;
      const account = { balanceWei, minedCount: Number(count) };
      if (this.#owned !== null) return account;
      // The path of a new node is stored before it mines.
      const path = await store.findPath(this.#ctx.db);
      if (this.#elsewhere.leadsTo(path)) return account;
      this.#elsewhere.renew();
    }
  }

  /** Mines soon if this process owns the chain; otherwise the owner does. */
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
   * Takes over the chain if it is free, and mines what is due. Failures are logged (at most one a minute), and the next
   * turn tries again.
   *
   * @throws {ChainDiffers} deliberately unhandled after the start, so that it ends the process
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
        this.#ctx.log.fatal(
          { err: error },
          "the embedded chain differs from its journal; the process ends",
        );
        throw error;
      }
      this.#fault = error;
      if (this.#failures.add(error))
        this.#ctx.log.error(
          { err: error, ...this.#failures.logFields },
          "the embedded chain failed; it is tried again every second",
        );
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
        this.#ctx.log.warn({}, "the embedded chain ended and is started again from its journal");
        this.#wake();
      },
    });
    // The node of the former owner is gone: if that process was killed, its node has ended too.
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
    // At least one block even if this process is closing; later transactions are left to the next owner.
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

  /** The connection to this process's own node, or else to the owner's. @throws {NodeAway} */
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
 * Only one node mines, so the newest block is final. For `finalized` anvil would look for an old state, which it does
 * not keep.
 */
const toNewest = (param: unknown): unknown =>
  param === "finalized" || param === "safe" ? "latest" : param;

const askedByTime = new Set(["eth_call", "eth_estimateGas"]);

/**
 * Adds the present time to calls that may depend on it: on an idle chain the newest block may be hours old, or from
 * before the clock was moved.
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
