// `svc user delete` on the database of a world, in this process.
import { runCommandLine } from "../service/src/command-line/index.ts";
import type { World } from "./world.ts";

/** @returns the exit status, and all that was printed */
export async function deleteUser(
  { ctx }: Pick<World, "ctx">,
  address: string,
  options: readonly string[] = [],
): Promise<[status: number, said: string]> {
  const said: string[] = [];
  const output = { out: (text: string) => said.push(text), err: (text: string) => said.push(text) };
  const known = process.env["DATABASE_URL"];
  Object.assign(process.env, {
    DATABASE_URL: ctx.config.databaseUrl,
    MASTER_KEY: "11".repeat(32),
    LOG_LEVEL: "silent",
  });
  const status = await runCommandLine(["user", "delete", address, "--json", ...options], output);
  if (known === undefined) delete process.env["DATABASE_URL"];
  return [status, said.join("")];
}
