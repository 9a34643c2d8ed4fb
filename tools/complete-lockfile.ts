// `npm run lock`: writes package-lock.json, complete for every platform.
//
// Tools with native parts list one optional package for each platform. A registry mirror may lack those of platforms it does
// not serve; npm then leaves them out of the lock file, and `npm ci` refuses a lock file that lacks them. An entry without an
// address is all that `npm ci` asks for on every other platform. On its own platform such a package would be installed
// unexamined, so an entry without a hash is left to be asked for again, and `tools/tidy.test.ts` takes none.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface Entry {
  version?: string;
  integrity?: string;
  link?: boolean;
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

interface Lock {
  packages: Record<string, Entry>;
}

function readLock(): Lock {
  return JSON.parse(readFileSync(path, "utf8")) as Lock;
}

function writeLock(lock: Lock): void {
  const sorted = Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const text = JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2);
  writeFileSync(path, `${text}\n`);
}

/** npm keeps an entry that has no hash as it is, and adds one that is missing with its hash. */
function withoutUnpinned({ packages, ...lock }: Lock): Lock {
  const kept = Object.entries(packages).filter(
    ([place, { integrity, link }]) =>
      !place.includes("node_modules/") || link === true || integrity !== undefined,
  );
  return { ...lock, packages: Object.fromEntries(kept) };
}

writeLock(withoutUnpinned(readLock()));
execFileSync("npm", ["install", "--package-lock-only", "--ignore-scripts", "--no-audit"], {
  stdio: "inherit",
});
const lock = readLock();
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
writeLock(lock);
console.log(`${added.length} entries for other platforms without a hash`);
