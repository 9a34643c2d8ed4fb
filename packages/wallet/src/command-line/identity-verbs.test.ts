import assert from "node:assert/strict";
import {
  cpSync,
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
import { PassThrough } from "node:stream";
import { beforeEach, mock, test } from "node:test";
import { callWallet, type Transcript, valueOf } from "../../test/call-wallet.ts";
import { shareSalts } from "../../test/same-salt.ts";

let directory = "";
using cleanup = new DisposableStack();
cleanup.use(shareSalts());

const secrets = {
  right: "correct horse battery",
  other: "another horse battery",
  short: "1234567",
};
const fileOf = (secret: keyof typeof secrets): string => join(directory, secret);
const vaultFile = (): string => join(directory, "wallet/identity/mine.json");
const wallet = async (...args: readonly string[]): Promise<Transcript> =>
  callWallet(args, directory);

const freshDirectory = (): string => {
  const made = mkdtempSync(join(tmpdir(), "svc-wallet-identity-"));
  cleanup.defer(() => rmSync(made, { recursive: true, force: true }));
  return made;
};

/** Making an identity takes half a second, so each test begins with a copy of one. */
const first = freshDirectory();
for (const [name, secret] of Object.entries(secrets))
  writeFileSync(join(first, name), `${secret}\n`);
const right = ["--passphrase-file", join(first, "right")];
valueOf(await callWallet(["identity", "create", "mine", ...right], first));

beforeEach(() => {
  directory = freshDirectory();
  cpSync(first, directory, { recursive: true });
});

const change = async (
  from: keyof typeof secrets,
  to: keyof typeof secrets,
): Promise<Transcript> => {
  const files = ["--passphrase-file", fileOf(from), "--new-passphrase-file", fileOf(to)];
  return wallet("identity", "passphrase", "mine", ...files);
};

const opens = async (secret: keyof typeof secrets): Promise<boolean> =>
  (await wallet("logins", "--as", "mine", "--passphrase-file", fileOf(secret))).status === 0;

await test("the passphrase of an identity is changed: the new one opens it, and the old one no more", async () => {
  const { address } = JSON.parse(readFileSync(vaultFile(), "utf8")) as { address: string };
  assert.deepEqual(valueOf(await change("right", "other")), {
    name: "mine",
    address,
    status: "changed",
  });
  assert.deepEqual([await opens("other"), await opens("right")], [true, false]);
  assert.equal(statSync(vaultFile()).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(join(directory, "wallet/identity")), ["mine.json"]);
});

await test("a passphrase that does not open, is too short or lacks its successor changes nothing", async () => {
  const before = readFileSync(vaultFile(), "utf8");
  const unasked = ["identity", "passphrase", "mine", "--passphrase-file", fileOf("right")];
  for (const [transcript, pattern] of [
    [
      await change("other", "right"),
      /wrong_passphrase.*; if a change was cut short, the new one may/,
    ],
    [await change("right", "short"), /at least 8 characters/],
    [await wallet(...unasked), /--new-passphrase-file/],
    [await wallet("identity", "passphrase", "nobody"), /not_found/],
  ] as const) {
    assert.deepEqual([transcript.status, transcript.out], [1, ""]);
    assert.match(transcript.err, pattern);
  }
  assert.equal(readFileSync(vaultFile(), "utf8"), before);
});

await test("a passphrase that the disk does not take leaves the old one", async () => {
  const handle = await open(directory, "r");
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const full = mock.method(prototype, "sync", async () => {
    throw new Error("ENOSPC: no space left on device");
  });
  const { status, err } = await change("right", "other");
  full.mock.restore();
  assert.equal(status, 1);
  assert.match(err, /ENOSPC/);
  assert.deepEqual(readdirSync(join(directory, "wallet/identity")), ["mine.json"]);
  assert.equal(await opens("right"), true);
});

await test("an identity is removed by an explicit yes, after it was said what is lost", async () => {
  const { err, status } = await wallet("identity", "remove", "mine");
  assert.equal(status, 1);
  assert.match(
    err,
    /not_accepted\): mine \(0x[0-9a-f]{40}\) will be removed permanently: .*--yes\n$/,
  );
  assert.equal(await opens("right"), true);
  assert.equal(valueOf(await wallet("identity", "remove", "mine", "--yes"))["status"], "removed");
  assert.deepEqual(valueOf(await wallet("identity", "list")), { identities: [] });
  assert.match((await wallet("identity", "remove", "mine", "--yes")).err, /not_found/);
});

await test("an identity that has a transaction under way is not removed", async () => {
  const { address } = JSON.parse(readFileSync(vaultFile(), "utf8")) as { address: string };
  const key = `transaction/${address.slice(2, 18)}_${"ab".repeat(20)}`;
  const folder = join(directory, "wallet/transaction");
  mkdirSync(folder);
  writeFileSync(join(directory, `wallet/${key}.json`), "sealed");
  const { status, err } = await wallet("identity", "remove", "mine", "--yes");
  assert.equal(status, 1);
  assert.ok(err.includes(key), err);
  rmSync(folder, { recursive: true });
  valueOf(await wallet("identity", "remove", "mine", "--yes"));
});

await test("an identity that the vault has under another name as well is said to stay", async () => {
  const backup = join(directory, "backup");
  const how = ["--passphrase-file", fileOf("right")];
  valueOf(await wallet("backup", "--as", "mine", "--file", backup, ...how));
  valueOf(await wallet("restore", backup, "--as", "twin", ...how));
  const { err } = await wallet("identity", "remove", "mine");
  assert.match(err, /will be removed, but the same identity stays as twin; repeat with --yes\n$/);
});

await test("words of another wallet are the same accounts here, each by its index", async () => {
  const words = join(directory, "words");
  writeFileSync(words, `${"test ".repeat(11)}junk\n`);
  const how = ["--mnemonic-file", words, "--passphrase-file", fileOf("right")];
  const addresses = [
    await wallet("identity", "import", "first", ...how),
    await wallet("identity", "import", "second", ...how, "--index", "1"),
  ].map((transcript) => valueOf(transcript)["address"]);
  // The accounts that every tool for Ethereum derives from these words (BIP-44, m/44'/60'/0'/0/n).
  assert.deepEqual(addresses, [
    "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
    "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
  ]);
});

await test("words that are none, an index that is none and two secrets at once import nothing", async () => {
  const words = join(directory, "words");
  writeFileSync(words, "test ".repeat(12));
  const key = join(directory, "key");
  writeFileSync(key, "0x12");
  const long = join(directory, "long");
  writeFileSync(long, "0".repeat(4097));
  const refused: [RegExp, ...string[]][] = [
    [/invalid_input/, "--mnemonic-file", words],
    ...["first", "1x", "x1", "-1", "1".repeat(11)].map((index): [RegExp, ...string[]] => [
      /--index must be a whole number/,
      "--mnemonic-file",
      words,
      `--index=${index}`,
    ]),
    [/invalid_input/, "--mnemonic-file", join(directory, "missing")],
    [/invalid_input/, "--private-key-file", key],
    [/is too long for a secret/, "--private-key-file", long],
    [/either --mnemonic-file/, "--private-key-file", key, "--index", "1"],
    [/either --mnemonic-file/, "--private-key-file", key, "--mnemonic-file", words],
    [/either --mnemonic-file/],
  ];
  for (const [pattern, ...how] of refused) {
    const args = ["identity", "import", "other", "--passphrase-file", fileOf("right"), ...how];
    const { status, out, err } = await wallet(...args);
    assert.deepEqual([status, out], [1, ""], how.join(" "));
    assert.match(err, pattern);
    assert.doesNotMatch(err, /test test/, "no words in what is said");
  }
  assert.deepEqual(readdirSync(join(directory, "wallet/identity")), ["mine.json"]);
});

await test("without --as the only identity is used, and of several none", async () => {
  const sign = ["approve", "svc:sign?data=0x6869", "--passphrase-file", fileOf("right")];
  const { address } = JSON.parse(readFileSync(vaultFile(), "utf8")) as { address: string };
  assert.ok(String(valueOf(await wallet(...sign))["payload"]).includes(address));
  const isAsked = async (): Promise<void> => {
    const { status, out, err } = await wallet(...sign);
    assert.deepEqual([status, out], [1, ""]);
    assert.match(
      err,
      /invalid_input\): no identity is given: add --as <name>; see wallet identity list\n$/,
    );
  };
  // A damaged identity may still be the one that was meant.
  const second = join(directory, "wallet/identity/other.json");
  writeFileSync(second, "");
  await isAsked();
  rmSync(second);
  valueOf(await wallet(...sign));
  writeFileSync(
    join(directory, "demo.json"),
    JSON.stringify({ baseUrl: "http://localhost:1", identities: {} }),
  );
  await isAsked();
});

/** Somebody at the terminal, who types these in turn. */
function sitDown(...typed: readonly string[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const asked: string[] = [];
  const shown = mock.method(process.stderr, "write", (text: string) => {
    if (text === "\n") return true;
    const answer = typed[asked.push(text) - 1] ?? "";
    setImmediate(() => stdin.write(`${answer}\n`));
    return true;
  });
  const input = mock.getter(process, "stdin", () => stdin as unknown as NodeJS.ReadStream);
  return {
    asked,
    [Symbol.dispose]() {
      shown.mock.restore();
      input.mock.restore();
    },
  };
}

await test("at a terminal a passphrase that is chosen is asked for twice, and one that opens something once", async () => {
  const { right: known, other: chosen } = secrets;
  const again = "Repeat it: ";
  const present = "Passphrase of mine: ";
  valueOf(await wallet("backup", "--as", "mine", "--file", join(directory, "a"), ...right));
  for (const [status, args, typed, questions] of [
    [0, ["logins", "--as", "mine"], [known], [present]],
    [1, ["logins", "--as", "mine"], [chosen], [present]],
    [0, ["identity", "create", "new"], [chosen, chosen], ["New passphrase for new: ", again]],
    [1, ["identity", "create", "newer"], [chosen, known], ["New passphrase for newer: ", again]],
    [0, ["restore", join(directory, "a"), "--as", "twin"], [known], ["Passphrase of the backup: "]],
    [
      1,
      ["identity", "passphrase", "mine"],
      [known, chosen, known],
      [present, "New passphrase for mine: ", again],
    ],
    [
      0,
      ["identity", "passphrase", "mine"],
      [known, chosen, chosen],
      [present, "New passphrase for mine: ", again],
    ],
  ] as const) {
    using terminal = sitDown(...typed);
    const transcript = await wallet(...args);
    assert.deepEqual([transcript.status, terminal.asked], [status, questions], transcript.err);
  }
  assert.deepEqual([await opens("other"), await opens("right")], [true, false]);
  const names = readdirSync(join(directory, "wallet/identity")).toSorted();
  assert.deepEqual(names, ["mine.json", "new.json", "twin.json"]);
});
