// Gas of a business wallet beside Safe 1.5.0, both on one chain.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { businessFactory, businessWallet } from "@svc/contracts";
import {
  type Address,
  addressOfPrivateKey,
  approvalDigest,
  bytesOfHex,
  encodeCharter,
  type Hex,
  parseAddress,
  signDigest,
} from "@svc/protocol";
import {
  type Abi,
  encodeDeployData,
  encodeFunctionData,
  getAddress,
  hashMessage,
  keccak256,
  parseAbi,
  toHex,
} from "viem";
import { startAnvilProcess } from "../service/src/chain/anvil-process.ts";
import type { Row } from "./row.ts";

const chainId = 31_337;
const genesisTime = 1_800_000_000;
const noAddress: Address = "0x0000000000000000000000000000000000000000";
/** Of a call without data (EIP-2028, EIP-7623 leave it at this). */
const baseGas = 21_000;
const callDataGas = { zero: 4, other: 16 };

/** Sends transactions one by one, each in a block of its own. */
interface Chain {
  /** @returns what it made, where it made a contract */
  send(to: Address | null, data: Hex): Promise<{ gasUsed: number; contract: Address | null }>;
  call(to: Address, data: Hex): Promise<Hex>;
  /** Of a call beyond its base cost. */
  gasOfCall(to: Address, data: Hex): Promise<number>;
}

/** Wallets of 3 and 10 members, a signature by 2 of 3, and asking about it. */
export async function benchKybGas(report: (line: string) => void): Promise<Row[]> {
  const faucet = addressOf(keyOf(0xfa));
  await using node = await startAnvilProcess(
    { chainId, time: genesisTime, faucet },
    () => undefined,
  );
  await node.ipc.request("anvil_impersonateAccount", [faucet]);
  const chain = openChain(async (method, params) => node.ipc.request(method, params), faucet);
  report("deploying both kinds of wallets");
  const [ours, safe] = [await measureOurs(chain), await measureSafe(chain)];
  return [
    row("create a wallet of 3 members", [ours.create3, safe.create3], 150_000),
    row("create a wallet of 10 members", [ours.create10, safe.create10], 185_000),
    row("sign by 2 of 3 members, for good", [ours.record, safe.record], 75_000),
    row("isValidSignature of what was signed", [ours.check, safe.check], 10_000),
  ].flat();
}

/** Below the bound, and below Safe. */
function row(name: string, [ours, peer]: readonly [number, number], most: number): Row[] {
  return [
    {
      name: `${name}; beside it Safe 1.5.0`,
      unit: "gas",
      ours,
      peer,
      target: { kind: "at-most", most },
    },
    {
      name: `${name}, as a share of Safe`,
      unit: "gas",
      ours,
      peer,
      target: { kind: "share-of-peer", most: 1 },
    },
  ];
}

interface Costs {
  readonly create3: number;
  readonly create10: number;
  readonly record: number;
  readonly check: number;
}

async function measureOurs(chain: Chain): Promise<Costs> {
  const environment = keccak256(toHex("bench"));
  const deployment = { abi: businessFactory.abi as Abi, bytecode: businessFactory.bytecode };
  const { contract: factory } = await chain.send(
    null,
    encodeDeployData({ ...deployment, args: [environment] }),
  );
  if (factory === null) throw new Error("the factory was not deployed");
  const create = async (count: number): Promise<{ wallet: Address; gasUsed: number }> => {
    const charter = encodeCharter({
      rules: { signature_requests: "MAJORITY", data_requests: "MAJORITY", governance: "MAJORITY" },
      members: keys.slice(0, count).map((key) => ({ address: addressOf(key), isVoting: true })),
    });
    const args = [charter, environment] as const;
    const asked = { abi: businessFactory.abi, functionName: "walletOf", args } as const;
    const wallet = addressInWord(await chain.call(factory, encodeFunctionData(asked)));
    const call = { abi: businessFactory.abi, functionName: "create", args } as const;
    return { wallet, gasUsed: (await chain.send(factory, encodeFunctionData(call))).gasUsed };
  };
  const three = await create(3);
  const ten = await create(10);
  const validUntil = genesisTime + 86_400;
  const approval = {
    chainId,
    business: three.wallet,
    category: 1,
    hash: digest,
    epoch: 0,
    validUntil,
  } as const;
  const approvals = signedBySome(approvalDigest(approval));
  const record = encodeFunctionData({
    abi: businessWallet.abi,
    functionName: "record",
    args: [digest, validUntil, approvals],
  });
  const { gasUsed } = await chain.send(three.wallet, record);
  const check = encodeFunctionData({
    abi: businessWallet.abi,
    functionName: "isValidSignature",
    args: [digest, `0x01${digest.slice(2)}`],
  });
  return {
    create3: three.gasUsed,
    create10: ten.gasUsed,
    record: gasUsed,
    check: await chain.gasOfCall(three.wallet, check),
  };
}

const safeAbi = parseAbi([
  "function setup(address[] owners, uint256 threshold, address to, bytes data, address fallbackHandler, address paymentToken, uint256 payment, address paymentReceiver)",
  "function createProxyWithNonce(address singleton, bytes initializer, uint256 saltNonce) returns (address)",
  "function execTransaction(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas, uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, bytes signatures) returns (bool)",
  "function getTransactionHash(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas, uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, uint256 nonce) view returns (bytes32)",
  "function signMessage(bytes data)",
  "function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)",
]);

/** A Safe keeps a signature by a delegate call of its own library `SignMessageLib`. */
async function measureSafe(chain: Chain): Promise<Costs> {
  const deploy = async (path: string): Promise<Address> => {
    const { contract } = await chain.send(null, await safeBytecode(path));
    if (contract === null) throw new Error(`${path} was not deployed`);
    return contract;
  };
  const singleton = await deploy("Safe.sol/Safe.json");
  const factory = await deploy("proxies/SafeProxyFactory.sol/SafeProxyFactory.json");
  const handler = await deploy(
    "handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler.json",
  );
  const library = await deploy("libraries/SignMessageLib.sol/SignMessageLib.json");
  const create = async (count: number): Promise<{ wallet: Address; gasUsed: number }> => {
    const owners = keys.slice(0, count).map(addressOf);
    const threshold = BigInt(Math.floor(count / 2) + 1);
    const setup = [owners, threshold, noAddress, "0x", handler, noAddress, 0n, noAddress] as const;
    const initializer = encodeFunctionData({ abi: safeAbi, functionName: "setup", args: setup });
    const args = [singleton, initializer, 0n] as const;
    const data = encodeFunctionData({ abi: safeAbi, functionName: "createProxyWithNonce", args });
    const wallet = addressInWord(await chain.call(factory, data));
    return { wallet, gasUsed: (await chain.send(factory, data)).gasUsed };
  };
  const three = await create(3);
  const ten = await create(10);
  const message = encodeFunctionData({ abi: safeAbi, functionName: "signMessage", args: [digest] });
  const act = [library, 0n, message, 1, 0n, 0n, 0n, noAddress, noAddress] as const;
  const asked = { abi: safeAbi, functionName: "getTransactionHash", args: [...act, 0n] } as const;
  const hash = await chain.call(three.wallet, encodeFunctionData(asked));
  const exec = encodeFunctionData({
    abi: safeAbi,
    functionName: "execTransaction",
    args: [...act, signedBySome(bytesOfHex(hash) ?? new Uint8Array(32))],
  });
  const { gasUsed } = await chain.send(three.wallet, exec);
  const check = encodeFunctionData({
    abi: safeAbi,
    functionName: "isValidSignature",
    args: [digest, "0x"],
  });
  return {
    create3: three.gasUsed,
    create10: ten.gasUsed,
    record: gasUsed,
    check: await chain.gasOfCall(three.wallet, check),
  };
}

/** What is signed. */
const digest: Hex = hashMessage("Terms of Corner Coffee");

/** Members' keys, by the order of their addresses. */
const keys = Array.from({ length: 10 }, (_, index) => keyOf(index + 1)).toSorted((one, other) =>
  addressOf(one) < addressOf(other) ? -1 : 1,
);

function keyOf(byte: number): Uint8Array {
  return new Uint8Array(32).fill(byte);
}

function addressOf(key: Uint8Array): Address {
  return addressOfPrivateKey(key);
}

/** By the first two of the members, in the order of their addresses. */
function signedBySome(signed: Uint8Array): Hex {
  const parts = keys.slice(0, 2).map((key) => signDigest(signed, key).slice(2));
  return `0x${parts.join("")}`;
}

async function safeBytecode(path: string): Promise<Hex> {
  const root = dirname(
    createRequire(import.meta.url).resolve("@safe-global/safe-smart-account/package.json"),
  );
  const text = await readFile(join(root, "build", "artifacts", "contracts", path), "utf8");
  const { bytecode } = JSON.parse(text) as { bytecode: Hex };
  return bytecode;
}

type Request = (method: string, params: unknown[]) => Promise<unknown>;

function openChain(request: Request, from: Address): Chain {
  const fees = { gas: "0xf42400", maxFeePerGas: "0x0", maxPriorityFeePerGas: "0x0" };
  const call: Chain["call"] = async (to, data) =>
    (await request("eth_call", [{ from, to, data }, "latest"])) as Hex;
  return {
    call,
    send: async (to, data) => {
      const transaction = { from, ...(to === null ? {} : { to }), data, ...fees };
      const hash = await request("eth_sendTransaction", [transaction]);
      await request("evm_mine", []);
      const receipt = (await request("eth_getTransactionReceipt", [hash])) as {
        status: string;
        gasUsed: string;
        contractAddress: string | null;
      };
      if (receipt.status !== "0x1") throw new Error(`a transaction to ${to} was reverted`);
      const contract = parseAddress(receipt.contractAddress ?? "");
      return { gasUsed: Number(receipt.gasUsed), contract };
    },
    gasOfCall: async (to, data) => {
      const answer = await call(to, data);
      if (!answer.startsWith("0x1626ba7e")) throw new Error("the signature does not hold");
      const transaction = { from, to, data, ...fees };
      const hash = await request("eth_sendTransaction", [transaction]);
      await request("evm_mine", []);
      const receipt = (await request("eth_getTransactionReceipt", [hash])) as { gasUsed: string };
      return Number(receipt.gasUsed) - baseGas - gasOfData(data);
    },
  };
}

function gasOfData(data: Hex): number {
  const bytes = bytesOfHex(data) ?? new Uint8Array(0);
  return bytes.reduce((sum, byte) => sum + (byte === 0 ? callDataGas.zero : callDataGas.other), 0);
}

function addressInWord(word: Hex): Address {
  const address = parseAddress(getAddress(`0x${word.slice(-40)}`));
  if (address === null) throw new Error("no address was answered");
  return address;
}
