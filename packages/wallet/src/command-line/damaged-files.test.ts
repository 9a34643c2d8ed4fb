import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { callWallet, type Transcript, valueOf } from "../../test/call-wallet.ts";
import { openFakeBroker, privateKeys } from "../../test/fake-broker.ts";
import { issue, now, serveFields } from "../../test/fake-fields.ts";
import { shareSalts } from "../../test/same-salt.ts";
import { addressOf } from "../../test/test-wallet.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-wallet-damaged-"));
using cleanup = new DisposableStack();
cleanup.use(shareSalts());
cleanup.defer(() => rmSync(directory, { recursive: true, force: true }));
await using broker = await openFakeBroker();
const fields = serveFields(broker);
const alice = addressOf("alice");
const passphraseFile = join(directory, "passphrase");
writeFileSync(passphraseFile, "correct horse battery\n");
const opened = ["--passphrase-file", passphraseFile];

const wallet = async (...args: readonly string[]): Promise<Transcript> =>
  callWallet(args, directory);

/** The output of a call that succeeds and warns about files that it cannot read. */
async function damagedOf(...args: readonly string[]): Promise<[Record<string, unknown>, string]> {
  const { status, out, err } = await wallet(...args);
  assert.equal(status, 0, err);
  return [JSON.parse(out) as Record<string, unknown>, err];
}

broker.answers.set("/health/ready", { status: 200, body: { status: "ok", now } });
const known = { alice: { address: alice, privateKey: privateKeys.alice } };
writeFileSync(
  join(directory, "demo.json"),
  JSON.stringify({ baseUrl: broker.url, identities: known }),
);

await test("a damaged credential is left out and told of, and a backup mends it", async () => {
  fields.issued = [
    issue(alice, { IDCARD_DOB: "1990-02-03" }),
    issue(alice, { EMAIL: "alice@example.com" }, { document: "email" }),
  ];
  valueOf(await wallet("receive", "--as", "alice"));
  const { backup } = valueOf(await wallet("backup", "--as", "alice", ...opened));
  const folder = join(directory, "wallet", "credential");
  for (const name of readdirSync(folder)) writeFileSync(join(folder, name), "");
  const [{ items }, err] = await damagedOf("receive", "--as", "alice");
  assert.deepEqual(items, []);
  const lines = err.split("\n").filter((line) => line !== "");
  assert.equal(lines.length, 2, err);
  for (const line of lines)
    assert.match(line, /^wallet receive: credential\/\w+ cannot be read and is left out/);
  const [restored] = await damagedOf("restore", String(backup), "--as", "alice", ...opened);
  assert.equal(restored["credentials"], 2);
  const after = valueOf(await wallet("receive", "--as", "alice"));
  assert.equal((after["items"] as unknown[]).length, 2);
});

await test("no backup is written that a damaged record is missing from", async () => {
  for (const folder of ["credential", "history"]) {
    valueOf(await wallet("approve", "svc:sign?data=0x6869&type=qr", "--as", "alice"));
    const path = join(directory, "wallet", folder);
    const [name = ""] = readdirSync(path);
    const text = readFileSync(join(path, name), "utf8");
    writeFileSync(join(path, name), "");
    const file = join(directory, "refused.backup");
    const { status, out, err } = await wallet("backup", "--as", "alice", ...opened, "--file", file);
    assert.deepEqual([status, out, existsSync(file)], [1, "", false]);
    assert.match(err, /^wallet backup: refused \(damaged_state\): the wallet cannot read \w+\/\w+/);
    writeFileSync(join(path, name), text);
  }
});

await test("a damaged identity hides no other, and a backup mends it", async () => {
  const made = valueOf(await wallet("identity", "create", "mine", ...opened));
  const { backup } = valueOf(await wallet("backup", "--as", "mine", ...opened));
  valueOf(await wallet("identity", "create", "other", ...opened));
  const file = join(directory, "wallet", "identity", "mine.json");
  writeFileSync(file, readFileSync(file, "utf8").slice(0, 120));
  const [{ identities }, err] = await damagedOf("identity", "list");
  assert.match(err, /^wallet identity list: identity\/mine cannot be read/);
  const names = (identities as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(names, ["other", "alice"]);
  const [mended] = await damagedOf("restore", String(backup), "--as", "mine", ...opened);
  assert.equal(mended["address"], made["address"]);
  valueOf(await wallet("history", "--as", "mine", ...opened));
});
