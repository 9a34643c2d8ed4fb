import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesOfBase64url } from "@svc/protocol";
import { openFakeBroker } from "../test/fake-broker.ts";
import { issue, now, serveFields, type Issued } from "../test/fake-fields.ts";
import { sameSalt as random } from "../test/same-salt.ts";
import { addressOf, refuses, walletOf } from "../test/test-wallet.ts";
import { openText, sealText } from "./box.ts";
import type { SavedEntry } from "./history.ts";
import { keepCredential } from "./held-credential.ts";
import { memoryStorage, openIdentity, restoreBackup, writeBackup } from "./index.ts";
import { cipherOfPassphrase } from "./passphrase-cipher.ts";
import { putRecord } from "./records.ts";
import { privateKeys } from "../test/fake-broker.ts";

await using broker = await openFakeBroker();
const fields = serveFields(broker);
const alice = addressOf("alice");
const card = (changed: Partial<Issued> = {}): Issued =>
  issue(alice, { IDCARD_DOB: "1990-02-03", IDCARD_NAME: "Alice Muster" }, changed);

function fresh(): void {
  broker.reset();
  fields.reset();
}

await test("a credential is kept before the broker is told to forget its values", async () => {
  fresh();
  fields.issued = [card()];
  const path = `/w/credentials/${fields.issued[0]?.id}/collected`;
  broker.answers.set(path, { status: 503, body: {} });
  const storage = memoryStorage();
  const wallet = await walletOf("alice", [broker.url], { storage });
  await refuses(wallet.receive(), "broker_refused");
  assert.equal((await wallet.credentials()).length, 1);
  broker.answers.delete(path);
  assert.equal((await wallet.receive()).received.length, 1);
  assert.equal((await wallet.receive()).received.length, 0);
  const [held] = await wallet.credentials();
  assert.deepEqual(
    held?.fields.map(({ field, data }) => `${field} ${data}`),
    ["IDCARD_DOB 1990-02-03", "IDCARD_NAME Alice Muster"],
  );
});

await test("what became of one document says nothing of another under the same id", async () => {
  fresh();
  fields.issued = [card()];
  const wallet = await walletOf("alice", [broker.url]);
  await wallet.receive();
  const statuses = async () => (await wallet.credentials()).map(({ status }) => status);
  const [listed] = fields.issued;
  fields.issued = [{ ...(listed ?? card()), root: `0x${"22".repeat(32)}`, status: "revoked" }];
  await wallet.receive();
  assert.deepEqual(await statuses(), ["live"]);
  fields.issued = [{ ...(listed ?? card()), status: "revoked" }];
  await wallet.receive();
  assert.deepEqual(await statuses(), ["revoked"]);
});

await test("of two documents that a broker lists under one id the first is kept", async () => {
  fresh();
  const [first, second] = [card(), card()];
  fields.issued = [first, { ...second, id: first.id }];
  const wallet = await walletOf("alice", [broker.url]);
  const { root, id } = first;
  assert.deepEqual((await wallet.receive()).refused, [{ id, broker: broker.url }]);
  assert.deepEqual(
    (await wallet.credentials()).map((each) => each.root),
    [root],
  );
});

await test("a broker that takes its time to confirm each document holds a person up for a minute, and none is lost", async () => {
  fresh();
  fields.issued = Array.from({ length: 8 }, () => card());
  let at = now;
  const storage = memoryStorage();
  const slow: typeof fetch = async (url, init) => {
    if (typeof url === "string" && url.endsWith("/collected")) at += 14;
    return fetch(url, init);
  };
  const changed = { storage, fetch: slow, now: async () => at };
  const wallet = await walletOf("alice", [broker.url], changed);
  const missing = (): number => fields.issued.filter(({ collected }) => !collected).length;
  await refuses(wallet.receive(), "unreachable", /takes too long/);
  assert.deepEqual([at - now, missing()], [70, 3]);
  assert.equal((await wallet.receive()).received.length, 3);
  assert.deepEqual([(await wallet.credentials()).length, missing()], [8, 0]);
});

await test("a broker fills no wallet with documents: what comes after 64 million characters is left", async () => {
  fresh();
  const storage = memoryStorage();
  const wallet = await walletOf("alice", [broker.url], { storage });
  fields.issued = [card()];
  const [held = assert.fail()] = (await wallet.receive()).received;
  const mega = 1024 * 1024;
  const large = held.fields.map((each) => ({ ...each, data: "x".repeat(31.5 * mega) }));
  const identity = await openIdentity({ kind: "private-key", privateKey: privateKeys.alice });
  await keepCredential({ identity, storage, random }, { ...held, id: "large", fields: large });
  const offered = [0.6, 0.6, 0.1].map((megas) => issue(alice, { EMAIL: "x".repeat(megas * mega) }));
  fields.issued = offered;
  const ids = offered.map(({ id }) => id);
  const { received, refused } = await wallet.receive();
  assert.deepEqual(
    received.map(({ id }) => id),
    [ids[0], ids[2]],
  );
  assert.deepEqual(refused, [{ id: ids[1], broker: broker.url }]);
});

await test("what became of one broker's document is not for another broker to say", async () => {
  fresh();
  await using other = await openFakeBroker();
  const others = serveFields(other);
  fields.issued = [card()];
  const wallet = await walletOf("alice", [broker.url, other.url]);
  await wallet.receive();
  const before = await wallet.credentials();
  assert.deepEqual(
    before.map(({ status }) => status),
    ["live"],
  );
  others.issued = fields.issued.map((each) => ({ ...each, status: "revoked" }));
  await wallet.receive();
  assert.deepEqual(await wallet.credentials(), before);
});

await test("a document that is held is not replaced by what its broker offers under its id", async () => {
  fresh();
  const first = card();
  fields.issued = [structuredClone(first)];
  const wallet = await walletOf("alice", [broker.url]);
  await wallet.receive();
  const [held] = await wallet.credentials();
  const another = issue(alice, { EMAIL: "a@b.example" }, { id: first.id });
  fields.issued = [another];
  assert.deepEqual((await wallet.receive()).refused, [{ id: first.id, broker: broker.url }]);
  assert.deepEqual([await wallet.credentials(), another.collected], [[held], false]);
  // A broker that did not hear of the collection lists a part again: it is confirmed once more.
  const part = { ...first, fields: first.fields.slice(1), status: "revoked" };
  fields.issued = [part];
  assert.deepEqual((await wallet.receive()).refused, []);
  const known = { ...held, status: "revoked" };
  assert.deepEqual([await wallet.credentials(), part.collected], [[known], true]);
});

const lies: Record<string, (credential: Issued) => void> = {
  "another value": ({ fields: [first] }) => Object.assign(first ?? {}, { data: "1980-01-01" }),
  "another pepper": ({ fields: [first] }) =>
    Object.assign(first ?? {}, { pepper: `0x${"11".repeat(32)}` }),
  "another end": ({ fields: [first] }) => Object.assign(first ?? {}, { expiresAt: 3_000_000 }),
  "another field": ({ fields: [first] }) => Object.assign(first ?? {}, { field: "PASSPORT_DOB" }),
  "another root": (credential) => Object.assign(credential, { root: `0x${"22".repeat(32)}` }),
  "no proof": ({ fields: [first] }) => Object.assign(first ?? {}, { proof: [] }),
  "a value without its pepper": ({ fields: [first] }) => delete first?.pepper,
};

await test("a value that its issuer did not commit to is neither kept nor collected", async (t) => {
  for (const [name, lie] of Object.entries(lies)) {
    await t.test(`a credential with ${name} is neither kept nor collected`, async () => {
      fresh();
      const credential = card();
      lie(credential);
      fields.issued = [credential];
      const wallet = await walletOf("alice", [broker.url]);
      await wallet.receive();
      assert.deepEqual([await wallet.credentials(), credential.collected], [[], false]);
    });
  }
  fresh();
  fields.issued = [issue(addressOf("bob"), { EMAIL: "b@b.example" })];
  const wallet = await walletOf("alice", [broker.url]);
  assert.equal((await wallet.receive()).refused.length, 1);
});

await test("a list that is malformed, endless or nonsense does no harm", async () => {
  fresh();
  const items = [null, 7, {}, { ...card(), fields: "x" }, { ...card(), root: "0x" }];
  const path = "/w/credentials?limit=100";
  broker.answers.set(path, { status: 200, body: { items } });
  const wallet = await walletOf("alice", [broker.url]);
  assert.deepEqual(await wallet.receive(), { received: [], refused: [] });
  broker.answers.set(path, { status: 200, body: { items: 7 } });
  await refuses(wallet.receive(), "broker_refused");
  broker.answers.set(path, { status: 200, body: { items: [], nextCursor: "c" } });
  broker.answers.set(`${path}&cursor=c`, { status: 200, body: { items: [], nextCursor: "c" } });
  await wallet.receive();
  assert.ok(broker.paths().filter((each) => each.includes("cursor=c")).length < 60);
});

await test("an e-mail address is verified by the code, and its field collected", async () => {
  fresh();
  const wallet = await walletOf("alice", [broker.url]);
  const { verificationId, expiresAt } = await wallet.addEmail("alice@example.com");
  assert.deepEqual([verificationId, expiresAt], ["v1", now + 600]);
  fields.issued = [issue(alice, { EMAIL: "alice@example.com" }, { document: "email" })];
  await refuses(wallet.confirmEmail("v1", "000000"), "broker_refused", /code_wrong/);
  assert.equal((await wallet.credentials()).length, 0);
  const { credentialId, received } = await wallet.confirmEmail("v1", "123456");
  assert.deepEqual([credentialId, received.length], ["c1", 1]);
});

const secret = { kind: "private-key", privateKey: privateKeys.alice } as const;
const passphrase = "correct horse battery";

await test("a backup brings identity, fields and history to another device", async () => {
  fresh();
  fields.issued = [card(), issue(alice, { EMAIL: "alice@example.com" })];
  const storage = memoryStorage();
  const wallet = await walletOf("alice", [broker.url], { storage });
  await wallet.approve(fields.link());
  const text = await writeBackup({ storage, random }, { name: "alice", secret, passphrase });
  // Sealed text may contain any short sequence by chance, so longer ones are looked for.
  assert.doesNotMatch(text, /alice@example|1990-02-03|"alice"/);
  const other = memoryStorage();
  const restored = await restoreBackup({ storage: other, random }, { text, passphrase });
  assert.deepEqual([restored.address, restored.credentials, restored.name], [alice, 2, "alice"]);
  assert.deepEqual(restored.secret, secret);
  assert.equal((await openIdentity(restored.secret)).address, alice);
  const there = await walletOf("alice", [broker.url], { storage: other });
  assert.deepEqual(await there.credentials(), await wallet.credentials());
  assert.deepEqual(await there.history(), await wallet.history());
  // Another request: the same answer to the same one has one entry.
  Object.assign(fields, { status: "PENDING", purpose: "To check it once more." });
  await there.approve(fields.link());
  assert.equal(fields.status, "INITIATING");
  await restoreBackup({ storage: other, random }, { text, passphrase });
  assert.equal((await there.history()).length, 2);
});

/** A wallet with one answer that was sent, and the backup of that time. */
async function sentAndBackedUp() {
  fresh();
  fields.issued = [card(), issue(alice, { EMAIL: "alice@example.com" })];
  const storage = memoryStorage();
  const wallet = await walletOf("alice", [broker.url], { storage });
  await wallet.approve(fields.link());
  const [key] = await storage.list("history");
  assert.ok(key !== undefined);
  const [approved] = await wallet.history();
  assert.ok(approved !== undefined);
  const records = { identity: await openIdentity(secret), storage, random };
  await putRecord(records, key, { ...approved, outcome: "sent" });
  const text = await writeBackup({ storage, random }, { name: "alice", secret, passphrase });
  await putRecord(records, key, approved);
  return { storage, wallet, key, text };
}

await test("an entry that was backed up as sent does not come back beside what became of it", async () => {
  const { storage, wallet, text } = await sentAndBackedUp();
  const [version = "", salt = "", box = ""] = text.split(".");
  const cipher = await cipherOfPassphrase(passphrase, bytesOfBase64url(salt) ?? new Uint8Array());
  const key = { cipher, about: version };
  const content = JSON.parse((await openText(box, key)) ?? "") as { history: SavedEntry[] };
  const history = content.history.map(({ name: _name, ...entry }) => entry);
  const earlier = await sealText(JSON.stringify({ ...content, history }), key, random);
  for (const each of [text, `${version}.${salt}.${earlier}`]) {
    await restoreBackup({ storage, random }, { text: each, passphrase });
    const outcomes = (await wallet.history()).map(({ outcome }) => outcome);
    assert.deepEqual(outcomes, ["approved"]);
    const other = memoryStorage();
    await restoreBackup({ storage: other, random }, { text: each, passphrase });
    const there = await walletOf("alice", [broker.url], { storage: other });
    assert.deepEqual(await there.history(), history);
  }
});

await test("a backup mends the history, and what it does not hold of it is given up", async () => {
  const { storage, wallet, key, text } = await sentAndBackedUp();
  await wallet.approve("svc:sign?data=0x6869&type=qr");
  for (const each of await storage.list("history")) await storage.put(each, "");
  await restoreBackup({ storage, random }, { text, passphrase });
  assert.deepEqual(await storage.list("history"), [key]);
  const outcomes = (await wallet.history()).map(({ outcome }) => outcome);
  assert.deepEqual(outcomes, ["sent"]);
});

await test("a backup opens with its passphrase alone, and not once a character was changed", async () => {
  fresh();
  const storage = memoryStorage();
  const short = writeBackup({ storage, random }, { name: "alice", secret, passphrase: "short" });
  await refuses(short, "invalid_input", /8 characters/);
  const text = await writeBackup({ storage, random }, { name: "alice", secret, passphrase });
  const restore = async (changed: string, by = passphrase) =>
    restoreBackup({ storage, random }, { text: changed, passphrase: by });
  await refuses(restore(text, "another passphrase"), "wrong_passphrase");
  const at = text.length - 10;
  const flipped = `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`;
  await refuses(restore(flipped), "wrong_passphrase");
  for (const none of ["", "svc-wallet-backup-v1", `${text}.x`, text.replace("-v1", "-v2")])
    await refuses(restore(none), "invalid_input");
  const [version = "", salt = ""] = text.split(".");
  const cipher = await cipherOfPassphrase(passphrase, bytesOfBase64url(salt) ?? new Uint8Array());
  const words = await sealText("abandon ability able", { cipher, about: version }, random);
  await refuses(restore(`${version}.${salt}.${words}`), "invalid_input", /holds no identity/);
});
