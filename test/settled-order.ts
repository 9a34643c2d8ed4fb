// An order settled on a chain of the test's own, made of the protocol's functions: the far end for tests of what verifies
// receipts and proofs.
import { createSign, generateKeyPairSync } from "node:crypto";

import {
  addressOfPrivateKey,
  auditLeafOf,
  buildTree,
  commitmentOf,
  fieldsHash,
  hexOfBytes,
  leafOf,
  leavesHash,
  orderIdOf,
  orderLeafOf,
  requestObjectHash,
  shareDigest,
  signDigest,
  type EcPublicJwk,
  type Hex32,
  type Info,
  type OrderPhase,
  type Receipt,
} from "@svc/protocol";
import { createPublicClient, createWalletClient, http, type Abi, type Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";

import { credentialRegistry, settlement as settlementContract } from "../contracts/index.ts";
import type { Anvil } from "./anvil.ts";
import type { FieldProof } from "../packages/merchant/src/index.ts";

type Address = Hex;

/** The key that the test chain funds. */
const operatorKey = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const userKey = new Uint8Array(32).fill(0x1f);
export const user = addressOfPrivateKey(userKey);
export const issuer = "0x1111111111111111111111111111111111111111";
export const otherIssuer = "0x2222222222222222222222222222222222222222";
export const referenceKey = "cd".repeat(32);

const pepper = (byte: number): Hex32 => `0x${byte.toString(16).padStart(2, "0").repeat(32)}`;

/** What the user released, and what was left in the wallet. */
export const infos: readonly Info[] = [
  { field: "EMAIL", data: "alice@example.com", pepper: pepper(1) },
  { field: "IDCARD_DOB", data: "1990-02-28", pepper: pepper(2) },
];

export interface SettledChain {
  operator: Address;
  registry: Address;
  settlement: Address;
  /** Of the newest block, Unix seconds. */
  now: () => Promise<number>;
  /** The block of a transaction. */
  placeOf: (hash: Hex32) => Promise<{ blockNumber: number; blockTime: number }>;
  /** Sends a transaction and waits for its block. */
  send: (to: Address, call: { abi: Abi; name: string; args: readonly unknown[] }) => Promise<Hex32>;
  deploy: (contract: { abi: Abi; bytecode: Hex }, args?: readonly unknown[]) => Promise<Address>;
}

/** Deploys both contracts. */
export async function openSettledChain(anvil: Pick<Anvil, "url">): Promise<SettledChain> {
  const account = privateKeyToAccount(operatorKey);
  const transport = http(anvil.url);
  const wallet = createWalletClient({ account, transport });
  const reader = createPublicClient({ transport, pollingInterval: 20 });
  const deploy: SettledChain["deploy"] = async ({ abi, bytecode }, args = []) => {
    const hash = await wallet.deployContract({ abi, bytecode, args, chain: null });
    const { contractAddress } = await reader.waitForTransactionReceipt({ hash });
    return (contractAddress ?? "0x").toLowerCase() as Address;
  };
  const operator = account.address.toLowerCase() as Address;
  const registry = await deploy(credentialRegistry, [operator]);
  const settlement = await deploy(settlementContract);
  const send: SettledChain["send"] = async (address, { abi, name, args }) => {
    const call = { address, abi, functionName: name, args, chain: null };
    const hash = await wallet.writeContract(call);
    await reader.waitForTransactionReceipt({ hash });
    return hash;
  };
  const chain: SettledChain = {
    operator,
    registry,
    settlement,
    now: async () => Number((await reader.getBlock()).timestamp),
    placeOf: async (hash) => {
      const { blockNumber } = await reader.getTransactionReceipt({ hash });
      const { timestamp } = await reader.getBlock({ blockNumber });
      return { blockNumber: Number(blockNumber), blockTime: Number(timestamp) };
    },
    send,
    deploy,
  };
  for (const each of [issuer, otherIssuer]) {
    const role = `0x${"0".repeat(24)}${each.slice(2)}`;
    await callRegistry(chain, "grantRole", [role, operator]);
  }
  return chain;
}

export async function callRegistry(
  { send, registry }: SettledChain,
  name: string,
  args: readonly unknown[],
): Promise<Hex32> {
  return send(registry, { abi: credentialRegistry.abi, name, args });
}

export interface SettledOrder {
  receipt: Receipt;
  proofs: FieldProof[];
  /** Of the broker that signed the request object. */
  brokerKey: EcPublicJwk;
  /** A leaf that pads the document's tree, and the siblings from it to the root. */
  padding: { leaf: Hex32; proof: Hex32[] };
}

export interface OrderOptions {
  chainId: number;
  /** Default: `user`, with the signature of its key. */
  user?: Address;
  signature?: Hex;
  /** Unix seconds; when the leaves end. */
  expiresAt: number;
  issuer?: Address;
  claims?: Record<string, unknown>;
  referenceKey?: string;
}

/** Attests a document, lets the user consent, and anchors both phases. */
export async function settleOrder(
  chain: SettledChain,
  options: OrderOptions,
): Promise<SettledOrder> {
  const key = options.referenceKey ?? referenceKey;
  const document = await attest(chain, options);
  const { requestObject, brokerKey } = signStatement(key, options.claims);
  const share = {
    request: key,
    connection: "https://id.example/w/o/token",
    requester: "shop.example",
    object: requestObjectHash(requestObject),
    fields: fieldsHash(infos.map(({ field }) => field)),
    data: leavesHash(document.leaves),
    deadline: 1_790_000_600,
  };
  const consent = shareDigest(share);
  const named = { referenceKey: key, attempt: 1, salt: pepper(0x5a) };
  const order = orderIdOf(named);
  const anchor = async (phase: OrderPhase, name: string): Promise<Receipt["initiate"]> => {
    const leaf = orderLeafOf({ phase, order, consent: hexOfBytes(consent), data: share.data });
    const tree = buildTree([leaf, pepper(0x72), auditLeafOf({ head: pepper(0x73), position: 9 })]);
    const { abi } = settlementContract as { abi: Abi };
    const hash = await chain.send(chain.settlement, { abi, name, args: [tree.root] });
    const place = await chain.placeOf(hash);
    const { operator } = chain;
    return {
      operator,
      transactionHash: hash,
      ...place,
      root: tree.root,
      proof: tree.proofOf(leaf),
    };
  };
  const receipt: Receipt = {
    ...named,
    user: options.user ?? user,
    livemode: true,
    requestObject,
    share,
    signature: options.signature ?? signDigest(consent, userKey),
    fields: document.fields,
    chainId: options.chainId,
    registry: chain.registry,
    settlement: chain.settlement,
    initiate: await anchor(1, "initiate"),
    confirm: await anchor(2, "confirm"),
  };
  return { receipt, proofs: document.proofs, brokerKey, padding: document.padding };
}

async function attest(chain: SettledChain, options: OrderOptions) {
  const { expiresAt, chainId } = options;
  const by = options.issuer ?? issuer;
  const openings = infos.map((info) => ({
    user: options.user ?? user,
    field: info.field,
    commitment: commitmentOf(info),
    expiresAt,
  }));
  const leaves = openings.map(leafOf);
  const padding = [hexOfBytes(crypto.getRandomValues(new Uint8Array(32))), pepper(0x71)] as const;
  const tree = buildTree([...leaves, ...padding]);
  const transactionHash = await callRegistry(chain, "attest", [by, [tree.root]]);
  const fields = openings.map(({ field, commitment }, index) => ({
    field,
    commitment,
    expiresAt,
    issuer: by,
    root: tree.root,
    proof: tree.proofOf(leaves[index] ?? "0x"),
  }));
  const proofs = fields.map((field, index) =>
    Object.assign({ leaf: leaves[index] ?? "0x", transactionHash }, field, {
      chainId,
      registry: chain.registry,
    }),
  );
  return {
    leaves,
    fields,
    proofs,
    padding: { leaf: padding[0], proof: tree.proofOf(padding[0]) },
  };
}

function signStatement(id: string, changed: Record<string, unknown> = {}) {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const claims = {
    iss: "https://id.example",
    aud: "svc-wallet",
    action: "request",
    id,
    client_name: "Corner Coffee",
    domain: "shop.example",
    from: `0x${"9".repeat(40)}`,
    required: ["EMAIL", "DOB_PARENT_FIELD"],
    optional: ["ADDRESS_CITY"],
    callback_host: "shop.example",
    scopes: [],
    purpose: "your age",
    iat: 1_790_000_000,
    exp: 1_790_000_600,
    ...changed,
  };
  const head = part({ alg: "ES256", typ: "svc-request+jwt", kid: "k1" });
  const signed = `${head}.${part(claims)}`;
  const signature = createSign("sha256")
    .update(signed)
    .sign({ key: privateKey, dsaEncoding: "ieee-p1363" });
  const jwk = publicKey.export({ format: "jwk" });
  const brokerKey: EcPublicJwk = {
    kty: "EC",
    crv: "P-256",
    x: jwk.x ?? "",
    y: jwk.y ?? "",
    kid: "k1",
  };
  return { requestObject: `${signed}.${signature.toString("base64url")}`, brokerKey };
}

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
