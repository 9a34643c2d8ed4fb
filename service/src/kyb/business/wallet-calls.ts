import { type Address, type Hex, type Hex32, parseAddress } from "@svc/protocol";
import type { ParseAbi } from "viem";
import {
  type Chain,
  type ChainContext,
  hashOf,
  loadContractRead,
  NodeAway,
  readFinal,
  readHead,
  readTime,
} from "../../chain/index.ts";
import { type BlockRange, readLogs } from "./event-logs.ts";

/** The state of a business wallet. */
export interface WalletState {
  /** The state is that of this block, or of a later one. */
  readonly block: number;
  readonly charter: Hex;
  readonly epoch: number;
  readonly nonce: number;
  /** The removal under way. */
  readonly removal: {
    readonly member: Address;
    readonly endsAt: number;
    readonly keepNonce: number;
  } | null;
  readonly successor: Address | null;
}

/** Approvals in the contract's form. */
interface RelayedApprovals {
  readonly validUntil: number;
  /** Joined, in the order of the signers' addresses. */
  readonly signatures: Hex;
}

/** The calls of factory and wallet that this slice needs (Solidity ABI). */
export interface WalletCalls {
  /** The address at which the factory deploys the wallet of a charter. */
  addressOf(given: { factory: Address; charter: Hex; salt: Hex32 }): Address;
  create(charter: Hex, salt: Hex32): Hex;
  /** @param args the arguments encoded by `abi.encode`, as they were approved */
  govern(operation: GovernanceOperation, args: Hex, approvals: RelayedApprovals): Hex;
  keep(signature: Hex): Hex;
  finishRemoval(): Hex;
  record(hash: Hex32, approvals: RelayedApprovals): Hex;
  /** The final state of a deployed wallet. @throws if the chain's node cannot be asked */
  read(ctx: ChainContext, wallet: Address): Promise<WalletState>;
  /** Whether the business has signed the hash and not withdrawn it, according to final blocks. */
  isRecorded(ctx: ChainContext, wallet: Address, hash: Hex32): Promise<boolean>;
  /**
   * The transaction that recorded a hash, and its time in Unix seconds; null if there is none.
   *
   * @param asked.since a block number: `behind` if that is not final at the node that answers
   * @throws while the transaction is not final
   */
  findRecording(
    ctx: ChainContext,
    wallet: Address,
    asked: { hash: Hex32; since: number },
  ): Promise<{ transactionHash: Hex32; at: number } | "behind" | null>;
  /** Until when a member is protected from removal, Unix seconds. */
  protectedUntil(ctx: ChainContext, wallet: Address, member: Address): Promise<number>;
}

/** The contract's functions for acts of governance. */
export type GovernanceOperation = "changeCharter" | "moveTo" | "startRemoval" | "withdraw";

/** How often a wallet of the embedded chain is read again because blocks were mined meanwhile. */
const readsMax = 10;

/** Loads the library when it is first needed; most verbs of the command line do not need it. */
export async function loadWalletCalls(): Promise<WalletCalls> {
  const [viem, readContract] = await Promise.all([import("viem/utils"), loadContractRead()]);
  const abi = viem.parseAbi(callTexts);
  const views: Views = { abi: viem.parseAbi(viewTexts), readContract };
  return {
    addressOf: ({ factory, charter, salt }) => {
      // The code that all wallets of a factory share is the only contract that its constructor creates: hence nonce 1.
      const implementation = viem.getContractAddress({ from: factory, nonce: 1n });
      const bytecodeHash = viem.keccak256(cloneCode(implementation, charter));
      const given = { from: factory, salt, bytecodeHash, opcode: "CREATE2" } as const;
      return addressOf(viem.getContractAddress(given));
    },
    create: (charter, salt) =>
      viem.encodeFunctionData({ abi, functionName: "create", args: [charter, salt] }),
    govern: (functionName, args, { validUntil, signatures }) => {
      const [value] = viem.decodeAbiParameters(argumentOf[functionName], args);
      return viem.encodeFunctionData({ abi, functionName, args: [value, validUntil, signatures] });
    },
    keep: (signature) => viem.encodeFunctionData({ abi, functionName: "keep", args: [signature] }),
    finishRemoval: () => viem.encodeFunctionData({ abi, functionName: "finishRemoval" }),
    record: (hash, { validUntil, signatures }) =>
      viem.encodeFunctionData({
        abi,
        functionName: "record",
        args: [hash, validUntil, signatures],
      }),
    findRecording: async ({ chain }, address, { hash, since }) => {
      const call = { abi: views.abi, address, functionName: "recordedAt", args: [hash] } as const;
      // In one batch, so that the same node answers both.
      const [at, head] = await Promise.all([readContract(chain, call), readHead(chain)]);
      // A node that lags may not have the block yet, or may have another one in its place.
      if (at === 0) return head - (chain.confirmations - 1) < since ? "behind" : null;
      if (!(await isFinallyRecorded(chain, views, { address, hash })))
        throw new Error(`what ${address} recorded is not final yet`);
      const filter = { address, topics: [viem.toEventSelector(recordedEvent), hash] };
      let transactionHash: Hex32 | null = null;
      for await (const { logs } of readLogs(chain, filter, await blocksAt(chain, at)))
        for (const log of logs) transactionHash = hashOf(log["transactionHash"]);
      if (transactionHash === null)
        throw new NodeAway(`the chain's node has no event for what ${address} recorded`);
      return { transactionHash, at };
    },
    isRecorded: async ({ chain }, address, hash) =>
      isFinallyRecorded(chain, views, { address, hash }).catch(undecodableAsAway),
    protectedUntil: async ({ chain }, address, member) => {
      const call = {
        abi: views.abi,
        address,
        functionName: "protectedUntil",
        args: [member],
      } as const;
      return readContract(chain, call).catch(undecodableAsAway);
    },
    read: async ({ chain }, wallet) => readWallet(chain, views, wallet),
  };
}

const callTexts = [
  "function create(bytes charter, bytes32 salt)",
  "function changeCharter(bytes charter, uint48 validUntil, bytes approvals)",
  "function moveTo(address successor, uint48 validUntil, bytes approvals)",
  "function startRemoval(address member, uint48 validUntil, bytes approvals)",
  "function withdraw(bytes32 hash, uint48 validUntil, bytes approvals)",
  "function keep(bytes signature)",
  "function finishRemoval()",
  "function record(bytes32 hash, uint48 validUntil, bytes signatures)",
] as const;
const viewTexts = [
  "function charter() view returns (bytes)",
  "function epoch() view returns (uint64)",
  "function nonce() view returns (uint256)",
  "function removal() view returns (address member, uint48 endsAt, uint48 keepNonce)",
  "function successor() view returns (address)",
  "function recordedAt(bytes32 hash) view returns (uint48)",
  "function protectedUntil(address member) view returns (uint48)",
] as const;
const recordedEvent = "event Recorded(bytes32 indexed hash)";
const argumentOf = {
  changeCharter: [{ type: "bytes" }],
  moveTo: [{ type: "address" }],
  startRemoval: [{ type: "address" }],
  withdraw: [{ type: "bytes32" }],
} as const;

/** What is needed to call a wallet's view functions. */
interface Views {
  readonly abi: ParseAbi<typeof viewTexts>;
  readonly readContract: Awaited<ReturnType<typeof loadContractRead>>;
}

/** Asks as of the newest final block, since a reorganisation may undo anything later. */
async function isFinallyRecorded(
  chain: Chain,
  { abi, readContract }: Views,
  { address, hash }: { address: Address; hash: Hex32 },
): Promise<boolean> {
  const call = { abi, address, functionName: "recordedAt", args: [hash] } as const;
  if (chain.confirmations === 1) return (await readContract(chain, call)) !== 0;
  const { answer: at } = await readFinal(chain, async (block) =>
    readContract(chain, { ...call, block }),
  );
  return at !== 0;
}

/** For wallets that are known to be deployed: a node that lags may not have the wallet yet, and answer with no data. */
function undecodableAsAway(cause: unknown): never {
  if (!(cause instanceof Error) || !cause.name.startsWith("AbiDecoding")) throw cause;
  throw new NodeAway("the chain's node does not have the wallet of a business yet", { cause });
}

async function readWallet(chain: Chain, views: Views, address: Address): Promise<WalletState> {
  const read = async (block?: number): Promise<Omit<WalletState, "block">> =>
    readState(chain, views, { address, block }).catch(undecodableAsAway);
  if (!chain.isEmbedded) {
    const { block, answer } = await readFinal(chain, read);
    return { block, ...answer };
  }
  // The embedded chain has only the newest state, so it is read again if a block was mined meanwhile.
  for (let tries = 0; tries < readsMax; tries += 1) {
    const block = await readHead(chain);
    const state = await read();
    if ((await readHead(chain)) === block) return { block, ...state };
  }
  throw new Error(`the chain went on whenever the wallet ${address} was read`);
}

/** Reads as of a block, or by default the newest one. All calls are in one batch. */
async function readState(
  chain: Chain,
  { abi, readContract }: Views,
  { address, block }: { address: Address; block: number | undefined },
): Promise<Omit<WalletState, "block">> {
  const place = block === undefined ? { abi, address } : { abi, address, block };
  const [charter, epoch, nonce, removal, successor] = await Promise.all([
    readContract(chain, { ...place, functionName: "charter" }),
    readContract(chain, { ...place, functionName: "epoch" }),
    readContract(chain, { ...place, functionName: "nonce" }),
    readContract(chain, { ...place, functionName: "removal" }),
    readContract(chain, { ...place, functionName: "successor" }),
  ]);
  const [member, endsAt, keepNonce] = removal;
  return {
    charter,
    epoch: Number(epoch),
    nonce: Number(nonce),
    removal: isZero(member) ? null : { member: addressOf(member), endsAt, keepNonce },
    successor: isZero(successor) ? null : addressOf(successor),
  };
}

/**
 * The blocks with this time, to look for the event of a contract that has stored its block's time. On the embedded
 * chain all blocks, since it returns events of any number of blocks at once.
 */
async function blocksAt(chain: Chain, at: number): Promise<BlockRange> {
  const head = await readHead(chain);
  if (chain.isEmbedded) return { first: 0, last: head };
  const firstAfter = async (time: number, from: number): Promise<number> => {
    let [first, end] = [from, head + 1];
    while (first < end) {
      const middle = Math.floor((first + end) / 2);
      if ((await readTime(chain, middle)) > time) end = middle;
      else first = middle + 1;
    }
    return first;
  };
  // Backwards from the newest block in steps that double, since nodes may have pruned old blocks.
  let [before, step] = [head, 1];
  while (before > 0 && (await readTime(chain, before)) >= at) {
    before = Math.max(0, before - step);
    step *= 2;
  }
  const first = await firstAfter(at - 1, before);
  return { first, last: (await firstAfter(at, first)) - 1 };
}

/** The creation code of OpenZeppelin's Clones: an ERC-1167 proxy with the charter appended to its code. */
function cloneCode(implementation: string, charter: Hex): Hex {
  const length = (charter.length / 2 - 1 + 0x2d).toString(16).padStart(4, "0");
  const target = implementation.slice(2).toLowerCase();
  return `0x61${length}3d81600a3d39f3363d3d373d3d3d363d73${target}5af43d82803e903d91602b57fd5bf3${charter.slice(2)}`;
}

const isZero = (address: string): boolean => /^0x0+$/.test(address);

function addressOf(text: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new Error("the chain named an address that is none");
  return address;
}
