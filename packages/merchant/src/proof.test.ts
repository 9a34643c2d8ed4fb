import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { openGate, startAnvil, type Anvil } from "../../../test/anvil.ts";
import { changedAt, changes, pathsOf } from "../test/mutations.ts";
import {
  callRegistry,
  infos,
  issuer,
  openSettledChain,
  otherIssuer,
  settleOrder,
  user,
  type SettledChain,
  type SettledOrder,
} from "../../../test/settled-order.ts";
import { verifyProof, type ChainAnchors, type ProvedField } from "./index.ts";

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

const [email, dob] = infos;
const value = { data: dob?.data ?? "", pepper: dob?.pepper ?? "0x" } as const;
const expected: ProvedField = { user, field: "IDCARD_DOB", value };
const proofOf = (field: string) => order.proofs.find((each) => each.field === field);
const verify = async (
  proof: unknown,
  field: ProvedField = expected,
  changed: Partial<ChainAnchors> = {},
) => {
  const { registry } = chain;
  const own = { chainId: anvil.chainId, registry, issuers: [issuer], now };
  return verifyProof(proof, field, { rpcUrl: anvil.url, ...own, ...changed });
};
const refused = (reason?: string) => ({
  code: "proof_refused",
  ...(reason !== undefined && { reason }),
});

test("a genuine proof says, fact by fact, what it proves", async () => {
  const proof = proofOf("IDCARD_DOB");
  const verified = await verify(JSON.parse(JSON.stringify(proof)));
  const { attestedAt } = verified;
  assert.equal(verified.standing, "LIVE");
  assert.deepEqual(verified.proved, [
    {
      fact: "attested",
      field: "IDCARD_DOB",
      user,
      issuer,
      at: attestedAt,
      transactionHash: proof?.transactionHash,
    },
    { fact: "value", field: "IDCARD_DOB" },
    { fact: "live", field: "IDCARD_DOB", at: now },
  ]);
});

test("without a time of the caller a proof is judged by the machine's clock", async (context) => {
  const { registry } = chain;
  const own = { rpcUrl: anvil.url, chainId: anvil.chainId, registry, issuers: [issuer] };
  context.mock.timers.enable({ apis: ["Date"], now: (expiresAt + 1) * 1000 });
  const { standing } = await verifyProof(proofOf("IDCARD_DOB"), expected, own);
  assert.equal(standing, "EXPIRED");
});

test("without the value it is not among the facts", async () => {
  const { proved } = await verify(proofOf("EMAIL"), { user, field: "EMAIL" });
  assert.ok(!proved.some(({ fact }) => fact === "value"));
  for (const lost of [undefined, null, false, "", NaN])
    await assert.rejects(verify(proofOf("IDCARD_DOB"), { ...expected, value: lost as never }), {
      code: "configuration_invalid",
      reason: "value",
    });
});

test("a proof of another field, user or value is refused", async () => {
  const bob = `0x${"b".repeat(40)}`;
  const cases: [ProvedField, string][] = [
    [{ ...expected, field: "EMAIL" }, "field"],
    [{ ...expected, user: bob }, "leaf"],
    [{ ...expected, value: { ...value, data: "1990-02-27" } }, "commitment"],
    [{ ...expected, value: { ...value, pepper: email?.pepper ?? "0x" } }, "commitment"],
  ];
  for (const [field, reason] of cases)
    await assert.rejects(verify(proofOf("IDCARD_DOB"), field), refused(reason), reason);
  const renamed = { ...proofOf("EMAIL"), field: "IDCARD_DOB" };
  await assert.rejects(verify(renamed, { user, field: "IDCARD_DOB" }), refused("leaf"));
});

test("a proof of a padding leaf is refused", async () => {
  const { leaf, proof } = order.padding;
  const padded = { ...proofOf("IDCARD_DOB"), leaf, proof };
  await assert.rejects(verify(padded), refused("leaf"));
  const inner = { ...proofOf("IDCARD_DOB"), proof };
  await assert.rejects(verify(inner), refused("proof"));
});

test("a change anywhere in a proof is refused", async () => {
  const proof = proofOf("IDCARD_DOB");
  for (const path of pathsOf(proof)) {
    for (const change of changes) {
      await assert.rejects(verify(changedAt(proof, path, change)), refused(), path.join("."));
      const { value: _, ...any } = expected;
      await assert.rejects(verify(changedAt(proof, path, change), any), refused(), path.join("."));
    }
    const missing = changedAt(proof, path, () => undefined);
    await assert.rejects(verify(missing), refused(), path.join("."));
  }
  for (const bad of [null, [], "proof", {}]) await assert.rejects(verify(bad), refused());
});

test("another contract, issuer or chain than the caller's own is refused", async () => {
  const proof = proofOf("IDCARD_DOB");
  const elsewhere = `0x${"3".repeat(40)}`;
  const rows: [Partial<ChainAnchors>, string][] = [
    [{ registry: elsewhere }, "registry"],
    [{ issuers: [otherIssuer] }, "issuer"],
    [{ chainId: 1 }, "chainId"],
  ];
  for (const [changed, reason] of rows)
    await assert.rejects(verify(proof, expected, changed), refused(reason), reason);
  const moved = { ...proof, registry: elsewhere };
  await assert.rejects(verify(moved, expected, { registry: elsewhere }), refused("registry"));
  const chained = { ...proof, chainId: 1 };
  await assert.rejects(verify(chained, expected, { chainId: 1 }), refused("chainId"));
});

test("the transaction must be the one that attested", async () => {
  const other = await settleOrder(chain, { chainId: anvil.chainId, expiresAt });
  const transactionHash = other.proofs[0]?.transactionHash;
  const changed = { ...proofOf("IDCARD_DOB"), transactionHash };
  await assert.rejects(verify(changed), refused("transactionHash"));
});

const statusOf = (at: number): string => `0x${at.toString(16).padStart(64, "0")}${"0".repeat(128)}`;

test("a registry that notes another time than that of the transaction's block is not believed", async () => {
  await using gate = await openGate(anvil);
  const rpcUrl = gate.url;
  const { attestedAt } = await verify(proofOf("IDCARD_DOB"));
  const verifyNoted = async (at: number) => {
    gate.decide((asked) => (asked === "eth_call" ? { result: statusOf(at) } : "pass"));
    return verify(proofOf("IDCARD_DOB"), expected, { rpcUrl });
  };
  await verifyNoted(attestedAt);
  for (const at of [attestedAt - 1, attestedAt + 1])
    await assert.rejects(verifyNoted(at), refused("transactionHash"));
});

const standingOf = async (proof: unknown, changed: Partial<ChainAnchors>) => {
  const { standing, proved } = await verify(proof, expected, changed);
  assert.ok(!proved.some(({ fact }) => fact === "live"));
  assert.ok(proved.some(({ fact }) => fact === "attested"));
  return standing;
};

test("an expired, revoked or distrusted field is attested, and not live", async () => {
  assert.equal(await standingOf(proofOf("IDCARD_DOB"), { now: expiresAt }), "EXPIRED");
  const later = await settleOrder(chain, { chainId: anvil.chainId, expiresAt });
  await callRegistry(chain, "revoke", [issuer, [later.proofs[0]?.root]]);
  const at = await chain.now();
  assert.equal(await standingOf(later.proofs[1], { now: at }), "REVOKED");
  const by = { chainId: anvil.chainId, expiresAt, issuer: otherIssuer } as const;
  const doubted = await settleOrder(chain, by);
  await callRegistry(chain, "distrust", [otherIssuer, 1]);
  const changed = { now: at, issuers: [otherIssuer] };
  assert.equal(await standingOf(doubted.proofs[1], changed), "DISTRUSTED");
});

test("a node that does not answer is no refusal", async () => {
  const proof = proofOf("IDCARD_DOB");
  const changed = { rpcUrl: "http://127.0.0.1:9" };
  await assert.rejects(verify(proof, expected, changed), { code: "chain_unreachable" });
});

test("a root that the issuer did not attest, or an invalid clock, makes no proof", async () => {
  await using gate = await openGate(anvil);
  gate.decide((asked) => (asked === "eth_call" ? { result: `0x${"0".repeat(192)}` } : "pass"));
  const rpcUrl = gate.url;
  await assert.rejects(verify(proofOf("IDCARD_DOB"), expected, { rpcUrl }), refused("root"));
  const misconfigured = { code: "configuration_invalid", reason: "now" };
  for (const wrong of [Number.NaN, Date.now()])
    await assert.rejects(verify(proofOf("IDCARD_DOB"), expected, { now: wrong }), misconfigured);
});
