import assert from "node:assert/strict";
import { runCommandLine } from "../src/command-line/run.ts";

/** What one call of the wallet's command line did. */
export interface Transcript {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a call within this process. Nothing is kept between two of them but what lies in the data directory. */
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

/** The one JSON value that a call printed, which went well. */
export function valueOf({ status, out, err }: Transcript): Record<string, unknown> {
  assert.deepEqual({ status, err }, { status: 0, err: "" });
  return JSON.parse(out) as Record<string, unknown>;
}
