// The compiler as forge calls it: `--version`, or `--standard-json` with the input on stdin.
import { readFileSync } from "node:fs";
import { compile, version } from "./compiler.ts";

const about = `solc, the solidity compiler commandline interface\nVersion: ${version}\n`;
process.stdout.write(
  process.argv.includes("--version") ? about : await compile(readFileSync(0, "utf8")),
);
