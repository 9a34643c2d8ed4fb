import { openContext, type OpenContext } from "../service/src/compose.ts";
import { parseConfig } from "../service/src/platform/config/config.ts";
import { openTestDatabase } from "../service/src/platform/database/test-database.ts";

/** A context on a fresh database, which goes with it. @param more settings beside those that every test needs */
export async function openTestContext(more: NodeJS.ProcessEnv = {}): Promise<OpenContext> {
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await openTestDatabase());
  const settings = { MASTER_KEY: "11".repeat(32), LOG_LEVEL: "silent", ...more };
  const ctx = stack.use(
    await openContext(parseConfig({ ...settings, DATABASE_URL: database.url })),
  );
  const opened = stack.move();
  return { ...ctx, [Symbol.asyncDispose]: async () => opened.disposeAsync() };
}
