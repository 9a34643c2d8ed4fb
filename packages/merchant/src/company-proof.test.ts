import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startAnvil, type Anvil } from "../../../test/anvil.ts";
import { attestCompany, someReleased } from "../../../test/attested-company.ts";
import {
  callRegistry,
  issuer,
  openSettledChain,
  otherIssuer,
  type SettledChain,
} from "../../../test/settled-order.ts";
import { business, newBusiness } from "../test/fake-business.ts";
import { changedAt, changes, pathsOf } from "../test/mutations.ts";
import {
  verifyCompanyProof,
  type ChainAnchors,
  type CompanyProof,
  type ProvedCompanyField,
} from "./index.ts";

/** The same name of two directors, and one field of its own. */
const [legalName, first, second] = someReleased;

let anvil: Anvil;
let chain: SettledChain;
let proofs: CompanyProof[];
let now: number;
let expiresAt: number;

before(async () => {
  anvil = await startAnvil();
  chain = await openSettledChain(anvil);
  expiresAt = (await chain.now()) + 86_400;
  proofs = await attestCompany(chain, { chainId: anvil.chainId, expiresAt });
  now = await chain.now();
});
after(async () => anvil[Symbol.asyncDispose]());

async function verify(
  proof: unknown,
  expected: Partial<ProvedCompanyField> = {},
  changed: Partial<ChainAnchors> = {},
) {
  const { registry } = chain;
  const own = { chainId: anvil.chainId, registry, issuers: [issuer], now };
  const anchors = { rpcUrl: anvil.url, ...own, ...changed };
  return verifyCompanyProof(proof, { business, field: first, ...expected }, anchors);
}

const refused = (reason?: string) => ({
  code: "proof_refused",
  ...(reason !== undefined && { reason }),
});

test("a proof of a director's name says, fact by fact, what it proves", async () => {
  const verified = await verify(JSON.parse(JSON.stringify(proofs[1])));
  assert.deepEqual(
    [verified.business, verified.name, verified.subject, verified.standing],
    [business, first.name, first.subject, "LIVE"],
  );
  const field = "BUSINESS_DIRECTOR_NAME/director-1";
  const { attestedAt: at } = verified;
  const { transactionHash } = proofs[1] ?? {};
  assert.deepEqual(verified.proved, [
    { fact: "attested", field, user: business, issuer, at, transactionHash },
    { fact: "value", field },
    { fact: "live", field, at: now },
  ]);
});

test("a field of the business itself is proved by its name", async () => {
  const { proved, subject } = await verify(proofs[0], { field: legalName });
  assert.equal(subject, "");
  assert.ok(proved.every(({ field }) => field === "BUSINESS_LEGAL_NAME"));
});

test("what is attested of one director is proved of no other, whatever the proof says", async () => {
  await assert.rejects(verify(proofs[2]), refused("subject"));
  const renamed = { ...proofs[2], subject: first.subject };
  await assert.rejects(verify(renamed), refused("commitment"));
  const field = { ...second, subject: first.subject };
  await assert.rejects(verify(renamed, { field }), refused("leaf"));
});

test("another name, business, value or pepper is refused", async () => {
  const rows: [Partial<ProvedCompanyField>, string][] = [
    [{ field: { ...first, name: "BUSINESS_LEGAL_NAME" } }, "name"],
    [{ business: newBusiness }, "leaf"],
    [{ field: { ...first, value: "Bo" } }, "commitment"],
    [{ field: { ...first, pepper: second.pepper } }, "commitment"],
  ];
  for (const [expected, reason] of rows)
    await assert.rejects(verify(proofs[1], expected), refused(reason), reason);
});

test("a change anywhere in a proof is refused", async () => {
  for (const path of pathsOf(proofs[1])) {
    for (const change of changes)
      await assert.rejects(verify(changedAt(proofs[1], path, change)), refused(), path.join("."));
    const missing = changedAt(proofs[1], path, () => undefined);
    await assert.rejects(verify(missing), refused(), path.join("."));
  }
  for (const bad of [null, [], "proof", {}]) await assert.rejects(verify(bad), refused());
});

test("another contract, issuer or chain than the caller's own is refused", async () => {
  const rows: [Partial<ChainAnchors>, string][] = [
    [{ registry: `0x${"3".repeat(40)}` }, "registry"],
    [{ issuers: [otherIssuer] }, "issuer"],
    [{ chainId: 1 }, "chainId"],
  ];
  for (const [changed, reason] of rows)
    await assert.rejects(verify(proofs[1], {}, changed), refused(reason), reason);
});

test("an expired or revoked field is attested, and not live", async () => {
  for (const [at, standing] of [
    [expiresAt, "EXPIRED"],
    [now + 60, "REVOKED"],
  ] as const) {
    if (standing === "REVOKED") await callRegistry(chain, "revoke", [issuer, [proofs[1]?.root]]);
    const verified = await verify(proofs[1], {}, { now: at });
    assert.equal(verified.standing, standing);
    assert.deepEqual(
      verified.proved.map(({ fact }) => fact),
      ["attested", "value"],
    );
  }
});

test("a node that does not answer is no refusal", async () => {
  const changed = { rpcUrl: "http://127.0.0.1:9" };
  await assert.rejects(verify(proofs[1], {}, changed), { code: "chain_unreachable" });
});

test("a malformed address is the caller's fault", async () => {
  await assert.rejects(verify(proofs[1], { business: "0x12" }), {
    code: "configuration_invalid",
    reason: "business",
  });
});
