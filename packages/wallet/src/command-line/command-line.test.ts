import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { addressOfPrivateKey, bytesOfHex } from "@svc/protocol";
import { digits, loginId, openFakeBroker, privateKeys } from "../../test/fake-broker.ts";
import { callWallet, type Transcript, valueOf } from "../../test/call-wallet.ts";
import { shareSalts } from "../../test/same-salt.ts";
import { jsonOf, verbs } from "./run.ts";
import type { Option } from "./verb.ts";

const cli = join(import.meta.dirname, "../cli.ts");
const directory = mkdtempSync(join(tmpdir(), "svc-wallet-"));
using cleanup = new DisposableStack();
cleanup.use(shareSalts());
cleanup.defer(() => rmSync(directory, { recursive: true, force: true }));
await using broker = await openFakeBroker();

const addressOf = (name: keyof typeof privateKeys): string =>
  addressOfPrivateKey(bytesOfHex(privateKeys[name]) ?? new Uint8Array());
const identities = {
  alice: { address: addressOf("alice"), privateKey: privateKeys.alice },
  bob: { address: addressOf("bob"), privateKey: privateKeys.bob },
};
writeFileSync(join(directory, "demo.json"), JSON.stringify({ baseUrl: broker.url, identities }));
/** The demo's clock, which the wallet follows. */
const tellTime = (): unknown =>
  broker.answers.set("/health/ready", { status: 200, body: { status: "ok", now: 1_000_030 } });

/** Runs the real program in a process of its own. @param stdout where its results go, if not into the transcript */
async function spawnWallet(
  args: readonly string[],
  {
    stdout = "pipe",
    ...more
  }: { stdout?: "closed" | "pipe" | number; WALLET_PASSPHRASE?: string } = {},
): Promise<Transcript> {
  const child = spawn(process.execPath, ["--conditions=source", cli, ...args], {
    env: { ...process.env, DATA_DIR: directory, ...more },
    stdio: ["ignore", stdout === "closed" ? "pipe" : stdout, "pipe"],
  });
  if (stdout === "closed") child.stdout?.destroy();
  const exit = new Promise<number | null>((resolve) => child.once("close", resolve));
  const written = [child.stdout, child.stderr].map(async (each) =>
    each?.readable ? text(each) : "",
  );
  const [[out = "", err = ""], status] = await Promise.all([Promise.all(written), exit]);
  return { status, out, err };
}

/** The same within this process, for what does not depend on processes. */
const wallet = async (args: readonly string[], dataDirectory = directory): Promise<Transcript> =>
  callWallet(args, dataDirectory);

/** The one JSON value that a call prints. */
async function json(args: readonly string[]): Promise<Record<string, unknown>> {
  return valueOf(await wallet(args));
}

async function refused(args: readonly string[], pattern: RegExp): Promise<Transcript> {
  const transcript = await wallet(args);
  assert.equal(transcript.status, 1, transcript.out);
  assert.match(transcript.err, pattern);
  assert.equal(transcript.err.split("\n").length, 2);
  return transcript;
}

function fresh(): string {
  broker.reset();
  tellTime();
  rmSync(join(directory, "wallet/claim"), { recursive: true, force: true });
  return broker.qrLink();
}

for (const verb of verbs) {
  await test(`wallet ${verb.name} --help says what it does, each option and an example`, async () => {
    const { status, out, err } = await wallet([...verb.name.split(" "), "--help"]);
    assert.deepEqual({ status, err }, { status: 0, err: "" });
    assert.ok(out.startsWith(verb.summary));
    assert.ok(out.includes(`Example: npm run wallet -- ${verb.example}`));
    const { parameters = {}, options = {} } = verb;
    const words = Object.keys(parameters).map((name) => `<${name}>`);
    const usage = [verb.name, ...words].join(" ");
    assert.ok(out.replaceAll(/[[\]]/g, "").includes(`wallet -- ${usage} options\n`), out);
    for (const [name, description] of Object.entries(parameters))
      assert.match(out, new RegExp(`^ {2}<${name}> +${RegExp.escape(description)}$`, "m"));
    for (const [name, { value, description }] of Object.entries<Option>(options)) {
      const spelled = value === undefined ? name : `${name} <${value}>`;
      assert.match(
        out,
        new RegExp(`^ {2}--${RegExp.escape(spelled)} +${RegExp.escape(description)}$`, "m"),
      );
    }
    assert.equal((await wallet([...verb.name.split(" "), "-h"])).out, out);
  });
}

await test("a reader who goes before the end breaks nothing off", async () => {
  const left = { status: 0, out: "", err: "" };
  assert.deepEqual(await spawnWallet(["--help"], { stdout: "closed" }), left);
});

const lost = (code: string): Transcript => {
  const err = `wallet: what was done stands, but its result cannot be written (${code})\n`;
  return { status: 1, out: "", err };
};

await test("words that are told once are not told to nobody: a reader who went is one line and status 1", async () => {
  const reader = { stdout: "closed", WALLET_PASSPHRASE: "correct horse battery" } as const;
  const answer = await spawnWallet(["identity", "create", "unread"], reader);
  assert.deepEqual(answer, lost("EPIPE"));
  rmSync(join(directory, "wallet/identity"), { recursive: true });
});

await test("a result that the disk does not take is one line and status 1", async (t) => {
  if (!existsSync("/dev/full")) {
    t.skip("this system has no disk that is always full");
    return;
  }
  const full = openSync("/dev/full", "w");
  assert.deepEqual(await spawnWallet(["broker", "list"], { stdout: full }), lost("ENOSPC"));
  closeSync(full);
});

await test("the guide names every verb", () => {
  const guide = readFileSync(
    join(import.meta.dirname, "../../../../docs/guides/wallet.md"),
    "utf8",
  );
  for (const { name } of verbs) assert.ok(guide.includes(`\`${name}`), name);
});

/** The claims that the broker got, in their order. */
const claims = (): unknown[] =>
  broker.received.filter(({ path }) => path.endsWith("/claim")).map(({ body }) => body["claim"]);

await test("three shows at once, approve and approve with the digits are five processes, one claim and one login", async () => {
  const link = fresh();
  const show = ["show", link, "--as", "alice"];
  const shown = (await Promise.all([1, 2, 3].map(async () => spawnWallet(show)))).map(valueOf);
  const claimed = claims();
  assert.equal(new Set(claimed).size, 1);
  for (const { words, action } of shown) {
    assert.match(String(words), /^"Demo shop" \(shop\.example, verified by localhost/);
    assert.equal(action, "login");
  }
  const asked = await spawnWallet(["approve", link, "--as", "alice"]);
  assert.deepEqual(asked, { status: 2, out: '{"status":"code_required"}\n', err: "" });
  const call = ["approve", link, "--as", "alice", "--code", digits];
  const approved = valueOf(await spawnWallet(call));
  assert.deepEqual([approved["status"], approved["answer"]], [200, { status: "approved" }]);
  assert.deepEqual(claims(), claimed, "a claim that is kept is not made again");
});

await test("the wrong number is the broker's answer, status 1 and one line", async () => {
  const link = fresh();
  const { out } = await refused(
    ["approve", link, "--as", "alice", "--code", "41"],
    /^wallet approve: localhost:\d+ refuses: said by the broker: wrong_number \(wrong_number\)\n$/,
  );
  assert.equal((JSON.parse(out) as { status: number }).status, 403);
});

await test("a login that was shown is declined in another call", async () => {
  const link = fresh();
  await json(["show", link, "--as", "alice"]);
  const declined = await json(["decline", link, "--as", "alice", "--not-started"]);
  assert.deepEqual([declined["status"], broker.status], [200, "declined"]);
  assert.equal(broker.bodies().at(-1)?.["notStarted"], true);
  // A later call for the same login gets its state from the broker.
  await refused(["approve", link, "--as", "alice"], /said by the broker: already_claimed/);
});

await test("another network is a refusal that names the flag, which lets it pass", async () => {
  const link = fresh();
  broker.acr = "urn:svc:acr:qr";
  const call = ["approve", link, "--as", "alice", "--code", digits];
  await refused(call, /another network.*--accept other-network\n$/);
  assert.equal((await json([...call, "--accept", "other-network"]))["status"], 200);
});

await test("on the same device the address to open is printed", async () => {
  fresh();
  const { open } = await json(["approve", broker.sameDeviceLink(), "--as", "alice"]);
  const prefix = `${broker.url}/w/b/${loginId}?signature=0x`;
  assert.ok(String(open).startsWith(prefix), String(open));
});

await test("a forged request object is a refusal", async () => {
  const link = fresh();
  broker.claims = { iss: "https://evil.example" };
  await refused(["show", link, "--as", "alice"], /refused \(forged_request\): .*iss/);
  await refused(["approve", link, "--as", "alice", "--code", digits], /forged_request/);
  assert.equal(broker.status, "waiting");
});

await test("somebody unknown is a refusal that names the flag, and qr shows the payload", async () => {
  fresh();
  const link = "svc:sign?data=0x6869&conn=https%3A%2F%2Fshop.example%2Fx&type=qr";
  await refused(["approve", link, "--as", "bob"], /shop\.example.*--accept unknown-requester\n$/);
  const { payload } = await json(["approve", link, "--as", "bob", "--accept", "unknown-requester"]);
  const { svcID } = JSON.parse(String(payload)) as { svcID: string };
  assert.equal(svcID, identities.bob.address);
});

await test("a warning names its flag", async () => {
  fresh();
  const link = `svc:sign?data=0x${"ab".repeat(32)}`;
  await refused(["approve", link, "--as", "bob"], /--accept blind-hash\n$/);
  await json(["approve", link, "--as", "bob", "--accept", "blind-hash,other-network"]);
  await refused(["approve", link, "--as", "bob", "--accept", "anything"], /--accept.*anything/);
});

/** A value that fits a type of ours. */
function fittingValue(type: string): unknown {
  if (type === "string") return "text";
  if (type === "address") return `0x${"11".repeat(20)}`;
  return type === "bytes32" ? `0x${"22".repeat(32)}` : 7;
}

await test("every reserved type is refused, whatever is accepted", async () => {
  fresh();
  const vectors = JSON.parse(
    readFileSync(new URL("../../../protocol/vectors/reserved.json", import.meta.url), "utf8"),
  ) as { types: { name: string; encodeType: string }[] };
  assert.equal(vectors.types.length, 12);
  for (const { name, encodeType } of vectors.types) {
    const fields = encodeType
      .slice(name.length + 1, -1)
      .split(",")
      .map((field) => ({ type: field.split(" ")[0] ?? "", name: field.split(" ")[1] ?? "" }));
    const message = Object.fromEntries(
      fields.map((field) => [field.name, fittingValue(field.type)]),
    );
    const data = { domain: { name: "Other" }, primaryType: name, message };
    const parts = [data, { [name]: fields }].map((part) =>
      encodeURIComponent(JSON.stringify(part)),
    );
    const link = `svc:td?data=${parts[0]}&td=${parts[1]}&dl=2000000`;
    const accept = "unknown-requester,permit,blind-hash";
    const answer = await wallet(["approve", link, "--as", "alice", "--accept", accept]);
    const err = `wallet approve: refused (invalid_request): the type ${name} is reserved\n`;
    assert.deepEqual(answer, { status: 1, out: "", err });
  }
});

await test("a broker that was added is removed; one that the wallet came with and one that it never had are refused", async () => {
  const added = "https://login.example";
  await json(["broker", "add", added, "--yes"]);
  const misspelled = added.replace("login", "lgoin");
  await refused(["broker", "remove", misspelled], /not_found\): \S+ is not on the list; see/);
  assert.deepEqual(await json(["broker", "list"]), { brokers: [broker.url, added] });
  assert.deepEqual(await json(["broker", "remove", added]), { removed: added });
  await refused(["broker", "remove", broker.url], /stays on the list/);
  assert.deepEqual(await json(["broker", "list"]), { brokers: [broker.url] });
});

await test("an identity is made, opened by its passphrase and refused by another", async (t) => {
  fresh();
  const right = join(directory, "right");
  const wrong = join(directory, "wrong");
  writeFileSync(right, "correct horse battery\n");
  writeFileSync(wrong, "another horse battery\n");
  const made = await json(["identity", "create", "mine", "--passphrase-file", right]);
  assert.equal(String(made["mnemonic"]).split(" ").length, 12);
  const sign = ["approve", "svc:sign?data=0x6869", "--as", "mine"];
  const { payload } = await json([...sign, "--passphrase-file", right]);
  assert.ok(String(payload).includes(String(made["address"])));
  await refused([...sign, "--passphrase-file", wrong], /refused \(wrong_passphrase\): .*mine\n$/);
  t.mock.getter(process, "stdin", () => Readable.from([]) as typeof process.stdin);
  await refused(sign, /--passphrase-file or WALLET_PASSPHRASE/);
  const { status } = await callWallet(sign, directory, { passphrase: "correct horse battery" });
  assert.equal(status, 0);
  const keyFile = join(directory, "key");
  writeFileSync(keyFile, `${privateKeys.bob}\n`);
  const secrets = ["--passphrase-file", right, "--private-key-file", keyFile];
  const imported = await json(["identity", "import", "alice", ...secrets]);
  assert.equal(imported["address"], identities.bob.address);
  const { identities: listed } = await json(["identity", "list"]);
  assert.deepEqual(
    (listed as { name: string; from: string }[]).map(({ name, from }) => `${name} ${from}`),
    ["alice vault", "mine vault", "bob demo"],
  );
  rmSync(join(directory, "wallet/identity"), { recursive: true });
});

await test("of two secrets one alone comes by standard input: with two nothing is read and nothing written", async () => {
  for (const [args, named] of [
    [["identity", "import", "two", "--mnemonic-file", "-"], "mnemonic-file"],
    [["identity", "import", "two", "--private-key-file", "-"], "private-key-file"],
    [["restore", "-", "--as", "two"], "backup"],
  ] as const)
    await refused(
      [...args, "--passphrase-file", "-"],
      new RegExp(
        `only one of ${named} and passphrase-file can be -, which is standard input; see wallet`,
      ),
    );
  const both = ["--passphrase-file", "-", "--new-passphrase-file", "-"];
  await refused(
    ["identity", "passphrase", "two", ...both],
    /only one of passphrase-file and new-pass/,
  );
  assert.equal(existsSync(join(directory, "wallet/identity/two.json")), false);
});

await test("a broker joins the list by an explicit yes", async () => {
  const unsure = await wallet(["broker", "add", "https://login.example"]);
  assert.equal(unsure.status, 1);
  assert.match(unsure.err, /--yes\n$/);
  assert.equal((await wallet(["broker", "add", "https://login.example", "--yes"])).status, 0);
  const { out } = await wallet(["broker", "list"]);
  assert.deepEqual(JSON.parse(out), { brokers: [broker.url, "https://login.example"] });
  await wallet(["broker", "remove", "https://login.example"]);
});

await test("logins are listed and ended", async () => {
  fresh();
  broker.answers.set("/health/ready", { status: 200, body: { now: 3_999_000 } });
  const { items } = await json(["logins", "--as", "alice"]);
  assert.deepEqual(
    (items as { id: string }[]).map(({ id }) => id),
    ["one"],
  );
  const ended = await json(["logins", "end", "one", "--as", "alice"]);
  assert.deepEqual(ended, { id: "one", status: "ended" });
});

await test("wrong use is one line and status 1, and leaves no state behind", async () => {
  const empty = mkdtempSync(join(tmpdir(), "svc-wallet-empty-"));
  cleanup.defer(() => rmSync(empty, { recursive: true, force: true }));
  for (const args of [
    [],
    ["dance"],
    ["approve"],
    ["approve", "svc:x", "--as", "alice", "--nothing"],
    ["approve", "svc:sign?data=0x00", "--as", "alice", "--as", "nobody"],
    ["approve", "svc:sign?data=0x00"],
    ["approve", "svc:sign?data=0x00", "--as", "nobody"],
  ]) {
    const { status, out, err } = await wallet(args, empty);
    assert.deepEqual([status, out, err.split("\n").length], [1, "", 2], err);
  }
  assert.equal(existsSync(join(empty, "wallet")), false);
  await refused([], /no verb is given/);
  await refused(["dance"], /there is no verb "dance"; see wallet --help/);
  await refused(["identity", "new"], /no verb "identity new"; see wallet identity --help/);
  await refused(["nope", "--as", "alice"], /no verb "nope"; see wallet --help/);
  await refused(["--as", "alice"], /no verb is given/);
  const misplaced = /options must come after the verb; see wallet show --help/;
  await refused(["--as", "alice", "--yes", "show"], misplaced);
  await refused(["--as=alice", "--as", "alice", "show", "svc:x"], misplaced);
  await refused(["business"], /"business" needs one more word; see wallet business --help/);
  await refused(["approve", "--as", "alice"], /: <link> is missing; see wallet approve --help/);
  await refused(["email", "confirm", "v1"], /: <code> is missing; see wallet email confirm/);
  await refused(["logins", "now"], /: unexpected argument "now"; see wallet logins --help/);
  await refused(["restore", "nowhere", "--as", "alice"], /invalid_input\): nowhere cannot be read/);
  await refused(["logins", "--nothing"], /: Unknown option '--nothing'; see wallet logins --help/);
  await refused(["logins", "--as", "alice", "--as=bob"], /: --as is given twice; see wallet/);
  const help = await wallet(["logins", "end", "--help"], empty);
  for (const asked of [
    ["help", "logins", "end"],
    ["help", "logins", "end", "--help"],
  ])
    assert.deepEqual(await wallet(asked, empty), help);
});

await test("an answer that nests without end is invalid, and what was given counts as given", async () => {
  fresh();
  const nested = `{"deep":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
  broker.answers.set("/taken", { status: 200, body: nested });
  const conn = encodeURIComponent(`${broker.url.replace("localhost", "127.0.0.1")}/taken`);
  const link = `svc:sign?data=0x6869&conn=${conn}`;
  const approving = ["approve", link, "--as", "alice", "--accept", "unknown-requester"];
  const { status, answer } = await json(approving);
  assert.deepEqual([status, answer], [200, {}]);
});

await test("what could play tricks in a terminal is escaped in the output", () => {
  const tricky = { text: "a\u202eb\u001b[31m\u200bc\u{e0041}\u034f\ufe0f\u{e0101}\u115f\u3164é" };
  const printed = jsonOf(tricky);
  assert.match(printed, /^[ -~é]*$/);
  assert.deepEqual(JSON.parse(printed), tricky);
});

test("an identity that is not there is told with the directory in which it was looked for", async () => {
  assert.deepEqual(await wallet(["show", "svc:login?sess=a", "--as", "dave"]), {
    status: 1,
    out: "",
    err: `wallet show: refused (not_found): there is no identity dave in ${directory}; see wallet identity list\n`,
  });
});
