// The one program of the service: `serve` and the operator's verbs.
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { outliveReaders } from "./platform/closed-pipe.ts";

// There is no build: what was stripped and compiled once is kept, which halves the start and saves 20 MiB. Beside the
// packages, because whoever could write there could change the program anyway; where it cannot be written there is none.
enableCompileCache(join(import.meta.dirname, "..", "..", "node_modules", ".cache", "svc"));
const { runCommandLine } = await import("./command-line/index.ts");

outliveReaders();
process.exitCode = await runCommandLine(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
});
