import { runCommandLine } from "./index.ts";

/** The exit status and the output of a call of the command line. */
export interface Called {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

/** Calls the command line within this process. */
export async function callCommandLine(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<Called> {
  const written = { out: "", err: "" };
  const status = await runCommandLine(args, {
    out: (part) => (written.out += part),
    err: (part) => (written.err += part),
    environment,
  });
  return { status, ...written };
}
