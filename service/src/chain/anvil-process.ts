import { randomInt } from "node:crypto";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Address } from "@svc/protocol";
import { type BoundProcess, startBoundProcess } from "../platform/process/bound-process.ts";
import { type Ipc, openIpc } from "./ipc.ts";
import { makeNodeDirectory, type NodeDirectory } from "./node-directory.ts";

/** The node of the embedded chain. */
export interface AnvilProcess extends AsyncDisposable {
  readonly ipc: Ipc;
  readonly path: string;
  /** Resolves with its exit status. */
  readonly exited: Promise<number>;
}

export interface Genesis {
  readonly chainId: number;
  /** Unix seconds. */
  readonly time: number;
  /** The account that gets all the coin. */
  readonly faucet: Address;
}

const startTriesMax = 2_000;
const startPauseMs = 5;
/** A billion coins of 18 decimals. */
const faucetWei = 10n ** 27n;

/**
 * The system contract of EIP-2935, which keeps block hashes. The genesis block gives it no code: with it, each block
 * after the first 8,191 takes 7.5 ms more.
 */
const historyAccount = "0x0000F90827F1C53a10cb7A02335B175320002935";

/**
 * Starts a node with an empty chain. It listens on a Unix socket in a directory of mode 0700. anvil cannot be kept from
 * listening on TCP too, so it gets a random port and, on Linux, a random loopback address, which are not published. It
 * mines only on request, and ends however this process ends.
 *
 * @throws if there is no binary for this platform, or it does not start
 */
export async function startAnvilProcess(
  genesis: Genesis,
  log: (line: string) => void,
): Promise<AnvilProcess> {
  const binary = binaryPath();
  const directory = makeNodeDirectory(genesisOf(genesis));
  const { socketPath: path } = directory;
  const child = startBoundProcess([binary, ...flagsOf(genesis, directory)], {
    account: null,
    log,
    environment: { HOME: directory.path },
  });
  child.unref();
  const remove = (): void => rmSync(directory.path, { recursive: true, force: true });
  try {
    const ipc = await connect(path, child);
    return {
      ipc,
      path,
      exited: child.exited,
      async [Symbol.asyncDispose]() {
        ipc.close();
        await child.stop();
        remove();
      },
    };
  } catch (error) {
    // Fails if the process could not be started at all.
    await child.stop().catch(() => undefined);
    remove();
    throw error;
  }
}

async function connect(path: string, child: BoundProcess): Promise<Ipc> {
  const gone = child.exited.then((status) => {
    throw new Error(`the embedded chain ended with status ${status} while it started`);
  });
  gone.catch(() => undefined);
  for (let tries = 1; ; tries++) {
    try {
      return await openIpc(path);
    } catch (error) {
      if (tries === startTriesMax) throw error;
      await Promise.race([delay(startPauseMs), gone]);
    }
  }
}

function flagsOf(genesis: Genesis, { socketPath, genesisPath }: NodeDirectory) {
  return [
    ["--silent", "--host", loopbackAddress(), "--port", "0", "--ipc", socketPath, "--no-cors"],
    ["--chain-id", String(genesis.chainId), "--accounts", "0", "--init", genesisPath],
    ["--hardfork", "osaka", "--no-mining", "--order", "fifo", "--prune-history"],
    ["--base-fee", "0", "--gas-price", "0", "--disable-min-priority-fee"],
    ["--gas-limit", "1000000000000", "--no-request-size-limit"],
  ].flat();
}

/**
 * Any web page may open web sockets to this machine, and the node does not check their origin. A page could find the
 * port by trying all of them, but not together with a random address of 127.0.0.0/8, all of which is loopback on Linux.
 */
function loopbackAddress(): string {
  if (process.platform !== "linux") return "127.0.0.1";
  return `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;
}

function genesisOf({ chainId, time, faucet }: Genesis): object {
  const zero = `0x${"0".repeat(64)}`;
  return {
    config: { chainId },
    nonce: "0x0",
    timestamp: `0x${time.toString(16)}`,
    extraData: "0x",
    gasLimit: "0xe8d4a51000",
    difficulty: "0x0",
    mixHash: zero,
    coinbase: zero.slice(0, 42),
    alloc: {
      [historyAccount]: { balance: "0x0", code: "0x" },
      [faucet]: { balance: `0x${faucetWei.toString(16)}` },
    },
  };
}

/** The binary itself, not the package's wrapper script: if that were killed, its child would live on. */
function binaryPath(): string {
  const system = process.platform === "darwin" ? "darwin" : "linux";
  const architecture = process.arch === "arm64" ? "arm64" : "amd64";
  const name = `@foundry-rs/anvil-${system}-${architecture}`;
  try {
    const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`);
    return join(dirname(manifest), "bin", "anvil");
  } catch (error) {
    throw new Error(
      `${name} is not installed; run npm ci with optional dependencies, or set CHAIN_RPC_URL`,
      { cause: error },
    );
  }
}
