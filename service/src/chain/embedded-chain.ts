import {
  type Address,
  addressOfPrivateKey,
  type Hex,
  type Hex32,
  parseAddress,
} from "@svc/protocol";
import { Client } from "pg";
import type { Ctx } from "../platform/context.ts";
import { tryLock } from "./embedded-lock-store.ts";
import { checkTurn, hashOfBlock, readTransaction } from "./admission.ts";
import { type AnvilProcess, startAnvilProcess } from "./anvil-process.ts";
import * as store from "./embedded-store.ts";
import { type Ipc, openIpc } from "./ipc.ts";
import { type ChainNode, NodeAway, RpcError } from "./node.ts";

/** Transactions of one block. */
const blockMax = 300;
/** More in one message, and the node loses their order. */
const batchMax = 30;
/** Looks by itself this often; notifications only hurry. */
const pollMs = 1_000;
/** A start that had to replay more blocks than this leaves a fold behind, as does running on for as many. */
const foldEveryBlocks = 2_000;
const replayPage = 500;
const openWithinMs = 30_000;
/** A block is mined when the shared clock was moved by so much. */
const jumpMs = 500;

/** What is kept sealed: the faucet's key. */
export const faucetPlace = { table: "embedded_chain", id: "true", column: "faucet_key_sealed" };

/**
 * Opens the embedded chain. Of all processes over the database one has it (an advisory lock): it runs the node, mines
 * and replays; the others write transactions to the journal and read over the same socket. When the owner dies, its
 * node dies with it and the next one replays the journal, with the same block hashes.
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
    faucetKeySealed: ctx.seal.seal(key, faucetPlace),
  };
}

const noHash: Hex32 = `0x${"0".repeat(64)}`;

/** The right to run the node, for as long as its connection to the database lives. */
interface Ownership {
  readonly client: Client;
  readonly node: AnvilProcess;
}

class EmbeddedChain implements ChainNode {
  readonly chainId: number;
  readonly #ctx: Ctx;
  readonly #identity: store.EmbeddedIdentity;
  #owned: Ownership | null = null;
  #reading: { path: string; ipc: Ipc } | null = null;
  #work: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isAsked = false;
  #offsetMs: number;
  #blocksSinceFold = 0;
  #unsubscribe: (() => void)[] = [];

  constructor(ctx: Ctx, identity: store.EmbeddedIdentity) {
    this.#ctx = ctx;
    this.#identity = identity;
    this.chainId = identity.chainId;
    this.#offsetMs = ctx.clock.nowMs() - Date.now();
  }

  async open(): Promise<void> {
    const { notifications } = this.#ctx;
    const wake = (): void => this.#wake();
    this.#unsubscribe = [
      await notifications.subscribe("embedded_chain", wake),
      // The clock's own handler reads the new offset first or meanwhile; the poll sees it at the latest.
      await notifications.subscribe("clock", () => void setTimeout(wake, 20)),
    ];
    const deadline = Date.now() + openWithinMs;
    for (;;) {
      await this.#turn();
      if (this.#owned !== null || (await this.#isReachable())) return;
      if (Date.now() > deadline) throw new NodeAway("the embedded chain did not open in time");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async request(method: string, params: readonly unknown[] = []): Promise<unknown> {
    // The node knows what is mined; what waits is in the journal.
    if (method === "eth_getTransactionCount" && params[1] === "pending") {
      const signer = parseAddress(String(params[0]));
      if (signer !== null) {
        const { nextNonce } = await store.readSigner(this.#ctx.db, signer, noHash);
        return `0x${nextNonce.toString(16)}`;
      }
    }
    const ipc = await this.#ipc();
    return ipc.request(method, atPresent(method, params, this.#ctx.clock.now()));
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
    this.#wake();
    if (fault !== null) throw fault;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const end of this.#unsubscribe) end();
    await this.#work;
    this.#reading?.ipc.close();
    await this.#letGo();
  }

  async #admit(raw: string): Promise<void> {
    const transaction = await readTransaction(raw, this.chainId);
    const { db, clock } = this.#ctx;
    const known = await store.readSigner(db, transaction.signer, transaction.hash);
    if (known.isKnown) return;
    const balance = await this.request("eth_getBalance", [transaction.signer, "latest"]);
    checkTurn(transaction, { ...known, balanceWei: BigInt(String(balance)) });
    if (await store.insertTransaction(db, transaction, clock.now())) return;
    // Somebody used the nonce since it was looked at, perhaps with these bytes.
    const after = await store.readSigner(db, transaction.signer, transaction.hash);
    if (!after.isKnown) checkTurn(transaction, { ...after, balanceWei: BigInt(String(balance)) });
  }

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

  /** One look at everything; what fails is logged and tried again at the next. */
  async #turn(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      if (this.#owned === null) await this.#tryOwn();
      if (this.#owned !== null) await this.#mine(this.#owned);
    } catch (error) {
      if (error instanceof ChainDiffers) throw error;
      this.#ctx.log.error({ err: error }, "the embedded chain failed");
      await this.#letGo();
    } finally {
      if (!this.#isClosed) this.#timer = setTimeout(() => this.#wake(), pollMs).unref();
    }
  }

  async #tryOwn(): Promise<void> {
    const { db, log } = this.#ctx;
    const client = new Client({ ...db.connectionString, keepAlive: true });
    client.on("error", () => void this.#lose(client));
    await client.connect();
    if (!(await tryLock(client))) return client.end();
    const { chainId, genesisTime, faucetAddress } = this.#identity;
    const genesis = { chainId, time: genesisTime, faucet: faucetAddress };
    const node = await startAnvilProcess(genesis, (line) =>
      log.debug({ line }, "the embedded chain says"),
    );
    this.#owned = { client, node };
    void node.exited.then(async () => this.#lose(client));
    await this.#replay(node.ipc);
    await store.tellPath(db, node.path);
  }

  /** The lock or the node is gone: another process, or this one in its next turn, begins anew. */
  async #lose(client: Client): Promise<void> {
    if (this.#owned?.client !== client || this.#isClosed) return;
    this.#ctx.log.warn({}, "the embedded chain was lost and will be replayed");
    await this.#letGo();
    this.#wake();
  }

  async #letGo(): Promise<void> {
    const owned = this.#owned;
    this.#owned = null;
    if (owned === null) return;
    await owned.node[Symbol.asyncDispose]();
    // The lock goes last, so that there are never two nodes.
    await owned.client.end().catch(() => undefined);
  }

  /** Makes the chain again out of the journal. @throws {ChainDiffers} */
  async #replay(ipc: Ipc): Promise<void> {
    const { db } = this.#ctx;
    const fold = await store.findFold(db);
    if (fold !== null) await ipc.request("anvil_loadState", [`0x${fold.state.toString("hex")}`]);
    let after = fold?.number ?? 0;
    let replayed = 0;
    for (;;) {
      const blocks = await store.listBlocks(db, { after, limit: replayPage });
      for (const [index, block] of blocks.entries()) {
        // Hashes are chained, so looking at the last of each page is looking at all.
        const isLast = index === blocks.length - 1;
        await this.#mineBlock(ipc, block, { compare: isLast });
      }
      replayed += blocks.length;
      after = blocks.at(-1)?.number ?? after;
      if (blocks.length < replayPage) break;
    }
    this.#blocksSinceFold = replayed;
    await this.#foldWhenDue(ipc, after);
  }

  async #mine({ node }: Ownership): Promise<void> {
    const { db, clock } = this.#ctx;
    const offsetMs = clock.nowMs() - Date.now();
    let mayBeEmpty = Math.abs(offsetMs - this.#offsetMs) > jumpMs;
    this.#offsetMs = offsetMs;
    for (;;) {
      const given = { time: clock.now(), max: blockMax, mayBeEmpty };
      const block = await store.decideBlock(db, given);
      if (block === null) return;
      mayBeEmpty = false;
      await this.#mineBlock(node.ipc, block, { compare: true });
      this.#blocksSinceFold += 1;
      await this.#foldWhenDue(node.ipc, block.number);
      if (block.raws.length < blockMax && !this.#isAsked) return;
    }
  }

  async #mineBlock(ipc: Ipc, block: store.Block, { compare }: { compare: boolean }): Promise<void> {
    for (let from = 0; from < block.raws.length; from += batchMax) {
      const raws = block.raws.slice(from, from + batchMax);
      const answers = await ipc.batch(raws.map((raw) => ["eth_sendRawTransaction", [raw]]));
      for (const answer of answers) {
        // Admission is stricter than the node; a refusal here would come again in every replay, so the chain stays one.
        if (answer instanceof Error)
          this.#ctx.log.error(
            { err: answer },
            "the embedded chain refused a journaled transaction",
          );
      }
    }
    await ipc.request("evm_mine", [`0x${block.time.toString(16)}`]);
    if (!compare) return;
    const hash = hashOfBlock(await ipc.request("eth_getBlockByNumber", ["latest", false]));
    if (block.hash !== null && block.hash !== hash) throw new ChainDiffers(block.number);
    if (block.hash === null) await store.keepHash(this.#ctx.db, block.number, hash);
  }

  async #foldWhenDue(ipc: Ipc, number: number): Promise<void> {
    if (this.#blocksSinceFold < foldEveryBlocks) return;
    const dump = String(await ipc.request("anvil_dumpState", [false]));
    await store.keepFold(this.#ctx.db, { number, state: Buffer.from(dump.slice(2), "hex") });
    this.#blocksSinceFold = 0;
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

/** The replayed chain is not the one that was: the journal or the node changed. Going on would fork what others rely on. */
export class ChainDiffers extends Error {
  constructor(number: number) {
    super(
      `the embedded chain came back with another block ${number}: its journal or its node was changed`,
    );
    this.name = "ChainDiffers";
  }
}

/** On an idle chain the last block is hours old: what depends on the time is asked as of now. */
function atPresent(method: string, params: readonly unknown[], now: number): readonly unknown[] {
  const [call, block = "latest", overrides = null] = params;
  const isPresent = block === "latest" || block === "pending";
  if (method !== "eth_call" || !isPresent || params.length > 3) return params;
  return [call, block, overrides, { time: `0x${now.toString(16)}` }];
}

/** Whom the coin of the genesis block belongs to. */
export async function findFaucet(
  ctx: Ctx,
): Promise<{ address: Address; privateKey: Uint8Array; chainId: number } | null> {
  const identity = await store.findIdentity(ctx.db);
  if (identity === null) return null;
  const privateKey = ctx.seal.open(identity.faucetKeySealed, faucetPlace);
  return { address: identity.faucetAddress, privateKey, chainId: identity.chainId };
}
