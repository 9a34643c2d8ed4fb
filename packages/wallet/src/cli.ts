// The wallet without a screen: `npm run wallet -- <verb>`.
import { readEnvironment } from "./command-line/environment.ts";
import { runCommandLine } from "./command-line/run.ts";

// The reader may close the pipe early, as `head` does: what was signed and sent stays so, and the status says how it
// went. But if the result is lost in another way, as on a full disk, or is shown only once, nobody must believe that it
// was written.
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
