// The compiler as forge calls it: `--version`, or `--standard-json` with the input on stdin.
import { readFileSync } from "node:fs";
import solc from "solc";

process.stdout.write(
  process.argv.includes("--version")
    ? `solc, the solidity compiler commandline interface\nVersion: ${String(solc.version())}\n`
    : String(solc.compile(readFileSync(0, "utf8"))),
);
