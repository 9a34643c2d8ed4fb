// The one program of the service: `serve` and the operator's verbs.
import { resolveSourcesByName } from "./platform/process/source-imports.ts";

resolveSourcesByName();
const { runCommandLine } = await import("./command-line/index.ts");
const { outliveReaders } = await import("./platform/process/closed-pipe.ts");

/** Whether the text being written cannot be shown again, such as a new secret. */
let isToldOnce = false;
outliveReaders(() => isToldOnce);
process.exitCode = await runCommandLine(process.argv.slice(2), {
  out(text, isOnce = false) {
    isToldOnce = isOnce;
    process.stdout.write(text);
  },
  err: (text) => process.stderr.write(text),
  ...(process.stderr.isTTY && { watched: (text: string) => process.stderr.write(text) }),
});
