// The wallet without a screen: `npm run wallet -- <verb>`.
import { readEnvironment } from "./command-line/environment.ts";
import { runCommandLine } from "./command-line/run.ts";

// A reader may close the pipe early, as `head` does: then the exit status still reports what was signed and sent. But if
// the result is lost in another way, such as by a full disk, or cannot be shown again, the status must be 1.
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
  async out(text, isToldOnce = false) {
    isLossTold = isToldOnce;
    return new Promise((resolve) => {
      process.stdout.write(text, (error) => resolve(error === null || error === undefined));
    });
  },
  err: (text) => process.stderr.write(text),
  isWatched: process.stderr.isTTY,
  environment: readEnvironment(),
});
