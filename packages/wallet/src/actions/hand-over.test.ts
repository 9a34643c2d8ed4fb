import assert from "node:assert/strict";
import { test } from "node:test";
import {
  accessDigest,
  base64urlOfBytes,
  declineDigest,
  decodeInfos,
  fieldsHash,
  leafOf,
  leavesHash,
  parseResult,
  commitmentOf,
  transferDigest,
  verifyMerkleProof,
  zeroHash,
  type AccessResult,
  type TransferResult,
} from "@svc/protocol";
import { openFakeBroker, signerOf } from "../../test/fake-broker.ts";
import { deadline, from, issue, now, serveFields } from "../../test/fake-fields.ts";
import { accepting, addressOf, refuses, walletOf } from "../../test/test-wallet.ts";
import { sealText } from "../box.ts";
import type { Wallet } from "../index.ts";
import { cipherOfKey } from "../passphrase-cipher.ts";

await using broker = await openFakeBroker();
const fields = serveFields(broker);
const alice = addressOf("alice");
const expiresAt = 2_000_000;

async function aliceWallet(changed = {}): Promise<Wallet> {
  broker.reset();
  fields.reset();
  const values = {
    IDCARD_DOB: "1990-02-03",
    IDCARD_MRZ: "I<CHE",
    IDCARD_FACE_IMAGE: "aW1n",
    AGE_OVER_18: "true",
    AGE_OVER_65: "false",
  };
  fields.issued = [issue(alice, values), issue(alice, { EMAIL: "alice@example.com" })];
  return walletOf("alice", [broker.url], changed);
}

async function transfer(link: string, approval = {}): Promise<TransferResult> {
  const outcome = await (await aliceWallet()).approve(link, approval);
  assert.ok(outcome.kind === "shown");
  const result = parseResult("data-transfer", { type: "text", payload: outcome.payload });
  assert.ok("infos" in result, outcome.payload);
  return result;
}

await test("a data transfer is shown, signed by its holder for reader, nonce and time", async () => {
  for (const type of ["qr", "text"]) {
    const result = await transfer(`svc:?attr=email,idcard-dob&type=${type}&aud=desk&nonce=n1`);
    const infos = decodeInfos(result.infos);
    assert.ok(!("fault" in infos));
    assert.deepEqual(
      infos.map(({ field, data }) => `${field} ${data}`),
      ["EMAIL alice@example.com", "IDCARD_DOB 1990-02-03"],
    );
    const leaves = infos.map(({ field, data, pepper }) =>
      leafOf({ user: alice, field, commitment: commitmentOf({ data, pepper }), expiresAt }),
    );
    const digest = transferDigest({
      from: alice,
      data: leavesHash(leaves),
      expiresAt: result.expiresAt,
      audience: "desk",
      nonce: "n1",
    });
    assert.deepEqual([result.svcID, signerOf(digest, result.signature)], [alice, alice]);
    assert.equal(result.expiresAt, now + 600);
  }
});

await test("a data transfer ends after 5 to 60 minutes, 10 where its link names none, and no other exp is taken", async () => {
  for (const [exp, minutes] of [
    ["&exp=5", 5],
    ["&exp=60", 60],
    ["", 10],
  ] as const) {
    const result = await transfer(`svc:?attr=email&type=text${exp}`);
    assert.equal(result.expiresAt, now + minutes * 60);
  }
  const wallet = await aliceWallet();
  for (const exp of ["4", "61", "0", "-5", "5.5", "05", "1e1", ""])
    await refuses(wallet.approve(`svc:?attr=email&type=text&exp=${exp}`), "invalid_link", /exp/);
});

await test("a link that names no fields leaves them to the holder", async () => {
  const link = "svc:?type=text";
  const wallet = await aliceWallet();
  await wallet.receive();
  assert.match(
    (await wallet.describe(link)).words.join("\n"),
    /You pick which: .*EMAIL, IDCARD_DOB/,
  );
  await refuses(wallet.approve(link), "invalid_input", /leaves it to you/);
  await refuses(wallet.approve(link, { fields: ["PHONE"] }), "no_matching_data", /PHONE/);
  const outcome = await wallet.approve(link, { fields: ["email"] });
  assert.ok(outcome.kind === "shown");
  await refuses(
    wallet.approve("svc:?attr=email&type=text", { fields: ["EMAIL"] }),
    "invalid_input",
  );
});

await test("a link that leaves the choice to the holder offers what may be given, and nothing else", async () => {
  const wallet = await aliceWallet();
  await wallet.receive();
  const { data, words } = await wallet.describe("svc:?type=text");
  const offered = ["AGE_OVER_18", "AGE_OVER_65", "EMAIL", "IDCARD_DOB"];
  assert.deepEqual(data["offered"], offered);
  assert.ok(words.includes(`You pick which: ${offered.join(", ")}.`));
  for (const issued of fields.issued) issued.status = "revoked";
  await wallet.receive();
  assert.deepEqual((await wallet.describe("svc:?type=text")).data["offered"], []);
});

await test("guarded fields are never handed over, whoever picks them", async () => {
  const wallet = await aliceWallet();
  for (const [link, picked] of [
    ["svc:?attr=idcard-mrz,idcard-face-image&type=text", []],
    ["svc:?type=text", ["IDCARD_MRZ"]],
    ["svc:?type=p2p", ["IDCARD_FACE_IMAGE"]],
  ] as const)
    await refuses(wallet.approve(link, { fields: picked }), "no_matching_data");
  const { words } = await wallet.describe("svc:?attr=idcard-mrz,email&type=text");
  assert.doesNotMatch(words.join("\n"), /I<CHE/);
});

await test("p2p leaves it sealed at the broker, and one reader picks it up with the link", async () => {
  const wallet = await aliceWallet();
  const outcome = await wallet.approve("svc:?attr=email&exp=5");
  assert.ok(outcome.kind === "left");
  assert.equal(outcome.expiresAt, now + 300);
  const [page, fragment = ""] = outcome.link.split("#");
  assert.equal(page, "https://wallet.example/p");
  const sent = JSON.stringify(broker.received);
  assert.doesNotMatch(sent, /alice@example|EMAIL/);
  for (const part of fragment.split(".").slice(0, 2)) assert.equal(sent.includes(part), false);
  const bob = await walletOf("bob", [broker.url]);
  const picked = await bob.pickUp(outcome.link);
  assert.equal(picked["svcID"], alice);
  assert.equal(broker.received.at(-1)?.path.includes(fragment.split(".")[1] ?? "?"), false);
  await refuses(bob.pickUp(outcome.link), "broker_refused", /mailbox_empty/);
});

await test("a pick-up link with another key, broker or shape opens nothing", async () => {
  const outcome = await (await aliceWallet()).approve("svc:?attr=email");
  assert.ok(outcome.kind === "left");
  const bob = await walletOf("bob", [broker.url]);
  const foreign = outcome.link.replace(
    encodeURIComponent(broker.url),
    "https%3A%2F%2Fevil.example",
  );
  await refuses(bob.pickUp(foreign), "invalid_link", /not a broker/);
  await refuses(bob.pickUp("https://wallet.example/p#x"), "invalid_link");
  const [page = "", id = ""] = outcome.link.split(/[#.](?=[\w-]{43}\.)|#/);
  assert.ok(page !== "" && id !== "");
  const otherKey = outcome.link.replace(/\.[\w-]{43}\./, `.${"A".repeat(43)}.`);
  await refuses(bob.pickUp(otherKey), "invalid_link", /does not open/);
});

await test("a box that opens and holds no answer is a refusal", async () => {
  const bob = await walletOf("bob", [broker.url]);
  const key = new Uint8Array(32).fill(7);
  for (const text of ["not JSON", "", "[1]", "null", "{}"]) {
    const sealing = { cipher: await cipherOfKey(key), about: "svc-mailbox-v1" };
    const box = await sealText(text, sealing, (length) => new Uint8Array(length));
    const id = "b".repeat(32);
    broker.answers.set(`/w/mailbox/${id}/take`, { status: 200, body: { box } });
    const fragment = `${id}.${base64urlOfBytes(key)}.${encodeURIComponent(broker.url)}`;
    const picking = bob.pickUp(`https://wallet.example/p#${fragment}`);
    await refuses(picking, "invalid_link", /does not open/);
  }
});

await test("NFC is used where the device has it, and refused in words where not", async () => {
  const wallet = await aliceWallet();
  await refuses(wallet.approve("svc:?attr=email&type=nfc"), "unsupported", /no NFC/);
  const written: { mediaType: string; payload: string }[] = [];
  const able = await aliceWallet({
    nfc: async (record: { mediaType: string; payload: string }) => void written.push(record),
  });
  assert.deepEqual(await able.approve("svc:?attr=email&type=nfc"), { kind: "handed-over" });
  assert.equal(written[0]?.mediaType, "application/json");
});

const accessLink = (attr: string): string =>
  `svc:access?conn=${encodeURIComponent("https://gate.example/in")}&from=${from}&dl=${deadline}&attr=${attr}&type=qr`;

async function prove(attr: string): Promise<AccessResult> {
  const wallet = await aliceWallet();
  const outcome = await wallet.approve(accessLink(attr), accepting("unknown-requester"));
  assert.ok(outcome.kind === "shown");
  const result = parseResult("access", { type: "qr", payload: outcome.payload });
  assert.ok("proofs" in result, outcome.payload);
  return result;
}

await test("an access shows that fields are verified, and no value but a derived yes", async () => {
  const result = await prove("idcard-dob,age-over-18");
  const text = JSON.stringify(result);
  // Also as the Base64 of values; neither is hex, of which the proofs are full.
  assert.doesNotMatch(text, /1990-|MTk5MC/);
  assert.deepEqual(
    result.proofs.map(({ field, opening }) => [field, opening?.data]),
    [
      ["AGE_OVER_18", "true"],
      ["IDCARD_DOB", undefined],
    ],
  );
  for (const { field, commitment, expiresAt: end, root, proof, opening } of result.proofs) {
    const leaf = leafOf({ user: alice, field, commitment, expiresAt: end });
    assert.ok(verifyMerkleProof({ leaf, proof, root }));
    if (opening !== undefined) assert.equal(commitmentOf(opening), commitment);
  }
  const digest = accessDigest({
    request: "",
    connection: "https://gate.example/in",
    requester: "",
    object: zeroHash,
    fields: fieldsHash(["AGE_OVER_18", "IDCARD_DOB"]),
    deadline,
  });
  assert.equal(signerOf(digest, result.signature), alice);
});

await test("a derived no proves nothing, and looks like a field that is not held", async () => {
  const wallet = await aliceWallet();
  for (const attr of ["age-over-65", "age-over-21"]) {
    const link = accessLink(attr);
    assert.match((await wallet.describe(link)).words.join("\n"), /nothing verified that you hold/);
    const approving = wallet.approve(link, accepting("unknown-requester"));
    await refuses(approving, "no_matching_data");
  }
});

async function decline(link: string, declining = {}): Promise<Record<string, unknown>> {
  const outcome = await (await aliceWallet()).decline(link, declining);
  assert.ok(outcome.kind === "shown", outcome.kind);
  return JSON.parse(outcome.payload) as Record<string, unknown>;
}

await test("who declines a transfer signs it for the nonce alone, without which it would count for every link", async () => {
  const link = "svc:?attr=email&type=text";
  assert.deepEqual(await decline(link), { error: "access_denied" });
  const { signature, ...said } = await decline(`${link}&nonce=n1`);
  assert.deepEqual(said, { error: "access_denied", id: "n1", svcID: alice });
  const digest = declineDigest({ request: "n1", connection: "" });
  assert.equal(signerOf(digest, signature as `0x${string}`), alice);
});

await test("who declines what names neither connection nor id signs nothing, since it would count for every such link", async () => {
  for (const link of ["svc:sign?data=0x68656c6c6f&type=qr", "svc:sign?data=0x00&type=qr"])
    assert.deepEqual(await decline(link, accepting("unknown-requester")), {
      error: "access_denied",
    });
});

await test("who declines an access says what is missing or over, and signs it for a stranger on wish alone", async () => {
  assert.deepEqual(await decline(accessLink("idcard-dob")), { error: "access_denied" });
  assert.deepEqual(await decline(accessLink("phone")), { error: "no_matching_data" });
  const late = accessLink("idcard-dob").replace(`dl=${deadline}`, `dl=${now - 1}`);
  assert.deepEqual(await decline(late), { error: "expired" });
  const unknown = accepting("unknown-requester");
  const { signature, ...said } = await decline(accessLink("idcard-dob"), unknown);
  assert.deepEqual(said, { error: "access_denied", svcID: alice });
  const digest = declineDigest({ request: "", connection: "https://gate.example/in" });
  assert.equal(signerOf(digest, signature as `0x${string}`), alice);
});
