import assert from "node:assert/strict";
import { test } from "node:test";
import { noteBaseUrl } from "./base-url.ts";
import { parseConfig } from "./config/config.ts";
import { openDb } from "./database/db.ts";
import { openTestDatabase } from "./database/test-database.ts";
import { createLog } from "./telemetry/log.ts";

test("a start under another address than the last one is told of, and under the same one not", async () => {
  await using database = await openTestDatabase();
  await using db = openDb({ ...database.connection, connections: 2 });
  const told: unknown[] = [];
  const write = (line: string): void => {
    const { level, before, baseUrl } = JSON.parse(line) as Record<string, unknown>;
    told.push([level, before, baseUrl]);
  };
  const log = createLog({ level: "info", destination: { write } });
  const [one, other] = ["https://id.example.com", "https://www.id.example.com"];
  const start = async (baseUrl: string): Promise<unknown[]> => {
    const config = { ...parseConfig(), baseUrl };
    await noteBaseUrl({ db, config, log });
    return told.splice(0);
  };
  assert.deepEqual(await start(one), []);
  assert.deepEqual(await start(one), []);
  assert.deepEqual(await start(other), [["warn", one, other]]);
  assert.deepEqual(await start(one), [["warn", other, one]]);
});
