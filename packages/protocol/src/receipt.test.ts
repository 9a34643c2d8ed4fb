import assert from "node:assert/strict";
import { test } from "node:test";

import { addressOfPrivateKey, recoverAddress, parseSignature, signDigest } from "./signature.ts";
import type { FieldName } from "./attributes.ts";
import { fieldsHash, leavesHash, shareDigest } from "./digests.ts";
import { hexOfBytes } from "./encoding.ts";
import type { ShareMessage } from "./digests.ts";
import type { Hex32 } from "./encoding.ts";
import { commitmentOf, leafOf } from "./leaves.ts";
import { buildTree } from "./merkle.ts";
import { auditLeafOf, orderIdOf, orderLeafOf } from "./order.ts";
import type { OrderPhase } from "./order.ts";
import { checkReceipt, parseReceipt } from "./receipt.ts";
import type { Receipt } from "./receipt.ts";
import { requestObjectHash } from "./request-object.ts";

const hash = (byte: number): Hex32 => `0x${byte.toString(16).padStart(2, "0").repeat(32)}`;
const key = new Uint8Array(32).fill(0x1f);
const user = addressOfPrivateKey(key);
const issuer = "0x1111111111111111111111111111111111111111" as const;
const contract = "0x2222222222222222222222222222222222222222" as const;

/** @param signed members of the consent to replace before it is signed and anchored */
function makeReceipt(
  names: readonly FieldName[] = ["EMAIL", "IDCARD_DOB"],
  signed: Partial<ShareMessage> = {},
): Receipt {
  const openings = names.map((field, index) => ({
    user,
    field,
    commitment: commitmentOf({ data: "value", pepper: hash(index) }),
    expiresAt: 1_900_000_000,
  }));
  const leaves = openings.map(leafOf);
  const document = buildTree([...leaves, hash(0x70), hash(0x71)]);
  const requestObject = "eyJ.e30.c2ln";
  const share = {
    request: "ab".repeat(32),
    connection: "https://id.example/w/o/token",
    requester: "shop.example",
    object: requestObjectHash(requestObject),
    fields: fieldsHash(names.toReversed()),
    data: leavesHash(leaves),
    deadline: 1_800_000_600,
    ...signed,
  };
  const consent = shareDigest(share);
  const named = { referenceKey: "ab".repeat(32), attempt: 2, salt: hash(0x5a) };
  const phaseOf = (phase: OrderPhase): Receipt["initiate"] => {
    const order = orderIdOf(named);
    const leaf = orderLeafOf({ phase, order, consent: hexOfBytes(consent), data: share.data });
    const tree = buildTree([leaf, hash(0x72), auditLeafOf({ head: hash(0x73), position: 9 })]);
    return {
      operator: contract,
      transactionHash: hash(0x74),
      blockNumber: 7,
      blockTime: 1_800_000_100,
      root: tree.root,
      proof: tree.proofOf(leaf),
    };
  };
  return {
    ...named,
    user,
    livemode: true,
    requestObject,
    share,
    signature: signDigest(consent, key),
    fields: openings.map(({ field, commitment, expiresAt }, index) => ({
      field,
      commitment,
      expiresAt,
      issuer,
      root: document.root,
      proof: document.proofOf(leaves[index] ?? "0x"),
    })),
    chainId: 31_337,
    registry: contract,
    settlement: contract,
    initiate: phaseOf(1),
    confirm: phaseOf(2),
  };
}

const receipt = makeReceipt();

test("a receipt survives JSON and its parts belong together", () => {
  const read = parseReceipt(JSON.parse(JSON.stringify(receipt)));
  assert.deepEqual(read, receipt);
  const checked = checkReceipt(receipt);
  assert.ok("consent" in checked);
  const signature = parseSignature(receipt.signature);
  assert.ok(signature !== null);
  assert.equal(recoverAddress(checked.consent, signature), user);
});

test("a receipt of an order that is not confirmed yet has one phase", () => {
  const { confirm, ...initiated } = receipt;
  assert.ok(confirm !== undefined);
  assert.ok("consent" in checkReceipt(initiated));
  assert.deepEqual(parseReceipt(initiated), initiated);
});

/** Every value inside of the receipt, by its path. */
function pathsOf(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([name, each]) => pathsOf(each, [...path, name]));
}

function changed(path: readonly string[]): Receipt {
  const copy = structuredClone(receipt) as unknown as Record<string, unknown>;
  let holder = copy;
  for (const name of path.slice(0, -1)) holder = holder[name] as Record<string, unknown>;
  const name = path.at(-1) ?? "";
  const value = holder[name];
  holder[name] =
    typeof value === "number"
      ? value + 1
      : String(value).replace(/.$/, (last) => (last === "0" ? "1" : "0"));
  return copy as unknown as Receipt;
}

/** What the chain, the signature or the caller's anchors show to be wrong. */
const judgedElsewhere =
  /^(chainId|registry|settlement|livemode|signature|fields\.\d+\.issuer)$|(operator|transactionHash|blockNumber|blockTime)$/;

test("any one change inside of a receipt is refused, or left to chain, signature and anchors", () => {
  for (const path of pathsOf(receipt)) {
    const result = checkReceipt(changed(path));
    const name = path.join(".");
    assert.equal("consent" in result, judgedElsewhere.test(name), name);
  }
});

test("fields that are missing, repeated or in another order are refused", () => {
  const [first, second] = receipt.fields;
  assert.ok(first !== undefined && second !== undefined);
  for (const fields of [[], [first], [second, first], [first, first, second]]) {
    assert.ok("refused" in checkReceipt({ ...receipt, fields }));
  }
});

test("a consent that was signed for no field, or for one field twice, is invalid", () => {
  assert.ok("consent" in checkReceipt(makeReceipt(["EMAIL"])));
  const wrong: FieldName[][] = [[], ["EMAIL", "EMAIL"], ["IDCARD_DOB", "EMAIL"]];
  for (const names of wrong)
    assert.deepEqual(checkReceipt(makeReceipt(names)), { refused: "the fields are not in order" });
});

test("a consent to something else proves nothing of this order, although it was signed and anchored", () => {
  const others: [Partial<ShareMessage>, string][] = [
    [{ request: "cd".repeat(32) }, "the consent is for another order"],
    [{ object: hash(0x0b) }, "the request object is another"],
    [{ fields: fieldsHash(["EMAIL"]) }, "the consent is for other fields"],
    // The other leaves may be attested too, by another document of that person.
    [{ data: leavesHash([hash(0x0d), hash(0x0e)]) }, "the consent is for other leaves"],
  ];
  for (const [signed, refused] of others)
    assert.deepEqual(checkReceipt(makeReceipt(undefined, signed)), { refused });
});

test("the phases do not stand in for each other", () => {
  const { initiate, confirm } = receipt;
  assert.ok(confirm !== undefined);
  assert.ok("refused" in checkReceipt({ ...receipt, initiate: confirm }));
  assert.ok("refused" in checkReceipt({ ...receipt, confirm: initiate }));
});

test("what is not a receipt is told by its member, never thrown", () => {
  const cases: [unknown, string | null][] = [
    [null, null],
    ["receipt", null],
    [{}, "livemode"],
    [{ ...receipt, attempt: 0 }, "attempt"],
    [{ ...receipt, attempt: 2 ** 32 }, "attempt"],
    [{ ...receipt, attempt: 1.5 }, "attempt"],
    [{ ...receipt, referenceKey: `0x${receipt.referenceKey}` }, "referenceKey"],
    [{ ...receipt, salt: "0x00" }, "salt"],
    [{ ...receipt, share: { ...receipt.share, deadline: "soon" } }, "share.deadline"],
    [{ ...receipt, share: null }, "share"],
    [{ ...receipt, fields: {} }, "fields"],
    [{ ...receipt, fields: Array(201).fill(receipt.fields[0]) }, "fields"],
    [{ ...receipt, requestObject: "a".repeat(65_537) }, "requestObject"],
    [{ ...receipt, fields: [{ ...receipt.fields[0], field: "NONE" }] }, "fields[0].field"],
    [{ ...receipt, fields: ["EMAIL"] }, "fields[0]"],
    [{ ...receipt, initiate: undefined }, "initiate"],
    [{ ...receipt, confirm: { ...receipt.confirm, proof: ["0x"] } }, "confirm.proof"],
  ];
  for (const [value, member] of cases) {
    const read = parseReceipt(value);
    assert.ok("fault" in read);
    assert.equal(read.fault.member, member);
  }
});
