// The one program of the service: `serve` and the operator's verbs.
import { runCommandLine } from "./command-line/index.ts";
import { outliveReaders } from "./platform/process/closed-pipe.ts";

let isLossTold = false;
outliveReaders(() => isLossTold);
process.exitCode = await runCommandLine(process.argv.slice(2), {
  out(text, isToldOnce = false) {
    isLossTold = isToldOnce;
    process.stdout.write(text);
  },
  err: (text) => process.stderr.write(text),
  ...(process.stderr.isTTY && { watched: (text: string) => process.stderr.write(text) }),
});
