// The wallet's own command line beside a demo world of its own. Nothing is kept between two calls but what lies on disk.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommandLine } from "../packages/wallet/src/command-line/run.ts";
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
      const written = { out: "", line: "" };
      const status = await runCommandLine([...args, "--as", name], {
        out: (part) => (written.out += part),
        err: (part) => (written.line += part),
        environment: { dataDirectory: directory, passphrase: undefined },
      });
      const { out, line } = written;
      const value = out === "" ? null : (JSON.parse(out) as Record<string, unknown>);
      return { status, value, line };
    },
    [Symbol.asyncDispose]: async () => rm(directory, { recursive: true, force: true }),
  };
}
