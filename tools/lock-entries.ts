// What a lock file for every platform needs in addition to what npm writes, and what it must not have. Pure.

interface Entry {
  version?: string;
  integrity?: string;
  link?: boolean;
  optional?: boolean;
  dev?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  engines?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

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

/** The platform that a package is for, by its name (`@oxlint/binding-linux-arm64-musl`); null if it names none. */
function platformOf(name: string): Pick<Entry, "os" | "cpu" | "libc"> | null {
  const words = name.replace(/amd64$/, "x64").split(/[-/]/);
  const system = systems.find((each) => words.includes(each));
  const processor = processors.find((each) => words.includes(each));
  if (system === undefined || processor === undefined) return null;
  const platform = { os: [system], cpu: [processor] };
  if (words.includes("musl")) return { ...platform, libc: ["musl"] };
  return words.includes("gnu") ? { ...platform, libc: ["glibc"] } : platform;
}

export interface Lock {
  packages: Record<string, Entry>;
}

/** Removes entries without a hash: npm would leave them as they are, but adds a missing entry with its hash. */
export function withoutUnpinned({ packages, ...lock }: Lock): Lock {
  const kept = Object.entries(packages).filter(
    ([place, { integrity, link }]) =>
      !place.includes("node_modules/") || link === true || integrity !== undefined,
  );
  return { ...lock, packages: Object.fromEntries(kept) };
}

/**
 * Adds an entry for each optional package of a platform that has none.
 *
 * @returns the packages that were added
 */
export function addMissing(lock: Lock): string[] {
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
  return added;
}

/**
 * Removes what packages say of the versions of Node: npm would compare it with the Node that npm itself runs on, not with
 * the one that it installs here, and leave out optional packages that need a newer one.
 */
export function withoutEngines({ packages, ...lock }: Lock): Lock {
  const entries = Object.entries(packages).map(([place, { engines: _engines, ...entry }]) => [
    place,
    entry,
  ]);
  return { ...lock, packages: Object.fromEntries(entries) as Lock["packages"] };
}
