// The wallet's own command line beside a demo world of its own.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callWallet } from "../packages/wallet/test/call-wallet.ts";
import type { Identity } from "./raw-wallet.ts";

export interface CommandLineWallet extends AsyncDisposable {
  /** Runs `wallet <args> --as <name>`. */
  run(name: string, ...args: string[]): Promise<Ran>;
}

interface Ran {
  /** Exit status: 0; 1 for a refusal; 2 where the digits of the page are needed. */
  readonly status: number | null;
  /** The JSON value on standard output; null when there is none. */
  readonly value: Record<string, unknown> | null;
  /** Standard error. */
  readonly line: string;
}

/** Runs with the code that a page shows, and again with the next one if it has expired: a code lives for seconds. */
export async function runWithCode<R extends Pick<Ran, "line">>(
  read: () => Promise<string>,
  run: (link: string) => Promise<R>,
): Promise<R & { readonly link: string }> {
  for (;;) {
    const link = await read();
    const ran = await run(link);
    if (!/code_expired/.test(ran.line)) return { ...ran, link };
  }
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
      const { status, out, err: line } = await callWallet([...args, "--as", name], directory);
      const value = out === "" ? null : (JSON.parse(out) as Record<string, unknown>);
      return { status, value, line };
    },
    [Symbol.asyncDispose]: async () => rm(directory, { recursive: true, force: true }),
  };
}
