import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { openIpc } from "./ipc.ts";

/** The files of the embedded chain's node, in a directory of mode 0700. */
export interface NodeDirectory {
  readonly path: string;
  readonly socketPath: string;
  readonly genesisPath: string;
}

const socketName = "node.ipc";
const directoryPrefix = "svc-chain-";
/** The path of a Unix socket may have this many bytes on every system. */
const socketPathBytesMax = 100;

/** The system's directory for temporary files, then `/tmp`. */
const parents = (): string[] => [...new Set([resolve(tmpdir()), "/tmp"])];

/**
 * Makes a directory for the node. It is not in the data directory, whose path may be too long for a socket.
 *
 * @throws {Error} that names the directories that were tried and the last failure
 */
export function makeNodeDirectory(genesis: object): NodeDirectory {
  let fault: unknown = new Error("their paths are too long");
  for (const parent of parents()) {
    const longest = join(parent, `${directoryPrefix}XXXXXX`, socketName);
    if (Buffer.byteLength(longest) > socketPathBytesMax) continue;
    try {
      return makeBelow(parent, genesis);
    } catch (error) {
      fault = error;
    }
  }
  const reason = fault instanceof Error ? fault.message : String(fault);
  const tried = parents().join(" and ");
  throw new Error(`no directory for its files (TMPDIR), tried ${tried}: ${reason}`, {
    cause: fault,
  });
}

function makeBelow(parent: string, genesis: object): NodeDirectory {
  const path = mkdtempSync(join(parent, directoryPrefix));
  try {
    chmodSync(path, 0o700);
    const genesisPath = join(path, "genesis.json");
    writeFileSync(genesisPath, JSON.stringify(genesis), { mode: 0o600 });
    return { path, socketPath: join(path, socketName), genesisPath };
  } catch (error) {
    rmSync(path, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Removes the files of a node whose process was killed, given the path of its socket. If a node answers there, this
 * database is a copy of another installation's, and the files belong to that one.
 */
export async function removeLeftovers(socketPath: string | null): Promise<void> {
  if (socketPath === null) return;
  const directory = dirname(socketPath);
  const isNode =
    basename(socketPath) === socketName &&
    parents().includes(dirname(directory)) &&
    basename(directory).startsWith(directoryPrefix);
  if (!isNode) return;
  const ipc = await openIpc(socketPath).catch(() => null);
  ipc?.close();
  if (ipc !== null) return;
  // Fails, for example, if they belong to another user.
  await rm(directory, { recursive: true, force: true }).catch(() => undefined);
}
