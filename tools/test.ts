// `npm test`: the checks of the house, then every test file, on one PostgreSQL that lives as long as this run.
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  globSync,
  mkdtempSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { availableMemory } from "node:process";
import { pathToFileURL } from "node:url";
import { startEmbeddedPostgres } from "../service/src/platform/embedded-postgres/embedded-postgres.ts";
import { spread } from "./test-order.ts";

const root = join(import.meta.dirname, "..");
/** Kept between runs: most test files load the whole service. */
const compileCache = join(root, "node_modules", ".cache", "svc");
const patterns = process.argv.slice(2);
const wanted =
  patterns.length > 0
    ? patterns
    : ["{packages,contracts,service,apps,demo,test,tools}/**/*.test.ts"];
const files = globSync(wanted, { cwd: root, exclude: ["**/node_modules/**"] }).toSorted();
/**
 * Processes that share the files, each taking the next one when it is free. Each has to load the service and warm up, so
 * they are few: 24 of them took half as much CPU time again. With 5 of them two processors idled for a ninth of the time,
 * with 6 for a twentieth, and 7 took longer than 6.
 */
const groupsTotal = 6;
/** Tests make much short-lived garbage, and a process runs dozens of files. */
const youngGenerationMiB = 32;

/** After this a test is taken for hanging. Those of kills and crashes take a minute, and ten times that on a machine that stalls. */
const hangMs = 900_000;

/** Ten times what the databases of a run take at most. */
const databaseRoomBytes = 2 * 1024 ** 3;
const memory = "/dev/shm";

/**
 * Makes the directory of the databases, in memory if there is room: PostgreSQL makes a thousand files for each database,
 * and to make and remove them on a disk took a sixth of the CPU time of a run.
 */
function makeHome(): string {
  if (!hasRoomInMemory()) return mkdtempSync(join(tmpdir(), "svc-test-"));
  removeLeftovers();
  return mkdtempSync(join(memory, `${ownPrefix}${process.pid}-`));
}

function hasRoomInMemory(): boolean {
  try {
    accessSync(memory, constants.W_OK);
    const { bavail, bsize } = statfsSync(memory);
    return Math.min(bavail * bsize, availableMemory()) >= databaseRoomBytes;
  } catch {
    return false;
  }
}

/** Some tests put a server with its own programs there, but /dev/shm may be mounted `noexec`. */
function runsPrograms(directory: string): boolean {
  const program = join(directory, "program");
  writeFileSync(program, "", { mode: 0o700 });
  try {
    accessSync(program, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A run's directory carries user and process id, so that the next run frees the memory that a killed one left. */
const ownPrefix = `svc-test-run-${userInfo().uid}-`;

function removeLeftovers(): void {
  for (const name of globSync(`${ownPrefix}*`, { cwd: memory })) {
    const pid = Number(name.slice(ownPrefix.length).split("-")[0]);
    if (!existsSync(`/proc/${pid}`)) rmSync(join(memory, name), { recursive: true, force: true });
  }
}

/** Writes an entry for each process. @returns their paths */
function writeGroups(directory: string): string[] {
  const shared = JSON.stringify({
    root,
    files: spread(files).map((file) => join(root, file)),
    takenDirectory: mkdtempSync(join(directory, "taken-")),
  });
  const runner = pathToFileURL(join(import.meta.dirname, "test-group.ts")).href;
  return Array.from({ length: Math.min(groupsTotal, files.length) }, (_, at) => {
    const path = join(directory, `group-${at + 1}.mjs`);
    const call = `await runTestFiles(${shared});`;
    writeFileSync(path, `import { runTestFiles } from ${JSON.stringify(runner)};\n${call}\n`);
    return path;
  });
}

async function run(
  command: string,
  args: string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<number> {
  const child = spawn(command, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...environment },
  });
  const [code] = await once(child, "exit");
  return typeof code === "number" ? code : 1;
}

async function runTests(): Promise<number> {
  const directory = makeHome();
  // As root the server runs as another user. If that one could not pass, its data would be put elsewhere and stay there.
  chmodSync(directory, 0o711);
  try {
    // The socket's directory lets nobody else pass. Passwords took 2 ms of CPU time for each of 4,000 connections.
    const access = join(directory, "pg_hba.conf");
    writeFileSync(access, "local all all trust\n");
    chmodSync(access, 0o644);
    // What a test acknowledged does not have to survive a power cut; tests of durability start their own server.
    const settings = {
      hba_file: access,
      fsync: "off",
      synchronous_commit: "off",
      full_page_writes: "off",
      max_connections: "300",
      // It spent a twentieth of the CPU time of a run on hundreds of databases that live for seconds.
      autovacuum: "off",
      // Copies each file of a template within the kernel: a tenth less CPU time for each database.
      file_copy_method: "clone",
    };
    await using server = await startEmbeddedPostgres({
      directory: join(directory, "postgres"),
      log: () => undefined,
      settings,
    });
    const { host, port, user, password, database } = server.connection;
    const url = `postgresql://${user}:${password}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`;
    const options = [
      "--conditions=source",
      `--max-semi-space-size=${youngGenerationMiB}`,
      // Where `localhost` has two addresses, Node gives up the first after 250 ms, which may be the only one that listens.
      `--network-family-autoselection-attempt-timeout=${hangMs}`,
      "--test",
      `--test-concurrency=${groupsTotal}`,
      `--test-timeout=${hangMs}`,
    ];
    return await run(process.execPath, [...options, ...writeGroups(directory)], {
      TEST_DATABASE_URL: url,
      NODE_COMPILE_CACHE: compileCache,
      ...(runsPrograms(directory) && { TEST_CLUSTER_PARENT: directory }),
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

// Tests check the modes of files; and if root runs them, another user has to reach what they make.
process.umask(0o022);
if (files.length === 0) throw new Error(`no test file matches ${wanted.join(" ")}`);
const checked = patterns.length > 0 ? 0 : await run("npm", ["run", "--silent", "check"]);
process.exitCode = (await runTests()) || checked;
if (checked !== 0) console.error("npm run check failed: what it found is above the tests");
