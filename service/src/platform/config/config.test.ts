import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mnemonicToAccount } from "viem/accounts";
import { type Config, ConfigError, parseConfig, settings } from "./config.ts";
import { readOrMakeDevelopmentKey } from "./development-key.ts";

/** Whatever the machine that runs the tests has set must not matter. */
const unset = Object.fromEntries(Object.values(settings).map(({ env }) => [env, ""]));
const parse = (given: NodeJS.ProcessEnv = {}): Config => parseConfig({ ...unset, ...given });

const production = {
  PROFILE: "production",
  BASE_URL: "https://id.example.com",
  MASTER_KEY: "0123456789abcdef".repeat(4),
  DATABASE_URL: "postgresql://db.example.com/svc",
  CHAIN_RPC_URL: "https://rpc.example.com/",
  SIGNER_KEY: "cd".repeat(32),
};

test("nothing has to be set in the profile dev", () => {
  const config = parse();
  assert.deepEqual(
    [config.profile, config.baseUrl, config.port, config.metricsPort, config.walletOrigin],
    ["dev", "http://localhost:4000", 4000, 4009, "http://localhost:4002"],
  );
  assert.deepEqual(
    [config.databaseUrl, config.masterKeys, config.limitLoopback, config.trustedProxies],
    [null, null, false, []],
  );
});

test("addresses and ports that are not given follow the port", () => {
  const config = parse({ PORT: "5000" });
  assert.deepEqual(
    [config.baseUrl, config.metricsPort, config.walletOrigin],
    ["http://localhost:5000", 5009, "http://localhost:5002"],
  );
});

test("the issuer has no trailing slash and no path", () => {
  assert.equal(
    parse({ ...production, BASE_URL: "https://ID.example.com/" }).baseUrl,
    "https://id.example.com",
  );
});

const orderOfCurve = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
const wrong: [env: string, value: string, says: RegExp][] = [
  ["PROFILE", "test", /one of dev, production/],
  ["PORT", "65536", /whole number from 1 to 65535/],
  ["PORT", "0", /whole number from 1 to 65535/],
  ["PORT", "4000.5", /whole number/],
  ["PORT", "-1", /whole number/],
  ["PORT", "1e3", /whole number/],
  ["BASE_URL", "localhost:4000", /origin/],
  ["BASE_URL", "ftp://localhost", /origin/],
  ["BASE_URL", "http://localhost:4000/path", /origin/],
  ["BASE_URL", "http://localhost:4000/?x", /origin/],
  ["BASE_URL", "http://user@localhost:4000", /origin/],
  ["BASE_URL", "http://:secret@localhost:4000", /origin/],
  ["MASTER_KEY", "ab", /64 lower-case hex/],
  ["MASTER_KEY", "AB".repeat(32), /64 lower-case hex/],
  ["MASTER_KEY", Array.from({ length: 5 }, () => "ab".repeat(32)).join(), /one to four/],
  ["MASTER_KEY", `${"ab".repeat(32)},${"ab".repeat(32)}`, /must not hold the same key twice/],
  ["PORT", "65527", /at most 65526/],
  ["DATABASE_URL", "banana", /postgresql:/],
  ["DATABASE_URL", "mysql://localhost/svc", /postgresql:/],
  ["DATABASE_URL", "postgresql://localhost:port/svc", /postgresql:/],
  ["DATABASE_URL", "postgresql://svc:x@one.internal,two.internal/svc", /single host/],
  [
    "DATABASE_URL",
    "postgresql://one:5432,two:5432/svc?target_session_attrs=read-write",
    /single host/,
  ],
  ["DATABASE_URL", "postgresql:///svc?user=svc&host=one.internal,two.internal", /single host/],
  ["DATABASE_CONNECTIONS", "1", /from 2 to 200/],
  ["TRUSTED_PROXIES", "10.0.0.0/33", /CIDR/],
  ["TRUSTED_PROXIES", "10.0.0.1,proxy.example.com", /CIDR/],
  ["LOG_LEVEL", "verbose", /one of/],
  ["ALLOW_EMBEDDED_DATABASE", "yes", /one of true, false/],
  ["REFRESH_GRACE_SECONDS", "61", /from 0 to 60/],
  ["CHAIN", "maybe", /one of on, off/],
  ["CHAIN_RPC_URL", "ws://localhost", /http/],
  ["SIGNER_KEY", "0x12", /64 lower-case hex/],
  ["SIGNER_KEY", "0".repeat(64), /private key of secp256k1/],
  ["SIGNER_KEY", `0x${"f".repeat(64)}`, /private key of secp256k1/],
  ["SIGNER_KEY", orderOfCurve, /private key of secp256k1/],
  ["SIGNER_ADDRESS", "0x12", /address/],
  ["CONFIRMATIONS", "0", /from 1 to 1000/],
  ["CHAIN_SPEND_CAP", "-1", /native coin/],
  ["CHAIN_SPEND_CAP", "1e3", /native coin/],
  ["CONTRACT_SALT", "0x12", /64 hex/],
  ["SMTP_URL", "smtp://", /smtp:/],
  ["SMTP_URL", "smtp://smtp.example.com?requireTLS=false", /end after the port/],
  ["SMTP_URL", "smtps://user:25/canary@smtp.example.com", /percent-encoded/],
  ["SMTP_URL", "smtps://user:25#canary@smtp.example.com", /percent-encoded/],
  ["SMTP_URL", "smtps://user@smtp.example.com", /password/],
  ["MAIL_FROM", `${"a".repeat(310)}@example.com`, /mailbox/],
  ["MAIL_FROM", "Example <id@example.com", /mailbox/],
  ["MAIL_FROM", "Example id@example.com", /mailbox/],
];

const refuses = (env: string, value: string, says: RegExp): void =>
  assert.throws(
    () => parse({ [env]: value }),
    (error: unknown) =>
      error instanceof ConfigError &&
      error.message.startsWith(`${env} `) &&
      says.test(error.message),
  );

for (const [env, value, says] of wrong) {
  test(`${env}=${value.slice(0, 40)} is refused by the name of the setting`, () =>
    refuses(env, value, says));
}

test("a database is reached by host or by socket", () => {
  for (const url of [
    "postgres://localhost/svc",
    "postgresql://svc:p%40ss@db.example.com:5432/svc?sslmode=require",
    "postgresql://svc:p,w@localhost/svc?options=a,b",
    "postgresql:///svc?host=/run/postgresql",
    "postgresql:///svc?host=/run/a,b",
    "postgresql://svc:secret@/svc?host=/run/postgresql",
    "postgresql://%2Frun%2Fpostgresql/svc",
    "postgresql://[::1]/svc",
    "socket:/run/postgresql?db=svc",
    "/run/postgresql svc",
  ])
    assert.equal(parse({ DATABASE_URL: url }).databaseUrl, url);
});

test("the highest ports are free for those who give the metrics one of their own", () => {
  assert.equal(parse({ PORT: "65526" }).metricsPort, 65_535);
  assert.equal(parse({ PORT: "65535", METRICS_PORT: "9090" }).metricsPort, 9090);
});

test("the metrics cannot have the port of the service", () => {
  refuses("METRICS_PORT", "4000", /^METRICS_PORT must differ from PORT$/);
});

test("a refusal never repeats the value", () => {
  for (const env of ["MASTER_KEY", "DATABASE_URL", "BASE_URL", "SIGNER_KEY", "CHAIN_RPC_URL"])
    refuses(env, "canary", /^(?!.*canary)/);
  refuses("SIGNER_KEY", `${"f".repeat(63)}0`, /^(?!.*(?:ffff|\d{65}))/);
});

const unsafe: [what: string, change: NodeJS.ProcessEnv, says: RegExp][] = [
  ["without a master key", { MASTER_KEY: "" }, /^MASTER_KEY must be set/],
  ["with a master key of zeros", { MASTER_KEY: "0".repeat(64) }, /^MASTER_KEY must be random/],
  [
    "with an old master key of zeros",
    { MASTER_KEY: `${production.MASTER_KEY},${"0".repeat(64)}` },
    /^MASTER_KEY must be random/,
  ],
  ["on the embedded database", { DATABASE_URL: "" }, /^DATABASE_URL must be set/],
  ["without https", { BASE_URL: "http://id.example.com" }, /^BASE_URL must be https/],
  ["on its default address", { BASE_URL: "" }, /^BASE_URL must be https/],
  [
    "with a wallet without https",
    { WALLET_ORIGIN: "http://wallet.example.com" },
    /^WALLET_ORIGIN must be https/,
  ],
  ["without a chain", { CHAIN: "off" }, /^CHAIN must be on/],
  ["on the embedded chain", { CHAIN_RPC_URL: "" }, /^CHAIN_RPC_URL must be set/],
  ["with a signer of its own making", { SIGNER_KEY: "" }, /^SIGNER_KEY or SIGNER_URL must be set/],
  [
    "with a key that everybody knows",
    { SIGNER_KEY: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80" },
    /^SIGNER_KEY must not be/,
  ],
  ["with a small number as key", { SIGNER_KEY: "1".padStart(64, "0") }, /^SIGNER_KEY must not be/],
];

for (const [what, change, says] of unsafe) {
  test(`production does not start ${what}`, () => {
    assert.throws(
      () => parse({ ...production, ...change }),
      (error: unknown) => error instanceof ConfigError && says.test(error.message),
    );
  });
}

test("production does not start with the key that the profile dev made in its directory", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-config-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const given = { ...production, DATA_DIR: directory };
  const key = readOrMakeDevelopmentKey(directory);
  assert.deepEqual(parse(given).masterKeys, [production.MASTER_KEY]);
  for (const keys of [key, `${production.MASTER_KEY},${key}`])
    assert.throws(
      () => parse({ ...given, MASTER_KEY: keys }),
      (error: unknown) =>
        error instanceof ConfigError && error.message.startsWith("MASTER_KEY must not be the dev"),
    );
});

test("production takes the embedded database when that is allowed by name", () => {
  const change = { DATABASE_URL: "", ALLOW_EMBEDDED_DATABASE: "true" };
  assert.equal(parse({ ...production, ...change }).databaseUrl, null);
});

test("production takes the embedded chain when that is allowed by name", () => {
  const change = { CHAIN_RPC_URL: "", ALLOW_EMBEDDED_CHAIN: "true" };
  assert.equal(parse({ ...production, ...change }).chainRpcUrl, null);
});

test("there is one signer: a key, or an address behind another server", () => {
  const remote = { SIGNER_URL: "http://signer:9000", SIGNER_ADDRESS: `0x${"a".repeat(40)}` };
  assert.equal(parse(remote).signerAddress, remote.SIGNER_ADDRESS);
  assert.throws(() => parse({ ...remote, SIGNER_ADDRESS: "" }), /set together/);
  assert.throws(() => parse({ ...remote, SIGNER_URL: "" }), /set together/);
  assert.throws(() => parse({ ...remote, SIGNER_KEY: "ab".repeat(32) }), /must not be set/);
  const behind = parse({ ...production, SIGNER_KEY: "", ...remote });
  assert.deepEqual([behind.signerKey, behind.signerUrl], [null, remote.SIGNER_URL]);
});

test("production takes none of the keys that development chains give coin to", () => {
  const mnemonic = "test test test test test test test test test test test junk";
  for (let addressIndex = 0; addressIndex < 10; addressIndex += 1) {
    const { privateKey } = mnemonicToAccount(mnemonic, { addressIndex }).getHdKey();
    const SIGNER_KEY = Buffer.from(privateKey ?? []).toString("hex");
    assert.throws(() => parse({ ...production, SIGNER_KEY }), /^Error: SIGNER_KEY must not be/);
  }
});

test("both bounds of a number are allowed", () => {
  assert.deepEqual(
    ["0", "300"].map((text) => parse({ DRAIN_SECONDS: text }).drainSeconds),
    [0, 300],
  );
});

test("a server for messages takes a sender", () => {
  const SMTP_URL = "smtps://smtp.example.com";
  assert.throws(() => parse({ SMTP_URL }), /^Error: MAIL_FROM must be set/);
  assert.equal(parse({ SMTP_URL, MAIL_FROM: "id@example.com" }).smtpUrl, SMTP_URL);
});

test("one block is final on the embedded chain, twelve are elsewhere", () => {
  assert.equal(parse().confirmations, 1);
  assert.equal(parse(production).confirmations, 12);
  assert.equal(parse({ ...production, CONFIRMATIONS: "3" }).confirmations, 3);
});

test("in production limits count for loopback too", () => {
  assert.equal(parse(production).limitLoopback, true);
  assert.equal(parse({ ...production, LIMIT_LOOPBACK: "false" }).limitLoopback, false);
});

test("the profile dev takes no BASE_URL but one of this machine", () => {
  assert.throws(() => parse({ BASE_URL: "https://id.example.com" }), ConfigError);
  assert.equal(parse({ BASE_URL: "http://127.0.0.1:4000" }).baseUrl, "http://127.0.0.1:4000");
});

test("the entries of a list lose the spaces around them, and empty ones are left out", () => {
  const config = parse({ TRUSTED_PROXIES: " 10.0.0.0/8 , ::1," });
  assert.deepEqual(config.trustedProxies, ["10.0.0.0/8", "::1"]);
});

test("the configuration cannot be changed", () => {
  const config = parse({ ...production, TRUSTED_PROXIES: "10.0.0.0/8" });
  assert.throws(() => Object.assign(config, { profile: "dev" }), TypeError);
  for (const each of Object.values(config)) {
    if (Array.isArray(each)) assert.ok(Object.isFrozen(each));
  }
});

test("every setting is documented once", () => {
  const rows = Object.values(settings);
  assert.equal(new Set(rows.map((row) => row.env)).size, rows.length);
  for (const row of rows) {
    assert.match(row.env, /^[A-Z][A-Z_]+$/);
    assert.match(row.description, /\.$/);
    assert.ok(row.unit.length > 0);
  }
});
