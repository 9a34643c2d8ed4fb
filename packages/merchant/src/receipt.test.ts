import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import {
  concat,
  createPublicClient,
  encodeAbiParameters,
  encodeErrorResult,
  getCreate2Address,
  http,
  parseAbi,
  parseAbiParameters,
  type Hex,
} from "viem";

import { openGate, startAnvil, type Anvil } from "../../../test/anvil.ts";
import { settlement as settlementContract } from "../../../contracts/index.ts";
import { changedAt, changes, pathsOf } from "../test/mutations.ts";
import {
  callRegistry,
  infos,
  issuer,
  openSettledChain,
  otherIssuer,
  referenceKey,
  settleOrder,
  user,
  type SettledChain,
  type SettledOrder,
} from "../../../test/settled-order.ts";
import { verifyReceipt, type ReceiptAnchors } from "./index.ts";

const day = 86_400;
let anvil: Anvil;
let chain: SettledChain;
let order: SettledOrder;
let now: number;
let expiresAt: number;

before(async () => {
  anvil = await startAnvil();
  chain = await openSettledChain(anvil);
  expiresAt = (await chain.now()) + day;
  order = await settleOrder(chain, { chainId: anvil.chainId, expiresAt });
  now = await chain.now();
});
after(async () => anvil[Symbol.asyncDispose]());

const anchors = (changed: Partial<ReceiptAnchors> = {}): ReceiptAnchors => {
  const { registry, settlement, operator } = chain;
  const own = { chainId: anvil.chainId, registry, settlement, operator, issuers: [issuer], now };
  return { rpcUrl: anvil.url, ...own, ...changed };
};
const verify = async (receipt: unknown, changed: Partial<ReceiptAnchors> = {}) =>
  verifyReceipt(receipt, anchors(changed));
const refused = (reason?: string) => ({
  code: "receipt_refused",
  ...(reason !== undefined && { reason }),
});

test("a genuine receipt says, fact by fact, what it proves", async () => {
  const { receipt, brokerKey } = order;
  const verified = await verify(JSON.parse(JSON.stringify(receipt)), {
    user: user.toUpperCase().replace("0X", "0x"),
    referenceKey,
    infos,
    brokerKeys: [brokerKey],
  });
  assert.equal(verified.user, user);
  assert.equal(verified.referenceKey, referenceKey);
  assert.deepEqual(verified.statement, {
    broker: "https://id.example",
    clientName: "Corner Coffee",
    requester: "shop.example",
    required: ["EMAIL", "DOB_PARENT_FIELD"],
    optional: ["ADDRESS_CITY"],
    callbackHost: "shop.example",
    purpose: "your age",
    issuedAt: 1_790_000_000,
  });
  const fields = ["EMAIL", "IDCARD_DOB"];
  const [{ attestedAt } = { attestedAt: 0 }] = verified.fields;
  const { initiate, confirm } = receipt;
  assert.deepEqual(verified.proved, [
    { fact: "consent", user, by: "key", fields },
    { fact: "statement_signed" },
    { fact: "values", fields },
    ...fields.flatMap((field) => [
      { fact: "attested", field, issuer, at: attestedAt },
      { fact: "live", field, at: now },
    ]),
    { fact: "initiated", transactionHash: initiate.transactionHash, at: initiate.blockTime },
    { fact: "confirmed", transactionHash: confirm?.transactionHash, at: confirm?.blockTime },
  ]);
});

test("without keys and values of the caller these are not among the facts", async () => {
  const { proved } = await verify(order.receipt);
  const facts = new Set(proved.map(({ fact }) => fact));
  assert.ok(!facts.has("statement_signed") && !facts.has("values"));
});

test("a receipt of an order that is not confirmed proves the initiate alone", async () => {
  const { confirm: _, ...initiated } = order.receipt;
  const { proved } = await verify(initiated);
  assert.ok(proved.some(({ fact }) => fact === "initiated"));
  assert.ok(!proved.some(({ fact }) => fact === "confirmed"));
});

test("a change anywhere in a receipt is refused", async () => {
  for (const path of pathsOf(order.receipt)) {
    for (const change of changes) {
      const changed = changedAt(order.receipt, path, change);
      const name = path.join(".");
      // Nothing on chain tells live from sandbox: the caller's issuers do.
      if (name === "livemode") await verify(changed);
      else await assert.rejects(verify(changed), refused(), name);
    }
  }
});

test("a receipt that lacks any member is refused, and so is what is no receipt", async () => {
  for (const path of pathsOf(order.receipt)) {
    const changed = changedAt(order.receipt, path, () => undefined);
    await assert.rejects(verify(changed), refused(), path.join("."));
  }
  for (const bad of [null, undefined, "receipt", [], {}]) {
    await assert.rejects(verify(bad), refused());
  }
});

test("siblings that are left out, added or exchanged are refused", async () => {
  for (const path of [
    ["fields", "0", "proof"],
    ["initiate", "proof"],
    ["confirm", "proof"],
  ]) {
    const alter = [
      (proof: string[]) => proof.slice(1),
      (proof: string[]) => proof.slice(0, -1),
      (proof: string[]) => [...proof, proof[0]],
      (proof: string[]) => proof.toReversed(),
      () => [],
    ];
    for (const each of alter) {
      const changed = changedAt(order.receipt, path, (proof) => each(proof as string[]));
      // The last leaf of an uneven tree has a proof so short that its reverse is the same.
      if (isDeepStrictEqual(changed, order.receipt)) continue;
      await assert.rejects(verify(changed), refused(), `${path.join(".")} ${String(each)}`);
    }
  }
});

test("another contract, operator, issuer, chain, user or order than the caller's own is refused", async () => {
  const elsewhere = `0x${"3".repeat(40)}`;
  const cases: [Partial<ReceiptAnchors>, string][] = [
    [{ settlement: elsewhere }, "settlement"],
    [{ registry: elsewhere }, "registry"],
    [{ operator: elsewhere }, "initiate.operator"],
    [{ operator: [] }, "initiate.operator"],
    [{ issuers: [otherIssuer] }, "fields[0].issuer"],
    [{ issuers: [] }, "fields[0].issuer"],
    [{ chainId: 1 }, "chainId"],
    [{ user: elsewhere }, "user"],
    [{ referenceKey: "ef".repeat(32) }, "referenceKey"],
  ];
  for (const [changed, reason] of cases)
    await assert.rejects(verify(order.receipt, changed), refused(reason), reason);
  await verify(order.receipt, { operator: [elsewhere, chain.operator] });
  const confirmed = changedAt(order.receipt, ["confirm", "operator"], () => elsewhere);
  await assert.rejects(verify(confirmed), refused("confirm.operator"));
});

test("the same root in another contract proves nothing, even where the receipt names it", async () => {
  const other = await chain.deploy(settlementContract);
  const { receipt } = order;
  const abi = settlementContract.abi as never;
  const hash = await chain.send(other, { abi, name: "initiate", args: [receipt.initiate.root] });
  const initiate = {
    ...receipt.initiate,
    transactionHash: hash,
    ...(await chain.placeOf(hash)),
  };
  await assert.rejects(verify({ ...receipt, settlement: other, initiate }), refused("settlement"));
  await assert.rejects(verify({ ...receipt, initiate }), refused("initiate.transactionHash"));
  await verify(
    { ...receipt, settlement: other, initiate, confirm: undefined },
    { settlement: other },
  );
});

test("the transactions of the phases do not stand in for each other", async () => {
  const { receipt } = order;
  const { initiate, confirm } = receipt;
  assert.ok(confirm !== undefined);
  const { transactionHash, blockNumber, blockTime } = confirm;
  const place = { transactionHash, blockNumber, blockTime };
  const swapped = { ...receipt, initiate: { ...initiate, ...place } };
  await assert.rejects(verify(swapped), refused("initiate.transactionHash"));
});

test("a chain of another id is refused, whatever receipt and caller say of theirs", async () => {
  const changed = { ...order.receipt, chainId: 1 };
  await assert.rejects(verify(changed, { chainId: 1 }), refused("chainId"));
});

test("a transaction counts from as many blocks on as the caller asks for", async () => {
  const head = Number(await anvil.rpc("eth_blockNumber"));
  const confirmed = order.receipt.confirm?.blockNumber ?? 0;
  const confirmations = head - confirmed + 1;
  await verify(order.receipt, { confirmations });
  await assert.rejects(
    verify(order.receipt, { confirmations: confirmations + 1 }),
    refused("confirm.transactionHash"),
  );
  for (const [given, reason] of [
    [{ confirmations: 1.5 }, "confirmations"],
    [{ confirmations: -1 }, "confirmations"],
    [{ timeoutMs: Number.NaN }, "timeoutMs"],
    [{ timeoutMs: 3_000_000_000 }, "timeoutMs"],
  ] as const)
    await assert.rejects(verify(order.receipt, given), { code: "configuration_invalid", reason });
});

test("a time that is not in Unix seconds is the caller's mistake", async () => {
  for (const wrong of [NaN, Date.now()])
    await assert.rejects(verify(order.receipt, { now: wrong }), { code: "configuration_invalid" });
});

test("other values than those that were consented to are refused", async () => {
  const [email, dob] = infos;
  assert.ok(email !== undefined && dob !== undefined);
  const cases = [
    [email],
    [],
    [email, { ...dob, data: "1990-02-27" }],
    [email, { ...dob, pepper: email.pepper }],
    [...infos, { ...dob, field: "PASSPORT_DOB" as const }],
  ];
  for (const given of cases)
    await assert.rejects(verify(order.receipt, { infos: given }), refused());
});

test("a statement that another broker signed is refused where the caller knows the keys", async () => {
  const other = await settleOrder(chain, { chainId: anvil.chainId, expiresAt });
  const brokerKeys = [other.brokerKey];
  await assert.rejects(verify(order.receipt, { brokerKeys }), refused("requestObject.signature"));
  await assert.rejects(verify(order.receipt, { brokerKeys: [] }), refused());
});

test("a statement that is not about this order and these fields is refused", async () => {
  const cases: [Record<string, unknown>, string][] = [
    [{ id: "ef".repeat(32) }, "id"],
    [{ action: "access" }, "action"],
    [{ aud: "other" }, "aud"],
    [{ iss: "https://evil.example" }, "iss"],
    [{ domain: "evil.example" }, "domain"],
    [{ required: ["EMAIL"], optional: [] }, "required"],
    [{ required: ["EMAIL", "IDCARD_DOB", "PHONE"] }, "required"],
    [{ iat: now + day }, "iat"],
    [{ callback_host: undefined }, "callback_host"],
  ];
  for (const [claims, claim] of cases) {
    const { receipt } = await settleOrder(chain, { chainId: anvil.chainId, expiresAt, claims });
    await assert.rejects(verify(receipt), refused(`requestObject.${claim}`), claim);
  }
});

test("an expired field is attested, and no longer live", async () => {
  const { fields, proved } = await verify(order.receipt, { now: expiresAt });
  assert.deepEqual(
    fields.map(({ standing }) => standing),
    ["EXPIRED", "EXPIRED"],
  );
  assert.ok(!proved.some(({ fact }) => fact === "live"));
  assert.ok(proved.some(({ fact }) => fact === "attested"));
});

test("a root that the issuer did not attest is refused", async () => {
  const changed = changedAt(order.receipt, ["fields", "0", "issuer"], () => otherIssuer);
  const issuers = [issuer, otherIssuer];
  await assert.rejects(verify(changed, { issuers }), refused("fields[0].root"));
});

test("a document that was revoked later still has its receipt, and is not live", async () => {
  const later = await settleOrder(chain, { chainId: anvil.chainId, expiresAt });
  await callRegistry(chain, "revoke", [issuer, [later.receipt.fields[0]?.root]]);
  const verified = await verify(later.receipt, { now: await chain.now() });
  assert.deepEqual(
    verified.fields.map(({ standing }) => standing),
    ["REVOKED", "REVOKED"],
  );
  assert.ok(!verified.proved.some(({ fact }) => fact === "live"));
});

test("an issuer that is distrusted takes the standing of its fields along", async () => {
  const by = { chainId: anvil.chainId, expiresAt, issuer: otherIssuer } as const;
  const { receipt } = await settleOrder(chain, by);
  await callRegistry(chain, "distrust", [otherIssuer, 1]);
  const { fields } = await verify(receipt, { issuers: [otherIssuer], now: await chain.now() });
  assert.deepEqual(
    fields.map(({ standing }) => standing),
    ["DISTRUSTED", "DISTRUSTED"],
  );
});

/** Answers every call with the magic value of ERC-1271, or with nothing. */
const yes = "0x6010600c60003960106000f3631626ba7e60e01b60005260206000f3";
const no = "0x6000600c60003960006000f3";

test("the consent of an account that is a contract is asked of the contract", async () => {
  const abi = parseAbi(["constructor()"]) as never;
  const signer = await chain.deploy({ abi, bytecode: yes });
  const silent = await chain.deploy({ abi, bytecode: no });
  const given = { chainId: anvil.chainId, expiresAt, signature: "0x1234" } as const;
  const signed = await settleOrder(chain, { ...given, user: signer });
  const { proved } = await verify(signed.receipt);
  assert.equal(proved[0]?.fact === "consent" && proved[0].by, "contract");
  const unsigned = await settleOrder(chain, { ...given, user: silent });
  await assert.rejects(verify(unsigned.receipt), refused("signature"));
  const nobody = await settleOrder(chain, { ...given, user: `0x${"4".repeat(40)}` });
  await assert.rejects(verify(nobody.receipt), refused("signature"));
});

/** The address of the contract that `initCode` would deploy, and a signature that says how to deploy it (ERC-6492). */
function counterfactual(initCode: Hex): { account: Hex; signature: Hex } {
  const deployer = "0x4e59b44847b379578588920ca78fbf26c0b4956c";
  const salt: Hex = `0x${"07".repeat(32)}`;
  const account = getCreate2Address({ from: deployer, salt, bytecode: initCode });
  const parts = parseAbiParameters("address, bytes, bytes");
  const deployed = encodeAbiParameters(parts, [deployer, concat([salt, initCode]), "0x1234"]);
  const signature = concat([deployed, `0x${"6492".repeat(16)}`]);
  return { account: account.toLowerCase() as Hex, signature };
}

test("the consent of an account that is not deployed yet counts as the contract will answer", async () => {
  const given = { chainId: anvil.chainId, expiresAt };
  const willing = counterfactual(yes);
  const signed = await settleOrder(chain, { ...given, ...willing, user: willing.account });
  const { proved } = await verify(signed.receipt);
  assert.equal(proved[0]?.fact === "consent" && proved[0].by, "contract");
  assert.equal(await anvil.rpc("eth_getCode", [willing.account, "latest"]), "0x");
  const unwilling = counterfactual(no);
  const unsigned = await settleOrder(chain, { ...given, ...unwilling, user: unwilling.account });
  await assert.rejects(verify(unsigned.receipt), refused("signature"));
  const other = { signature: willing.signature, user: unwilling.account };
  const forged = await settleOrder(chain, { ...given, ...other });
  await assert.rejects(verify(forged.receipt), refused("signature"));
});

test("a contract cannot make the verifier call anywhere else", async () => {
  let calls = 0;
  await using stack = new AsyncDisposableStack();
  const canary = createServer((_, response) => {
    calls += 1;
    response.end("{}");
  });
  await new Promise<void>((done) => canary.listen(0, "127.0.0.1", done));
  stack.defer(() => {
    canary.closeAllConnections();
    canary.close();
  });
  const url = `http://127.0.0.1:${(canary.address() as AddressInfo).port}/{data}`;
  const signer = `0x${"5".repeat(40)}` as const;
  const given = { chainId: anvil.chainId, expiresAt, signature: "0x1234", user: signer } as const;
  const { receipt } = await settleOrder(chain, given);
  const abi = parseAbi([
    "error OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callbackFunction, bytes extraData)",
  ]);
  const args = [signer, [url], "0x", "0x00000000", "0x"] as const;
  const data = encodeErrorResult({ abi, errorName: "OffchainLookup", args });
  const request = async ({ method, params }: { method: string; params?: unknown }) => {
    const [call] = (params ?? []) as { to?: string }[];
    if (method === "eth_call" && call?.to === signer)
      throw Object.assign(new Error("execution reverted"), { code: 3, data });
    return anvil.rpc(method, params as unknown[]);
  };
  const { rpcUrl: _, ...rest } = anchors() as ReceiptAnchors & { rpcUrl: string };
  await assert.rejects(
    verifyReceipt(receipt, { ...rest, client: { request } }),
    refused("signature"),
  );
  await verifyReceipt(order.receipt, { ...rest, client: { request } });
  assert.equal(calls, 0);
});

test("a client of viem may be given as it is", async () => {
  const { rpcUrl, ...rest } = anchors() as ReceiptAnchors & { rpcUrl: string };
  const client = createPublicClient({ transport: http(rpcUrl) });
  const { proved } = await verifyReceipt(order.receipt, { ...rest, client });
  assert.ok(proved.some(({ fact }) => fact === "initiated"));
});

test("a node that is broken, silent or redirects is no refusal, and its URL is told to nobody", async () => {
  await using gate = await openGate(anvil);
  const unreachable = { code: "chain_unreachable" };
  for (const fault of ["broken", "hang"] as const) {
    gate.decide(() => fault);
    await assert.rejects(
      verify(order.receipt, { rpcUrl: gate.url, timeoutMs: 300 }),
      (error: Error & { code?: string }) => {
        assert.equal(error.code, unreachable.code);
        assert.doesNotMatch(`${error.message} ${String(error.cause)}`, /canary|127\.0\.0\.1/);
        return true;
      },
    );
  }
});

test("a node that lies about the event, its block or the registry is caught where it contradicts itself", async () => {
  await using gate = await openGate(anvil);
  const lies: [method: string, result: unknown, reason: string][] = [
    ["eth_chainId", "0x1", "chainId"],
    ["eth_getTransactionReceipt", null, "initiate.transactionHash"],
    ["eth_call", "0x", "fields[0].registry"],
    ["eth_call", `0x${"0".repeat(192)}`, "fields[0].root"],
  ];
  for (const [method, result, reason] of lies) {
    gate.decide((asked) => (asked === method ? { result } : "pass"));
    await assert.rejects(verify(order.receipt, { rpcUrl: gate.url }), refused(reason), method);
  }
});

test("a node that cannot make a call decides nothing; one at which the call fails does", async () => {
  await using gate = await openGate(anvil);
  const request = async ({ method, params }: { method: string; params?: unknown }) => {
    if (method === "eth_call") throw Object.assign(new Error(error.message), error);
    return anvil.rpc(method, params as unknown[]);
  };
  let error: { code: number; message: string };
  gate.decide((asked) => (asked === "eth_call" ? { error } : "pass"));
  const unreachable = { code: "chain_unreachable" };
  const failed = refused("fields[0].registry");
  const rows: [code: number, message: string, expected: object][] = [
    [-32_000, "header not found", unreachable],
    [-32_000, "missing trie node 5f2a (path ) state is not available", unreachable],
    [-32_000, "insufficient funds for gas * price + value", unreachable],
    [-32_003, "transaction rejected", unreachable],
    [-32_005, "limit exceeded", unreachable],
    [-32_015, "no state available for block", unreachable],
    [-32_603, "call stack of the proxy exceeded", unreachable],
    [3, "execution reverted", failed],
    [-32_000, "execution reverted", failed],
    [-32_000, "invalid opcode: INVALID", failed],
    [-32_000, "invalid jump destination", failed],
    [-32_000, "stack underflow (0 <=> 1)", failed],
    [-32_003, "out of gas", failed],
    [-32_015, "VM execution error.", failed],
  ];
  const { rpcUrl: _, ...own } = anchors() as ReceiptAnchors & { rpcUrl: string };
  for (const [code, message, expected] of rows) {
    error = { code, message };
    await assert.rejects(verify(order.receipt, { rpcUrl: gate.url }), expected, message);
    const asked = verifyReceipt(order.receipt, { ...own, client: { request } });
    await assert.rejects(asked, expected, message);
  }
});

test("anchors that are no addresses are the caller's mistake", async () => {
  for (const name of ["registry", "settlement", "operator", "user"] as const)
    await assert.rejects(verify(order.receipt, { [name]: "0x12" }), {
      code: "configuration_invalid",
      reason: name,
    });
});
