// The wallet without a screen: `npm run wallet -- <verb>`.
import { readEnvironment } from "./command-line/environment.ts";
import { runCommandLine } from "./command-line/run.ts";

// Whoever reads may go, as `head` does: what was signed and sent stays so, and the status says how it went. Where the
// result is lost otherwise, as on a full disk, or was told once, nobody is to take it for written.
let isLossTold = false;
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", ({ code }: NodeJS.ErrnoException) => {
    if (code === "EPIPE" && !isLossTold) return;
    process.once("exit", () => (process.exitCode = 1));
    if (stream === process.stdout)
      process.stderr.write(
        `wallet: what was done stands, but its result cannot be written (${code})\n`,
      );
  });
}

process.exitCode = await runCommandLine(process.argv.slice(2), {
  out(text, isToldOnce = false) {
    isLossTold = isToldOnce;
    process.stdout.write(text);
  },
  err: (text) => process.stderr.write(text),
  environment: readEnvironment(),
});
