import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mock, test } from "node:test";
import { callWallet, type Transcript, valueOf } from "../../test/call-wallet.ts";
import { openFakeBroker, privateKeys } from "../../test/fake-broker.ts";
import { issue, now, serveFields } from "../../test/fake-fields.ts";
import { shareSalts } from "../../test/same-salt.ts";
import { addressOf } from "../../test/test-wallet.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-wallet-fields-"));
using cleanup = new DisposableStack();
cleanup.use(shareSalts());
cleanup.defer(() => rmSync(directory, { recursive: true, force: true }));
await using broker = await openFakeBroker();
const fields = serveFields(broker);
const alice = addressOf("alice");

/** A device of its own: a data directory with the demo world. */
function openDevice(name: string): string {
  const path = join(directory, name);
  rmSync(path, { recursive: true, force: true });
  const identities = Object.fromEntries(
    (["alice", "bob"] as const).map((each) => [
      each,
      { address: addressOf(each), privateKey: privateKeys[each] },
    ]),
  );
  mkdirSync(path);
  writeFileSync(join(path, "demo.json"), JSON.stringify({ baseUrl: broker.url, identities }));
  return path;
}

const phone = openDevice("phone");

const wallet = async (args: readonly string[], device = phone): Promise<Transcript> =>
  callWallet(args, device);

const json = async (args: readonly string[], device = phone): Promise<Record<string, unknown>> =>
  valueOf(await wallet(args, device));

function fresh(): void {
  broker.reset();
  fields.reset();
  const ready = { status: 200, body: { status: "ok", now } };
  broker.answers.set("/health/ready", ready);
  rmSync(join(phone, "wallet"), { recursive: true, force: true });
  fields.issued = [
    issue(alice, { IDCARD_DOB: "1990-02-03" }),
    issue(alice, { EMAIL: "alice@example.com" }, { document: "email" }),
    issue(alice, { ADDRESS_CITY: "Bern" }, { document: "address" }),
  ];
}

await test("show collects by itself and says everything; approve --without withholds the city", async () => {
  fresh();
  const { words, data } = await json(["show", fields.link(), "--as", "alice"]);
  assert.match(String(words), /^"Demo shop" \(shop\.example, verified by/);
  assert.match(String(words), /Required: IDCARD_DOB: "1990-02-03"/);
  assert.equal((data as { purpose: string }).purpose, "To check your age.");
  const approve = ["approve", fields.link(), "--as", "alice", "--without", "ADDRESS_CITY"];
  const { status, answer } = await json(approve);
  assert.deepEqual([status, (answer as { status: string }).status], [200, "INITIATING"]);
  assert.equal(fields.shared.length, 2);
  const { items } = await json(["history", "--as", "alice"]);
  const [entry] = items as { requester: string; fields: string[]; withheld: string[] }[];
  assert.deepEqual(
    [entry?.requester, entry?.fields, entry?.withheld],
    ["shop.example", ["EMAIL", "IDCARD_DOB"], ["ADDRESS_CITY"]],
  );
});

await test("a required field withheld is a refusal, status 1 and one line", async () => {
  fresh();
  const transcript = await wallet([
    "approve",
    fields.link(),
    "--as",
    "alice",
    "--without",
    "EMAIL",
  ]);
  assert.deepEqual(transcript, {
    status: 1,
    out: "",
    err: "wallet approve: refused (invalid_input): EMAIL is required: decline the request to withhold it\n",
  });
});

await test("decline tells the requester", async () => {
  fresh();
  const { status, result } = await json(["decline", fields.link(), "--as", "alice"]);
  assert.deepEqual([status, (result as { error: string }).error], [200, "access_denied"]);
  assert.equal(fields.status, "FAILED");
});

await test("receive lists what is held without values, and says when something was not genuine", async () => {
  fresh();
  const { received, items } = await json(["receive", "--as", "alice"]);
  assert.deepEqual([(received as string[]).length, (items as unknown[]).length], [3, 3]);
  assert.doesNotMatch(JSON.stringify(items), /1990-|alice@|pepper/);
  const email = (items as { document: string }[]).find(({ document }) => document === "email");
  assert.partialDeepStrictEqual(email, {
    broker: broker.url,
    status: "live",
    fields: [{ field: "EMAIL" }],
  });
  assert.equal(((await json(["receive", "--as", "alice"]))["received"] as string[]).length, 0);
  fields.issued = [issue(addressOf("bob"), { EMAIL: "b@b.example" })];
  const { status, err } = await wallet(["receive", "--as", "alice"]);
  assert.equal(status, 1);
  assert.match(err, /^wallet receive: 1 credential\(s\) were not taken/);
});

await test("an e-mail address is added and confirmed", async () => {
  fresh();
  const added = await json(["email", "add", "alice@example.com", "--as", "alice"]);
  assert.equal(added["verificationId"], "v1");
  const confirmed = await json(["email", "confirm", "v1", "123456", "--as", "alice"]);
  assert.deepEqual(confirmed, { credentialId: "c1" });
  assert.equal((await wallet(["email", "confirm", "v1", "1", "--as", "alice"])).status, 1);
});

await test("a hand-over is a link that the other wallet picks up once", async () => {
  fresh();
  const { payload } = await json(["approve", "svc:?attr=email&exp=5", "--as", "alice"]);
  // The result was not shown to anybody: the same reader may ask once more.
  await callWallet(["pick-up", String(payload), "--as", "bob"], phone, { isCut: true });
  const picked = await json(["pick-up", String(payload), "--as", "bob"]);
  assert.match(JSON.stringify(picked["infos"]), /alice@example\.com/);
  assert.equal(picked["verified"], false);
  assert.equal((await wallet(["pick-up", String(payload), "--as", "bob"])).status, 1);
  assert.deepEqual(readdirSync(join(phone, "wallet", "claim")), []);
});

await test("NFC on the command line is a refusal in words", async () => {
  fresh();
  const { status, err } = await wallet(["approve", "svc:?attr=email&type=nfc", "--as", "alice"]);
  assert.equal(status, 1);
  assert.match(err, /this device has no NFC/);
});

await test("a backup without a passphrase prints the words that open it, and is restored elsewhere", async () => {
  fresh();
  await json(["receive", "--as", "alice"]);
  const printed = await wallet(["backup", "--as", "alice"]);
  assert.equal(String(valueOf(printed)["passphrase"]).split(" ").length, 12);
  const tablet = openDevice("tablet");
  const restored = { name: "alice", address: alice, credentials: 3 };
  assert.deepEqual(await json(["restore", printed.out], tablet), restored, "nothing is asked");
  // The words are printed beside a file too: nothing else opens it.
  const file = join(directory, "words.backup");
  const backup = ["backup", "--as", "alice", "--file", file];
  // Words that nobody was told leave no file behind that nothing opens.
  await callWallet(backup, phone, { isCut: true });
  assert.equal(existsSync(file), false);
  const written = await json(backup);
  assert.equal(written["file"], file);
  const refused = await wallet(backup);
  assert.deepEqual([refused.status, refused.out], [1, ""]);
  assert.match(refused.err, /words\.backup exists already\n$/);
  const words = join(directory, "words");
  writeFileSync(words, `${String(written["passphrase"])}\n`);
  const again = ["restore", readFileSync(file, "utf8").trim(), "--passphrase-file", words];
  assert.equal((await json(again, openDevice("laptop")))["address"], alice);
  for (const each of fields.issued) assert.equal(each.collected, true);
  await json(["approve", fields.link(), "--as", "alice"], tablet);
  assert.equal(fields.shared.length, 3);
});

await test("a backup in a file is its owner's alone, and restores under another name into the vault", async () => {
  fresh();
  const secret = join(directory, "passphrase");
  writeFileSync(secret, "correct horse battery\n");
  const file = join(directory, "alice.backup");
  rmSync(file, { force: true });
  const backup = ["backup", "--as", "alice", "--file", file, "--passphrase-file", secret];
  assert.deepEqual(await json(backup), { file });
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.doesNotMatch(readFileSync(file, "utf8"), /alice/);
  assert.equal((await wallet(backup)).status, 1);
  const tablet = openDevice("tablet");
  const restore = ["restore", file, "--as", "mine", "--passphrase-file", secret];
  assert.equal((await json(restore, tablet))["name"], "mine");
  const { identities } = await json(["identity", "list"], tablet);
  assert.match(
    JSON.stringify(identities),
    /"name":"mine","address":"0x[0-9a-f]{40}","from":"vault"/,
  );
  writeFileSync(secret, "another horse battery\n");
  assert.match((await wallet(restore, tablet)).err, /wrong_passphrase/);
});

await test("a backup that could not be written leaves its name free for the next", async () => {
  const secret = join(directory, "passphrase");
  writeFileSync(secret, "correct horse battery\n");
  const file = join(directory, "full.backup");
  const backup = ["backup", "--as", "alice", "--file", file, "--passphrase-file", secret];
  const handle = await open(secret, "r");
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const full = mock.method(prototype, "sync", async () => {
    throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  });
  const { status, err } = await wallet(backup);
  full.mock.restore();
  assert.deepEqual([status, existsSync(file)], [1, false]);
  assert.match(err, /full\.backup cannot be written \(ENOSPC\)\n$/);
  assert.deepEqual(await json(backup), { file });
  assert.match((await wallet(backup)).err, /full\.backup exists already\n$/);
});
