import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { type Address, bytesOfHex, type Hex } from "@svc/protocol";
import {
  concat,
  encodeAbiParameters,
  encodeErrorResult,
  encodeFunctionData,
  getCreate2Address,
  keccak256,
  parseAbi,
  parseAbiParameters,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { openGate, startAnvil } from "../../../test/anvil.ts";
import { openInstallation } from "../../../test/chain-processes.ts";
import { holdTimers } from "../../../test/held-timers.ts";
import { isWithin } from "../../../test/patience.ts";
import { Problem } from "../platform/http/problems.ts";
import { readContract } from "./contract-read.ts";
import { type ChainContext, verifySignature } from "./index.ts";

const stack = new AsyncDisposableStack();
after(async () => stack.disposeAsync());
const anvil = stack.use(await startAnvil());
const gate = stack.use(await openGate(anvil));
const installation = stack.use(await openInstallation(gate));
const { ctx } = stack.use(await installation.openProcess());

/** A contract has two seconds to answer, and a machine that stalls may take as long. */
let held = holdTimers(2_000);
stack.defer(() => held[Symbol.dispose]());

const digestHex = keccak256("0x1234");
const digest = bytesOfHex(digestHex) ?? new Uint8Array();
const owner = privateKeyToAccount(`0x${"42".repeat(32)}`);
const signed = await owner.sign({ hash: digestHex });
const ownerAddress = owner.address.toLowerCase() as Address;

const deployer: Address = "0x4e59b44847b379578588920ca78fbf26c0b4956c";
const suffix: Hex = `0x${"6492".repeat(16)}`;

// PUSH4 <value> PUSH1 e0 SHL PUSH0 MSTORE PUSH1 20 PUSH0 RETURN: answers every call with these four bytes.
const answering = (value: string): Hex => `0x63${value}60e01b5f5260205ff3`;
/** JUMPDEST PUSH0 JUMP: burns whatever gas it gets. */
const endless: Hex = "0x5b5f56";

let contracts = 0;
async function place(code: Hex): Promise<Address> {
  contracts += 1;
  const address: Address = `0x${contracts.toString(16).padStart(40, "c")}`;
  await anvil.rpc("anvil_setCode", [address, code]);
  return address;
}

const always = async (): Promise<boolean> => true;
const verify = async (address: Address, signature: string): Promise<boolean> =>
  verifySignature(ctx, { address, digest, signature }, always);

const callsNow = (): number => gate.calls.get("eth_call") ?? 0;

test("the signature of an externally owned account is taken without asking the chain", async () => {
  const before = callsNow();
  assert.equal(await verify(ownerAddress, signed), true);
  assert.equal(callsNow(), before);
  assert.equal(await verify(await place("0x"), signed), false);
});

test("a contract's signature is what the contract says it is", async () => {
  assert.equal(await verify(await place(answering("1626ba7e")), "0x01"), true);
  assert.equal(await verify(await place(answering("ffffffff")), "0x01"), false);
  assert.equal(await verify(await place(answering("1626ba7f")), signed), false);
});

const wrap = (signature: Hex): Hex => {
  const parts = parseAbiParameters("address, bytes, bytes");
  return concat([encodeAbiParameters(parts, [deployer, "0x", signature]), suffix]);
};

test("the signature of a business is valid for no identity, even if a contract accepts it", async () => {
  const address = await place(answering("1626ba7e"));
  const ofBusiness: Hex = `0x01${digestHex.slice(2)}`;
  for (const signature of [ofBusiness, ofBusiness.toUpperCase().replace("0X", "0x")])
    assert.equal(await verify(address, signature), false);
  assert.equal(await verify(address, wrap(ofBusiness)), false);
  const other: Hex = `0x02${digestHex.slice(2)}`;
  assert.equal(await verify(address, other), true);
  assert.equal(await verify(address, wrap(other)), true);
});

test("an answer shorter than a word is not a yes, whatever the memory holds after it", async () => {
  // PUSH4 1626ba7e PUSH1 e0 SHL PUSH0 MSTORE PUSH1 1f PUSH0 RETURN: all but the last byte, for which the caller's
  // memory still has the zero byte of the digest.
  const address = await place("0x631626ba7e60e01b5f52601f5ff3");
  const claim = { address, digest: new Uint8Array(digest).fill(0, 27, 28), signature: "0x01" };
  assert.equal(await verifySignature(ctx, claim, always), false);
});

test("a contract is asked about this digest and this signature", async () => {
  const abi = parseAbi(["function isValidSignature(bytes32, bytes) view returns (bytes4)"]);
  const question = encodeFunctionData({ abi, args: [digestHex, "0x0102030405"] });
  // CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY CALLDATASIZE PUSH0 KECCAK256 PUSH32 <expected> EQ, times the yes.
  const expecting: Hex = `0x365f5f37365f207f${keccak256(question).slice(2)}14631626ba7e60e01b025f5260205ff3`;
  const address = await place(expecting);
  assert.equal(await verify(address, "0x0102030405"), true);
  assert.equal(await verify(address, "0x0102030406"), false);
  const other = new Uint8Array(digest).fill(0, 0, 1);
  const claim = { address, digest: other, signature: "0x0102030405" };
  assert.equal(await verifySignature(ctx, claim, always), false);
});

test("a contract that returns the question has signed nothing", async () => {
  // CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY CALLDATASIZE PUSH0 RETURN; and the identity precompile, which everybody has.
  assert.equal(await verify(await place("0x365f5f37365ff3"), "0x01"), false);
  assert.equal(await verify(`0x${"4".padStart(40, "0")}`, "0xdeadbeef"), false);
});

test("a contract that burns gas is refused within the bounds", async () => {
  assert.equal(await verify(await place(endless), "0x01"), false);
  let gas = 0n;
  gate.decide((method, [call]) => {
    if (method === "eth_call") gas = BigInt((call as { gas: Hex }).gas);
    return "pass";
  });
  await verify(await place(endless), "0x01");
  gate.decide(() => "pass");
  assert.equal(gas, 1_000_000n);
});

// PUSH4 <value> PUSH1 e0 SHL PUSH0 MSTORE PUSH3 060000 PUSH0, then RETURN (f3) or REVERT (fd): 384 KiB that begin so.
const flooding = (value: string, end: "f3" | "fd"): Hex => `0x63${value}60e01b5f52620600005f${end}`;

test("however much a contract answers, the node sends one byte of it", async () => {
  const lengths: number[] = [];
  const note = <T>(answer: T): T => {
    lengths.push(JSON.stringify(answer).length);
    return answer;
  };
  const signatureNode = {
    ...ctx.chain.signatureNode,
    request: async (method: string, params?: readonly unknown[]) =>
      ctx.chain.signatureNode.request(method, params).then(note, (error: unknown) => {
        throw note(error);
      }),
  };
  const noted: ChainContext = { ...ctx, chain: { ...ctx.chain, signatureNode } };
  const verifyNoted = async (address: Address, signature: string): Promise<boolean> =>
    verifySignature(noted, { address, digest, signature }, always);
  for (const [code, isYes] of [
    [flooding("1626ba7e", "f3"), true],
    [flooding("ffffffff", "f3"), false],
    [flooding("1626ba7e", "fd"), false],
  ] as const) {
    assert.equal(await verifyNoted(await place(code), "0x01"), isYes);
    const { address, wrapped } = counterfactual(code);
    assert.equal(await verifyNoted(address, wrapped), isYes);
  }
  assert.equal(lengths.length, 6);
  assert.ok(Math.max(...lengths) <= '"0x01"'.length, String(lengths));
});

/** An account that is not there yet, and what deploys it. */
function counterfactual(code: Hex): { address: Address; wrapped: Hex } {
  const length = (code.length - 2) / 2;
  const initCode: Hex = `0x${(0x5f + length).toString(16)}${code.slice(2)}5f5260${length
    .toString(16)
    .padStart(2, "0")}60${(32 - length).toString(16).padStart(2, "0")}f3`;
  const salt: Hex = `0x${"07".repeat(32)}`;
  const address = getCreate2Address({ from: deployer, salt, bytecode: initCode });
  const wrapped = concat([
    encodeAbiParameters(parseAbiParameters("address, bytes, bytes"), [
      deployer,
      concat([salt, initCode]),
      "0x01",
    ]),
    suffix,
  ]);
  return { address: address.toLowerCase() as Address, wrapped };
}

test("an account that is not deployed yet signs with what deploys it, and is not deployed by that", async () => {
  const { address, wrapped } = counterfactual(answering("1626ba7e"));
  assert.equal(await verify(address, wrapped), true);
  assert.equal(await anvil.rpc("eth_getCode", [address, "latest"]), "0x");
  assert.equal(await verify(ownerAddress, wrapped), false, "it is another account");
  const refusing = counterfactual(answering("ffffffff"));
  assert.equal(await verify(refusing.address, refusing.wrapped), false);
  const burning = counterfactual(endless);
  assert.equal(await verify(burning.address, burning.wrapped), false);
});

test("what is no signature is refused without asking the chain", async () => {
  const address = await place(answering("1626ba7e"));
  const before = callsNow();
  const noWrapper = `0x${"00".repeat(31)}${"6492".repeat(16)}`;
  for (const signature of ["", "0x", "0x1", "zz", `0x${"00".repeat(16_385)}`, noWrapper])
    assert.equal(await verify(address, signature), false, signature.slice(0, 10));
  assert.equal(callsNow(), before);
});

test("an off-chain lookup in a contract's answer is not followed", async () => {
  let visits = 0;
  const canary = createServer((_request, response) => {
    visits += 1;
    response.end("{}");
  });
  canary.listen(0, "127.0.0.1");
  await once(canary, "listening");
  const abi = parseAbi([
    "error OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callbackFunction, bytes extraData)",
  ]);
  contracts += 1;
  const address: Address = `0x${contracts.toString(16).padStart(40, "c")}`;
  const data = encodeErrorResult({
    abi,
    errorName: "OffchainLookup",
    args: [
      address,
      [`http://127.0.0.1:${(canary.address() as AddressInfo).port}/{sender}/{data}`],
      "0x",
      "0x1626ba7e",
      "0x",
    ],
  });
  const size = ((data.length - 2) / 2).toString(16).padStart(4, "0");
  // PUSH2 size PUSH1 0d PUSH0 CODECOPY PUSH2 size PUSH0 REVERT, and what it reverts with.
  await anvil.rpc("anvil_setCode", [address, `0x61${size}600c5f3961${size}5ffd${data.slice(2)}`]);
  assert.equal(await verify(address, "0x01"), false);
  await assert.rejects(
    readContract(ctx.chain, {
      address,
      abi: parseAbi(["function isValidSignature(bytes32, bytes) view returns (bytes4)"]),
      functionName: "isValidSignature",
      args: [digestHex, "0x01"],
    }),
  );
  assert.equal(visits, 0);
  canary.close();
});

test("a chain that does not answer is no verdict", async (t) => {
  held[Symbol.dispose]();
  t.after(() => {
    held = holdTimers(2_000);
  });
  const address = await place(answering("1626ba7e"));
  for (const fault of ["broken", "hang"] as const) {
    gate.decide(() => fault);
    const ask = async (): Promise<void> =>
      assert.rejects(
        verify(address, "0x01"),
        (error: unknown) => error instanceof Problem && error.reason === "chain_unavailable",
      );
    assert.ok(await isWithin(8_000, ask));
  }
  gate.decide(() => "pass");
});

test("an error of the node is no verdict, one of the contract is", async () => {
  const address = await place(answering("1626ba7e"));
  const fail = (code: number, message: string): void =>
    gate.decide((method) => (method === "eth_call" ? { error: { code, message } } : "pass"));
  for (const [code, message] of [
    [-32_005, "daily request count exceeded, request rate limited"],
    [429, "Your app has exceeded its compute units per second capacity"],
    [-32_000, "header not found"],
    [-32_000, "missing trie node 1a2b (path ) state 0x1a2b is not available"],
    [-32_603, "Internal error"],
    [-32_601, "the method eth_call does not exist"],
  ] as const) {
    fail(code, message);
    await assert.rejects(
      verify(address, "0x01"),
      (error: unknown) => error instanceof Problem && error.reason === "chain_unavailable",
      message,
    );
  }
  for (const [code, message] of [
    [3, "execution reverted: no owner"],
    [-32_000, "invalid opcode: INVALID"],
    [-32_000, "stack limit reached 1024 (1023)"],
    [-32_015, "VM execution error."],
    [-32_015, "out of gas"],
    [-32_003, "out of gas"],
    [-32_603, "EVM error InvalidJump"],
    [-32_603, "VM Exception while processing transaction: revert"],
  ] as const) {
    fail(code, message);
    assert.equal(await verify(address, "0x01"), false, message);
  }
  gate.decide(() => "pass");
});

test("a fault of the service itself is not reported as one of the chain", async () => {
  const fault = new TypeError("cannot read properties of undefined");
  const signatureNode = { ...ctx.chain.signatureNode, request: async () => Promise.reject(fault) };
  const broken: ChainContext = { ...ctx, chain: { ...ctx.chain, signatureNode } };
  const claim = { address: await place(answering("1626ba7e")), digest, signature: "0x01" };
  await assert.rejects(verifySignature(broken, claim, always), fault);
});

test("an answer that is neither yes nor no is no verdict", async () => {
  const address = await place(answering("ffffffff"));
  for (const result of ["0x", "0x0", "0x1", `0x${"0".repeat(63)}1`, "yes", null, 1, {}, ["0x01"]]) {
    gate.decide((method) => (method === "eth_call" ? { result } : "pass"));
    for (const signature of ["0x01", wrap("0x01")])
      await assert.rejects(
        verify(address, signature),
        (error: unknown) => error instanceof Problem && error.reason === "chain_unavailable",
        JSON.stringify(result),
      );
  }
  gate.decide(() => "pass");
  assert.equal(await verify(address, "0x01"), false);
});

test("a contract that may not sign is not asked", async () => {
  const claim = { address: await place(answering("1626ba7e")), digest, signature: "0x01" };
  const before = callsNow();
  assert.equal(await verifySignature(ctx, claim, async () => false), false);
  assert.equal(callsNow(), before);
  assert.equal(await verifySignature(ctx, claim, always), true);
});

test("contracts are asked at a bounded rate, by all processes together", async () => {
  const limits = { take: async () => ({ ok: false, retryAfterSeconds: 1 }) as const };
  const limited: ChainContext = { ...ctx, limits };
  const claim = { address: await place(answering("1626ba7e")), digest, signature: "0x01" };
  await assert.rejects(
    verifySignature(limited, claim, always),
    (error: unknown) => error instanceof Problem && error.reason === "rate_limited",
  );
  const own = { address: ownerAddress, digest, signature: signed };
  assert.equal(await verifySignature(limited, own, always), true);
});
