// Runs several test files in one process, and is the `node:test` that they import: see `runTestFiles`.
import asyncHooks from "node:async_hooks";
import { writeFileSync } from "node:fs";
import { flushCompileCache, registerHooks } from "node:module";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { resolveSourcesByName } from "../service/src/platform/process/source-imports.ts";
import { rememberIn } from "./remembered.ts";

const runner = await loadRunner();

type Hook = () => unknown;

/** The name of the file whose tests run, and of the test that ends it. */
let current = "";
let endings: Hook[] = [];
/** How many tests the file has defined. */
let defined = 0;

/** The runner has one root for all files, so this limits a hook to the tests of the file that registers it. */
function ofThisFile(hook: Hook): (test: { readonly name: string }) => Promise<unknown> {
  const file = current;
  return async ({ name }) => (file === current && name !== file ? hook() : undefined);
}

export const { before, describe, mock } = runner;
export const test = new Proxy(runner.test, {
  apply(target, self, given: Parameters<typeof runner.test>) {
    defined += 1;
    return Reflect.apply(target, self, given);
  },
});
export const after = (hook: Hook): void => void endings.push(hook);
export const beforeEach = (hook: Hook): void => runner.beforeEach(ofThisFile(hook));
export const afterEach = (hook: Hook): void => runner.afterEach(ofThisFile(hook));

/**
 * The runner tracks every promise, to know which test caused an error that nobody awaits. That takes a fifteenth of the
 * CPU time of a run, so it is switched off, and `reportUnawaited` reports such errors.
 */
async function loadRunner() {
  const { createHook } = asyncHooks;
  asyncHooks.createHook = () => {
    const hook = { enable: () => hook, disable: () => hook };
    return hook;
  };
  try {
    return await import("node:test");
  } finally {
    asyncHooks.createHook = createHook;
  }
}

/** The runner would report such an error without its stack and its time, and before the first test not at all. */
function reportUnawaited(error: unknown): void {
  process.exitCode = 1;
  console.error(`nobody awaited this error, told while ${current} ran:`, error);
}

/** A test's `process.exit(0)` would otherwise pass, although the tests after it never ran. */
function reportEarlyEnd(): void {
  process.exitCode = 1;
  console.error(`the process ended while ${current} ran`);
}

resolveSourcesByName();
registerHooks({
  resolve(specifier, context, next) {
    const { parentURL = "" } = context;
    if (specifier === "node:test" && parentURL !== import.meta.url)
      return { url: import.meta.url, shortCircuit: true };
    if (specifier === "#scrypt" && parentURL.endsWith("/passphrase-cipher.ts"))
      return { url: import.meta.resolve("./remembered-scrypt.ts"), shortCircuit: true };
    if (specifier === "node:crypto" && /\/(?:signing|attestation)-keys\.ts$/.test(parentURL))
      return { url: import.meta.resolve("./remembered-keys.ts"), shortCircuit: true };
    return next(specifier, context);
  },
});

/** What the processes of a run share. */
export interface SharedFiles {
  readonly root: string;
  /** Absolute paths, in the order in which they are begun. */
  readonly files: readonly string[];
  /** Empty at first. The process that creates the file `<n>` in it runs test file n. Remembered values lie there, too. */
  readonly takenDirectory: string;
}

/**
 * Runs the test files that no other process of the run has taken, one after the other in this process, so that shared
 * code is loaded and warmed up once. Hooks hold for their own file; its `after` runs at its end, inside a test that is
 * named after the file. A file that throws while it is loaded, or defines no test, fails that test and not the files
 * after it. One whose `before` fails, that never ends, or that ends the process also fails the files after it.
 */
export async function runTestFiles({ root, files, takenDirectory }: SharedFiles): Promise<void> {
  rememberIn(takenDirectory);
  process.on("uncaughtException", reportUnawaited);
  process.on("unhandledRejection", reportUnawaited);
  process.on("exit", reportEarlyEnd);
  for (const [index, file] of files.entries()) {
    if (take(join(takenDirectory, String(index)))) await runTestFile(relative(root, file), file);
  }
  process.off("exit", reportEarlyEnd);
}

function take(path: string): boolean {
  try {
    writeFileSync(path, "", { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function runTestFile(name: string, file: string): Promise<void> {
  current = name;
  endings = [];
  defined = 0;
  const faults: unknown[] = [];
  const attempt = async (step: Hook): Promise<void> => {
    try {
      await step();
    } catch (error) {
      faults.push(error);
    }
  };
  await attempt(async () => import(pathToFileURL(file).href));
  if (defined === 0 && faults.length === 0) faults.push(new Error("it defines no test"));
  // Other groups, and the servers that tests start, load the same modules meanwhile.
  flushCompileCache();
  await runner.test(name, async () => {
    for (const ending of endings) await attempt(ending);
    if (faults.length > 1) throw new AggregateError(faults, "several things failed");
    if (faults.length === 1) throw faults[0];
  });
}
