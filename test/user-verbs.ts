// The verbs of `svc user` on the database of a world, in this process.
import { runCommandLine } from "../service/src/command-line/index.ts";
import type { World } from "./world.ts";

/** The exit status, and all that was printed. */
type Said = [status: number, said: string];

export async function deleteUser(
  world: Pick<World, "ctx">,
  address: string,
  options: readonly string[] = [],
): Promise<Said> {
  return run(world, ["delete", address, ...options]);
}

export async function showUser(world: Pick<World, "ctx">, address: string): Promise<Said> {
  return run(world, ["show", address]);
}

export async function logOutUser(world: Pick<World, "ctx">, address: string): Promise<Said> {
  return run(world, ["logout", address]);
}

export async function logOutAll(
  world: Pick<World, "ctx">,
  options: readonly string[] = [],
): Promise<Said> {
  return run(world, ["logout-all", ...options]);
}

async function run({ ctx }: Pick<World, "ctx">, words: readonly string[]): Promise<Said> {
  const said: string[] = [];
  const output = { out: (text: string) => said.push(text), err: (text: string) => said.push(text) };
  const known = process.env["DATABASE_URL"];
  Object.assign(process.env, {
    DATABASE_URL: ctx.config.databaseUrl,
    MASTER_KEY: "11".repeat(32),
    LOG_LEVEL: "silent",
  });
  const status = await runCommandLine(["user", ...words, "--json"], output);
  if (known === undefined) delete process.env["DATABASE_URL"];
  return [status, said.join("")];
}
