// Verbs of the operator's command line on the database of a world, in this process.
import { callCommandLine } from "../service/src/command-line/test-call.ts";
import type { World } from "./world.ts";

/** The exit status, and all that was printed. */
type Said = [status: number, said: string];

export async function deleteUser(
  world: Pick<World, "ctx">,
  address: string,
  options: readonly string[] = [],
): Promise<Said> {
  return runVerb(world, ["user", "delete", address, ...options]);
}

export async function showUser(world: Pick<World, "ctx">, address: string): Promise<Said> {
  return runVerb(world, ["user", "show", address]);
}

export async function logOutUser(world: Pick<World, "ctx">, address: string): Promise<Said> {
  return runVerb(world, ["user", "logout", address]);
}

export async function logOutAll(
  world: Pick<World, "ctx">,
  options: readonly string[] = [],
): Promise<Said> {
  return runVerb(world, ["user", "logout-all", ...options]);
}

/** @param more settings in addition to where the world's database is */
export async function runVerb(
  { ctx }: Pick<World, "ctx">,
  words: readonly string[],
  more: NodeJS.ProcessEnv = {},
): Promise<Said> {
  const { status, out, err } = await callCommandLine([...words, "--json"], {
    DATABASE_URL: ctx.config.databaseUrl ?? "",
    MASTER_KEY: "11".repeat(32),
    LOG_LEVEL: "silent",
    ...more,
  });
  return [status, out + err];
}
