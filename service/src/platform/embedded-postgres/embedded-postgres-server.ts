import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { type BoundProcess, startBoundProcess } from "../process/bound-process.ts";
import { type Connection, retryEveryMs, tryConnection } from "./embedded-postgres-connection.ts";
import {
  EmbeddedPostgresFault,
  findServerPid,
  type Home,
  socketPort,
} from "./embedded-postgres-files.ts";
import { openStartPatience } from "./start-patience.ts";

/** Another live process runs the server of this directory, and was left alone. */
export class EmbeddedPostgresInUse extends Error {
  constructor(directory: string) {
    super(
      `another process already runs the database in ${directory}; stop it first, or choose another DATA_DIR`,
    );
    this.name = "EmbeddedPostgresInUse";
  }
}

/** How long a start waits for a server whose process was killed, to finish its shutdown. */
const orphanTriesMax = 400;

/** Marks the servers started here in the list of processes. */
const marker = "cluster_name=svc-embedded";

/** For a small machine, without giving up durability: whatever was acknowledged survives a crash. */
const settings = [
  marker,
  "listen_addresses=",
  `port=${socketPort}`,
  "unix_socket_permissions=0700",
  "fsync=on",
  "synchronous_commit=on",
  "full_page_writes=on",
  "max_connections=100",
  "shared_buffers=128MB",
  "io_method=sync",
  "max_logical_replication_workers=0",
  "jit=off",
  "timezone=UTC",
  // Errors of statements belong to the caller. DETAIL lines and statement texts would put personal data into the log.
  "log_min_messages=warning",
  "log_min_error_statement=panic",
  "log_error_verbosity=terse",
  "log_line_prefix=",
  "log_checkpoints=off",
  "logging_collector=off",
  "log_destination=stderr",
];

/** How a server is to be started on initialised data. */
export interface Plan {
  readonly home: Home;
  readonly connection: Connection;
  readonly binaries: string;
  /** The process id in the lock file of the data if it is not a server's; null for none. */
  readonly stalePid: number | null;
  /** `name=value`: settings of the caller, which replace ours. */
  readonly chosen: readonly string[];
  /** Ends a start that is under way, which after a crash may take minutes. */
  readonly over?: AbortSignal;
}

/**
 * Starts one server process, and waits until it accepts connections.
 *
 * @throws {EmbeddedPostgresFault} if it does not start, or sessions of a killed one still use the data after 20 s
 */
export async function startServer(plan: Plan, log: (line: string) => void): Promise<BoundProcess> {
  for (let tries = 0; tries < orphanTriesMax; tries += 1) {
    const outcome = await tryStart(plan, log);
    if (!("refused" in outcome)) return outcome;
    // Sessions of a server that was killed end by themselves, a moment later.
    if (!/pre-existing shared memory block/.test(outcome.refused))
      throw new EmbeddedPostgresFault(`PostgreSQL did not start: ${outcome.refused}`);
    await delay(retryEveryMs);
  }
  throw new EmbeddedPostgresFault(`sessions of a killed PostgreSQL still use ${plan.home.data}`);
}

async function tryStart(
  plan: Plan,
  log: (line: string) => void,
): Promise<BoundProcess | { refused: string }> {
  const ready = Promise.withResolvers<"ready">();
  using patience = openStartPatience(plan.over);
  const lines: string[] = [];
  // The value is a list whose entries may be quoted; a path may hold a comma.
  const socket = `unix_socket_directories="${plan.connection.host.replaceAll('"', '""')}"`;
  const command = [join(plan.binaries, "postgres"), "-D", plan.home.data];
  const server = startBoundProcess(
    [...command, ...[...settings, ...plan.chosen, socket].flatMap((each) => ["-c", each])],
    {
      account: plan.home.account,
      // pg_ctl's own way to say which process id in a lock file is not a server: postgres still checks shared memory.
      ...(plan.stalePid === null
        ? {}
        : { environment: { PG_GRANDPARENT_PID: String(plan.stalePid) } }),
      log(line) {
        log(line);
        patience.hear(line);
        if (lines.length < 20) lines.push(line);
        if (line.includes("database system is ready to accept connections")) ready.resolve("ready");
      },
    },
  );
  try {
    const outcome = await Promise.race([ready.promise, server.exited, patience.late]);
    if (outcome === "ready" && (await tryConnection(plan.connection)) === "ready") return server;
    if (typeof outcome === "string") await server.stop();
    return { refused: `${outcome}: ${lines.join("; ")}` };
  } catch (error) {
    await server.stop().catch(() => undefined);
    throw error;
  }
}

/**
 * Waits until the server of a killed process is gone: its shell is stopping it. If the shell was killed too, it is told
 * to stop here. Returns the process id in the lock file if it is not that of a server (after a crash, or because the id
 * has been reused).
 *
 * @throws {EmbeddedPostgresInUse} when the server on these data was started by other means
 */
export async function waitForOrphan(home: Home, directory: string): Promise<number | null> {
  const pid = await findServerPid(home.data);
  if (pid === null) return null;
  for (let tries = 0; tries < orphanTriesMax; tries += 1) {
    const command = await commandOf(pid);
    if (!command.includes(home.data)) return pid;
    if (!command.includes(marker)) throw new EmbeddedPostgresInUse(directory);
    if (tries === 0) signal(pid, "SIGINT");
    if (tries === orphanTriesMax / 2) signal(pid, "SIGQUIT");
    await delay(retryEveryMs);
  }
  throw new EmbeddedPostgresFault(`PostgreSQL (process ${pid}) does not stop; end it by hand`);
}

/** The command line of a process; empty when there is none. */
async function commandOf(pid: number): Promise<string> {
  try {
    if (process.platform === "linux") return await readFile(`/proc/${pid}/cmdline`, "utf8");
    return (await promisify(execFile)("ps", ["-ww", "-o", "command=", "-p", String(pid)])).stdout;
  } catch {
    return "";
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Already gone.
  }
}
