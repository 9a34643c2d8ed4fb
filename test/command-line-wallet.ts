// The wallet's own command line, one process for each verb, beside a demo world of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Identity } from "./raw-wallet.ts";

export interface CommandLineWallet extends AsyncDisposable {
  /** Runs `wallet <args> --as <name>`. */
  run(name: string, ...args: string[]): Promise<Ran>;
}

interface Ran {
  /** Exit status: 0; 1 for a refusal; 2 where the digits of the page are needed. */
  readonly status: number;
  /** The JSON value on standard output; null when there is none. */
  readonly value: Record<string, unknown> | null;
  /** Standard error. */
  readonly line: string;
}

const program = new URL("../packages/wallet/src/cli.ts", import.meta.url).pathname;

/** A wallet that holds these identities and knows the broker at `baseUrl`, as after a first `npm start`. */
export async function openCommandLineWallet(
  baseUrl: string,
  identities: Readonly<Record<string, Identity>>,
): Promise<CommandLineWallet> {
  const directory = await mkdtemp(join(tmpdir(), "svc-wallet-"));
  const entries = Object.entries(identities).map(([name, { address, privateKey }]) => [
    name,
    { address, privateKey: `0x${Buffer.from(privateKey).toString("hex")}` },
  ]);
  const demo = { baseUrl, identities: Object.fromEntries(entries) as unknown };
  await writeFile(join(directory, "demo.json"), JSON.stringify(demo), { mode: 0o600 });
  return {
    async run(name, ...args) {
      const child = spawn(
        process.execPath,
        ["--conditions=source", program, ...args, "--as", name],
        { env: { ...process.env, DATA_DIR: directory }, stdio: ["ignore", "pipe", "pipe"] },
      );
      const [out, line, [status]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, "close") as Promise<[number]>,
      ]);
      const value = out === "" ? null : (JSON.parse(out) as Record<string, unknown>);
      return { status, value, line };
    },
    [Symbol.asyncDispose]: async () => rm(directory, { recursive: true, force: true }),
  };
}
