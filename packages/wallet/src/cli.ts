// The wallet without a screen: `npm run wallet -- <verb>`.
import { readEnvironment } from "./command-line/environment.ts";
import { runCommandLine } from "./command-line/run.ts";

// Whoever reads may go, as `head` does: what was signed and sent stays so, and the status says how it went.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

process.exitCode = await runCommandLine(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  environment: readEnvironment(),
});
