// `npm test`: the checks of the house, then every test file, on one PostgreSQL that lives as long as this run.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../service/src/platform/embedded-postgres.ts";

const root = join(import.meta.dirname, "..");
/** Every test file is a process of its own; most of them load the whole service. */
const compileCache = join(root, "node_modules", ".cache", "svc");
const patterns = process.argv.slice(2);
const wanted =
  patterns.length > 0
    ? patterns
    : ["{packages,contracts,service,apps,demo,test,tools}/**/*.test.ts"];
const files = globSync(wanted, { cwd: root, exclude: ["**/node_modules/**"] }).toSorted();

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
  const directory = mkdtempSync(join(tmpdir(), "svc-test-"));
  // As root the server runs as another user; where that one cannot pass, its data would stay behind elsewhere.
  chmodSync(directory, 0o711);
  try {
    // What a test acknowledged does not have to survive a power cut; tests of durability start their own server.
    const settings = {
      fsync: "off",
      synchronous_commit: "off",
      full_page_writes: "off",
      max_connections: "300",
    };
    await using server = await startEmbeddedPostgres({
      directory: join(directory, "postgres"),
      log: () => undefined,
      settings,
    });
    const { host, port, user, password, database } = server.connection;
    const url = `postgresql://${user}:${password}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`;
    return await run(
      process.execPath,
      ["--conditions=source", "--test", "--test-concurrency=3", "--test-timeout=240000", ...files],
      { TEST_DATABASE_URL: url, NODE_COMPILE_CACHE: compileCache },
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

if (files.length === 0) throw new Error(`no test file matches ${wanted.join(" ")}`);
const checked = patterns.length > 0 ? 0 : await run("npm", ["run", "--silent", "check"]);
process.exitCode = (await runTests()) || checked;
