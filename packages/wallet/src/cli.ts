// The wallet without a screen: `npm run wallet -- <verb>`.
import { readEnvironment } from "./command-line/environment.ts";
import { runCommandLine } from "./command-line/run.ts";

process.exitCode = await runCommandLine(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  environment: readEnvironment(),
});
