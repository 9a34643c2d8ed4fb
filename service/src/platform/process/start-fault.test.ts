import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { DatabaseError } from "pg";
import { RpcError } from "../../chain/node.ts";
import { openContext } from "../../compose.ts";
import { ConfigError, parseConfig } from "../config/config.ts";
import { openTestDatabase } from "../database/test-database.ts";
import { lockDirectory } from "./directory-lock.ts";
import { describeStartFault } from "./start-fault.ts";

const unreachable = "the database cannot be reached (DATABASE_URL)";

test("a host that was tried at several addresses is named by the first", () => {
  const refused = ["::1", "127.0.0.1"].map((address) =>
    Object.assign(new Error(`connect ECONNREFUSED ${address}:5432`), { code: "ECONNREFUSED" }),
  );
  const said = describeStartFault(new AggregateError(refused));
  assert.equal(said, `${unreachable}: connect ECONNREFUSED ::1:5432`);
});

test("of a database that cannot be reached, or refuses, the setting is named", () => {
  const timeout = new Error("timeout exceeded when trying to connect");
  assert.equal(describeStartFault(timeout), `${unreachable}: ${timeout.message}`);
  for (const [code, message] of [
    ["3D000", 'database "svc" does not exist'],
    ["42501", "permission denied for schema public"],
  ]) {
    const said = describeStartFault(Object.assign(new Error(message), { code }));
    assert.equal(said, `the database refuses the service (DATABASE_URL): ${message}`);
  }
});

for (const [message, code] of [
  ["self-signed certificate in certificate chain", "SELF_SIGNED_CERT_IN_CHAIN"],
  ["unable to verify the first certificate", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"],
  ["certificate has expired", "CERT_HAS_EXPIRED"],
  ["Hostname/IP does not match certificate's altnames", "ERR_TLS_CERT_ALTNAME_INVALID"],
  ["The server does not support SSL connections", undefined],
] as const)
  test(`of a database that cannot be reached safely the setting is named: ${message}`, () => {
    const said = describeStartFault(Object.assign(new Error(message), { code }));
    assert.equal(
      said,
      `the database has no trusted certificate (sslmode and sslrootcert of DATABASE_URL): ${message}`,
    );
  });

test("of a full disk it is said where to look, although the system names no file", () => {
  const message = "ENOSPC: no space left on device, write";
  const fault = Object.assign(new Error(message), { code: "ENOSPC", syscall: "write" });
  assert.equal(describeStartFault(fault), `${message}: check DATA_DIR`);
});

test("of a directory that cannot be locked, as on a full disk, the file is named", () => {
  const directory = mkdtempSync(join(tmpdir(), "svc-test-"));
  const file = join(directory, "lock");
  mkdirSync(file);
  try {
    lockDirectory(directory);
    assert.fail("it was locked");
  } catch (error) {
    const said = `${file} cannot be locked: unable to open database file`;
    assert.equal(describeStartFault(error), said);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("of a database that others keep busy it is not said that it cannot be reached", () => {
  const message = "canceling statement due to lock timeout";
  for (const code of ["40P01", "55P03", "57014"]) {
    const said = describeStartFault(
      Object.assign(new DatabaseError(message, 0, "error"), { code }),
    );
    assert.equal(said, `the database was too busy: ${message}`);
  }
});

test("of a start on a standby it is said that the address has to lead to the primary", async () => {
  await using database = await openTestDatabase();
  const DATABASE_URL = `${database.url}&options=-c%20default_transaction_read_only%3Don`;
  const config = parseConfig({ DATABASE_URL, MASTER_KEY: "11".repeat(32) });
  await assert.rejects(openContext(config), (error) => {
    const said = describeStartFault(error) ?? "";
    assert.match(
      said,
      /^the database takes no changes \(DATABASE_URL\): .*primary.*standby.*read-only mode/,
    );
    return true;
  });
});

test("of statements that get lost between the connections of a pooler it is said that one stands there", () => {
  for (const code of ["42P05", "26000"]) {
    const fault = Object.assign(new Error('prepared statement "x" already exists'), { code });
    assert.match(describeStartFault(fault) ?? "", /^a pooler in transaction mode .*DATABASE_URL/);
  }
});

test("of a host that cannot be found or listened at the settings are named that may hold it", async () => {
  const unknown = createServer().listen(0, "nosuch.invalid");
  const [fault] = await once(unknown, "error");
  assert.match(describeStartFault(fault) ?? "", /nosuch\.invalid: check HOST and DATABASE_URL$/);
  const foreign = createServer().listen(0, "192.0.2.1");
  const [refused] = await once(foreign, "error");
  assert.match(describeStartFault(refused) ?? "", /192\.0\.2\.1: choose another HOST or PORT$/);
});

test("of a port that somebody else has it is said which one, and what to do", async () => {
  await using first = createServer().listen(0, "127.0.0.1");
  await once(first, "listening");
  const { port } = first.address() as AddressInfo;
  const second = createServer().listen(port, "127.0.0.1");
  const [fault] = await once(second, "error");
  const said = describeStartFault(fault) ?? "";
  assert.ok(said.startsWith(`port ${port} is already in use at 127.0.0.1: `), said);
  assert.match(said, /\bPORT\b.*METRICS_PORT/);
});

test("a fault of our own code is described as nothing that an operator can mend", () => {
  assert.equal(describeStartFault(new TypeError("x is not a function")), null);
  const ours = Object.assign(new Error("unknown column"), { code: "42703" });
  assert.equal(describeStartFault(ours), null);
});

test("a directory that cannot be made is not taken for a database that is away", () => {
  const missing = join(tmpdir(), "svc-nowhere", "more");
  let fault: unknown;
  try {
    mkdirSync(missing);
  } catch (error) {
    fault = error;
  }
  assert.equal(
    describeStartFault(fault),
    `ENOENT: no such file or directory, mkdir '${missing}': check DATA_DIR`,
  );
});

test("of a node or signer that answers with an error of its own words the settings are named that lead there", () => {
  const said = describeStartFault(new RpcError(404, "no such route"));
  const settings =
    "the chain's node or the remote signer refused a call (CHAIN_RPC_URL, SIGNER_URL)";
  assert.equal(said, `${settings}: no such route`);
});

test("a fault that was foreseen is told as it says, in one line", () => {
  const foreseen = Object.assign(new Error("the node is away:\n  no answer"), { name: "NodeAway" });
  assert.equal(describeStartFault(foreseen), "the node is away: no answer");
  assert.equal(describeStartFault(new ConfigError("PORT is no port")), "PORT is no port");
  const full = Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC", path: "/x" });
  assert.equal(describeStartFault(full), "ENOSPC: no space left");
  assert.equal(describeStartFault("no error"), null);
  const left = new SuppressedError(new Error("in use"), new ConfigError("PORT is no port"));
  assert.equal(describeStartFault(left), "PORT is no port", "whatever could not be closed then");
  const ours = new AggregateError([new ConfigError("one")], "several things failed");
  assert.equal(describeStartFault(ours), null);
});
