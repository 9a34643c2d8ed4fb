// Gas of the Ethereum Attestation Service, which others anchor documents with, on the embedded chain's node.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Address, isHexOf, parseAddress } from "@svc/protocol";
import { type Abi, encodeDeployData, encodeFunctionData, type Hex, parseAbi } from "viem";
import { startAnvilProcess } from "../service/src/chain/anvil-process.ts";
import type { Result } from "./login.ts";
import type { Row } from "./row.ts";

/** What was measured with the contracts of the npm package `@ethereum-attestation-service/eas-contracts`. */
export const easVersion = "1.9.0";
/** Gas of each document, of ten in one transaction (`multiAttest`), where its data is one root of 32 bytes. */
export const easDocumentGas = 169_092;
/** The same with five commitments of 32 bytes instead of the root. */
export const easFieldsGas = 260_890;
/** Gas of a document in a transaction of its own (`attest`), where its data is one root. */
export const easLoneGas = 200_354;

const documents = 10;
const fieldsOfDocument = 5;
/** Times of the blocks, and how long an attestation is good for (seconds). */
const genesisTime = 1_800_000_000;
const expiresAt = BigInt(genesisTime + 365 * 86_400);
const noAddress: Address = "0x0000000000000000000000000000000000000000";
const noUid: Hex = `0x${"0".repeat(64)}`;

const contractAbi = parseAbi([
  "constructor(address registry)",
  "struct Data { address recipient; uint64 expirationTime; bool revocable; bytes32 refUID; bytes data; uint256 value; }",
  "struct Request { bytes32 schema; Data data; }",
  "struct MultiRequest { bytes32 schema; Data[] data; }",
  "function attest(Request request) payable returns (bytes32)",
  "function multiAttest(MultiRequest[] requests) payable returns (bytes32[])",
  "function register(string schema, address resolver, bool revocable) returns (bytes32)",
]);
const registryAbi = parseAbi([
  "function register(string schema, address resolver, bool revocable) returns (bytes32)",
  "event Registered(bytes32 indexed uid, address indexed registerer, (bytes32 uid, address resolver, bool revocable, string schema) schema)",
]);

/**
 * Deploys the contracts of the unpacked npm package in `directory` and attests documents.
 *
 * @throws Error when the package is not there, or a transaction is reverted
 */
export async function benchEas(report: (line: string) => void, directory: string): Promise<Result> {
  const faucet = addressOf("fa");
  const [registryCode, easCode] = [
    await bytecodeOf(directory, "SchemaRegistry"),
    await bytecodeOf(directory, "EAS"),
  ];
  await using node = await startAnvilProcess(
    { chainId: 31_337, time: genesisTime, faucet },
    () => undefined,
  );
  await node.ipc.request("anvil_impersonateAccount", [faucet]);
  const send = async (to: Address | null, data: Hex): Promise<Receipt> => {
    const fees = { gas: "0xf42400", maxFeePerGas: "0x0", maxPriorityFeePerGas: "0x0" };
    const transaction = { from: faucet, ...(to === null ? {} : { to }), data, ...fees };
    const hash = await node.ipc.request("eth_sendTransaction", [transaction]);
    await node.ipc.request("evm_mine", []);
    const receipt = (await node.ipc.request("eth_getTransactionReceipt", [hash])) as Receipt;
    if (receipt.status !== "0x1") throw new Error(`a transaction to ${to} was reverted`);
    return receipt;
  };
  report("deploying the contracts");
  const registry = contractOf(await send(null, registryCode));
  const deployment = { abi: contractAbi as Abi, bytecode: easCode, args: [registry] };
  const eas = contractOf(await send(null, encodeDeployData(deployment)));
  const rows: Row[] = [];
  for (const [name, words] of kinds) {
    report(`attesting with ${name}`);
    const schema = await register(send, registry, words);
    const many = documentsFrom(words, 0, documents);
    const args = [[{ schema, data: many }]] as const;
    const call = encodeFunctionData({ abi: contractAbi, functionName: "multiAttest", args });
    const { gasUsed } = await send(eas, call);
    rows.push(
      rowOf(`document of ${documents} in a multiAttest, ${name}`, Number(gasUsed) / documents),
    );
    const [data] = documentsFrom(words, documents, 1);
    if (data === undefined) throw new Error("no document");
    const one = { abi: contractAbi, functionName: "attest", args: [{ schema, data }] } as const;
    const alone = await send(eas, encodeFunctionData(one));
    rows.push(rowOf(`document in an attest of its own, ${name}`, Number(alone.gasUsed)));
  }
  return { rows, postgresVersion: "" };
}

const kinds = [
  ["a root of 32 bytes", 1],
  [`${fieldsOfDocument} commitments of 32 bytes`, fieldsOfDocument],
] as const;

interface Receipt {
  readonly status: string;
  readonly gasUsed: string;
  readonly contractAddress: string | null;
  readonly logs: readonly { readonly topics: readonly string[] }[];
}

type Send = (to: Address | null, data: Hex) => Promise<Receipt>;

async function register(send: Send, registry: Address, words: number): Promise<Hex> {
  const names = Array.from({ length: words }, (_, index) => `bytes32 field${index}`);
  const args = [names.join(","), noAddress, true] as const;
  const data = encodeFunctionData({ abi: registryAbi, functionName: "register", args });
  const { logs } = await send(registry, data);
  const uid = logs[0]?.topics[1] ?? "";
  if (!isHexOf(uid, 32)) throw new Error("the schema was not registered");
  return uid;
}

function documentsFrom(words: number, first: number, count: number) {
  return Array.from({ length: count }, (_, index) => ({
    recipient: addressOf((0x10 + first + index).toString(16)),
    expirationTime: expiresAt,
    revocable: true,
    refUID: noUid,
    data: `0x${(0x50 + first + index).toString(16).repeat(32 * words)}` as const,
    value: 0n,
  }));
}

function rowOf(name: string, gas: number): Row {
  return { name, unit: "gas", ours: gas, peer: null, target: { kind: "printed" } };
}

async function bytecodeOf(directory: string, name: string): Promise<Hex> {
  const path = join(directory, "artifacts", "contracts", `${name}.sol`, `${name}.json`);
  const { bytecode } = JSON.parse(await readFile(path, "utf8")) as { bytecode: Hex };
  return bytecode;
}

function contractOf({ contractAddress }: Receipt): Address {
  const address = parseAddress(contractAddress ?? "");
  if (address === null) throw new Error("no contract was deployed");
  return address;
}

function addressOf(byte: string): Address {
  const address = parseAddress(`0x${byte.repeat(20)}`);
  if (address === null) throw new Error(`${byte} is no byte`);
  return address;
}
