// Runs forge with the compiler in node_modules: `node --conditions=source contracts/forge.ts test`. Offline forge
// cannot download a compiler, but it accepts an executable that answers `--version` and `--standard-json`.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

export interface ForgeRun {
  exitCode: number;
  output: string;
}

/**
 * Runs one forge command in this folder and waits for it.
 *
 * @param args e.g. `["test", "--match-test", "attest"]`
 * @throws {Error} if there is no forge for this platform
 */
export function runForge(args: readonly string[]): ForgeRun {
  const directory = mkdtempSync(join(tmpdir(), "svc-forge-"));
  try {
    const compiler = join(directory, "solc");
    const source = join(import.meta.dirname, "solc.ts");
    writeFileSync(
      compiler,
      `#!/bin/sh\nexec ${quoted(process.execPath)} --conditions=source ${quoted(source)} "$@"\n`,
    );
    chmodSync(compiler, 0o755);
    const { status, stdout, stderr, error } = spawnSync(
      forgeBinary(),
      [...args, ...rootOption(args)],
      {
        cwd: root,
        env: {
          PATH: "/usr/bin:/bin",
          HOME: directory,
          FOUNDRY_CONFIG: join(import.meta.dirname, "foundry.toml"),
          FOUNDRY_SOLC: compiler,
          NO_COLOR: "1",
        },
        encoding: "utf8",
      },
    );
    if (error !== undefined) throw error;
    return { exitCode: status ?? 1, output: stdout + stderr };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Without it forge takes the nearest git repository. */
const rootOption = ([command = ""]: readonly string[]): string[] =>
  ["build", "test", "coverage", "snapshot", "fmt"].includes(command) ? ["--root", root] : [];

/** The binary itself, since the wrapper package searches for it in several other places. */
function forgeBinary(): string {
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const name = `@foundry-rs/forge-${process.platform}-${architecture}`;
  return createRequire(import.meta.url).resolve(`${name}/bin/forge`);
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

if (import.meta.main) {
  const { exitCode, output } = runForge(process.argv.slice(2));
  process.stdout.write(output);
  process.exitCode = exitCode;
}
