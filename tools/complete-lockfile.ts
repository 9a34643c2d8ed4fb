// `npm run lock`: writes package-lock.json, complete for every platform.
//
// Tools with native parts list one optional package for each platform. A registry mirror may lack those of platforms it does
// not serve; npm then leaves them out of the lock file, and `npm ci` refuses a lock file that lacks them. An entry without an
// address is all that `npm ci` asks for on every other platform.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface Entry {
  version?: string;
  optional?: boolean;
  dev?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

const path = join(import.meta.dirname, "../package-lock.json");
const systems = ["android", "darwin", "freebsd", "linux", "openharmony", "win32"];
const processors = [
  "arm64",
  "arm",
  "x64",
  "ppc64",
  "riscv64",
  "s390x",
  "ia32",
  "loong64",
  "wasm32",
];

/** What the package's own manifest would say, as its name tells: `@oxlint/binding-linux-arm64-musl`. */
function platformOf(name: string): Pick<Entry, "os" | "cpu" | "libc"> | null {
  const words = name.replace(/amd64$/, "x64").split(/[-/]/);
  const system = systems.find((each) => words.includes(each));
  const processor = processors.find((each) => words.includes(each));
  if (system === undefined || processor === undefined) return null;
  const platform = { os: [system], cpu: [processor] };
  if (words.includes("musl")) return { ...platform, libc: ["musl"] };
  return words.includes("gnu") ? { ...platform, libc: ["glibc"] } : platform;
}

execFileSync("npm", ["install", "--package-lock-only", "--ignore-scripts", "--no-audit"], {
  stdio: "inherit",
});
const lock = JSON.parse(readFileSync(path, "utf8")) as { packages: Record<string, Entry> };
const added: string[] = [];
for (const parent of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const platform = platformOf(name);
    const place = `node_modules/${name}`;
    if (platform === null || lock.packages[place] !== undefined || !/^\d/.test(version)) continue;
    lock.packages[place] = { version, ...platform, dev: parent.dev === true, optional: true };
    added.push(`${name}@${version}`);
  }
}
const sorted = Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(
  path,
  `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`,
);
console.log(`${added.length} entries for other platforms`);
