// The compiler as forge calls it: `--version`, or `--standard-json` with the input on stdin.
import { readFileSync } from "node:fs";

/** The package has the version of its compiler, which takes half a second to load. */
async function answer(): Promise<string> {
  if (process.argv.includes("--version")) {
    const { version } = (await import("solc/package.json", { with: { type: "json" } })).default;
    return `solc, the solidity compiler commandline interface\nVersion: ${version}\n`;
  }
  const { default: solc } = await import("solc");
  return String(solc.compile(readFileSync(0, "utf8")));
}

process.stdout.write(await answer());
