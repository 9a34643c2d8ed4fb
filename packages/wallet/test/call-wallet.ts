import assert from "node:assert/strict";
import { runCommandLine } from "../src/command-line/run.ts";

/** What one call of the wallet's command line did. */
export interface Transcript {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a call within this process. Calls share nothing but the data directory. */
export async function callWallet(
  args: readonly string[],
  dataDirectory: string,
  {
    isWatched = false,
    isCut = false,
    passphrase,
  }: { isWatched?: boolean; isCut?: boolean; passphrase?: string } = {},
): Promise<Transcript> {
  const written = { out: "", err: "" };
  const status = await runCommandLine(args, {
    async out(part) {
      if (!isCut) written.out += part;
      return !isCut;
    },
    err: (part) => (written.err += part),
    isWatched,
    environment: { dataDirectory, passphrase },
  });
  return { status, ...written };
}

/** The JSON value that a successful call printed. */
export function valueOf({ status, out, err }: Transcript): Record<string, unknown> {
  assert.deepEqual({ status, err }, { status: 0, err: "" });
  return JSON.parse(out) as Record<string, unknown>;
}
