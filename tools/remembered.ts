import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const known = new Map<string, Promise<Uint8Array>>();
let directory = "";

/** From now on values are shared with all processes that name the same directory. */
export function rememberIn(path: string): void {
  directory = path;
}

/** Computes a value once in a test run. @param name that of the file which holds it */
export async function remember(
  name: string,
  compute: () => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const found = known.get(name) ?? readOrCompute(join(directory, name), compute);
  known.set(name, found);
  return found;
}

async function readOrCompute(
  path: string,
  compute: () => Promise<Uint8Array>,
): Promise<Uint8Array> {
  if (existsSync(path)) return readFileSync(path);
  const computed = await compute();
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, computed);
  renameSync(draft, path);
  return computed;
}
