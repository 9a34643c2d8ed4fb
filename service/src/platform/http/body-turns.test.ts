import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { openContext } from "../../compose.ts";
import { parseConfig } from "../config/config.ts";
import { openTestDatabase } from "../database/test-database.ts";
import { createBodyTurns } from "./body-turns.ts";
import { createHttp } from "./http.ts";

const busyMs = 20;

/** Keeps the process busy, and asks for a turn of its own in the time that the others have afterwards. */
function beBusy(onOthersTurn: () => void): void {
  const end = performance.now() + busyMs;
  while (performance.now() < end);
  setTimeout(onOthersTurn, busyMs / 2);
}

test("work of owners is done in turns, and between two pieces the process is there for others", async () => {
  const done: string[] = [];
  const takeTurn = createBodyTurns();
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const owner of ["noisy", "noisy", "noisy", "quiet"])
    takeTurn(owner, () => {
      done.push(owner);
      beBusy(() => {
        done.push("others");
        if (done.length === 8) resolve();
      });
    });
  await promise;
  assert.deepEqual(
    done,
    ["noisy", "noisy", "quiet", "noisy"].flatMap((owner) => [owner, "others"]),
  );
});

test("of large bodies that come at once one is read at a time, and the process has as long for others as each took", async () => {
  await using database = await openTestDatabase();
  const settings = { MASTER_KEY: "11".repeat(32), LOG_LEVEL: "silent", DATABASE_URL: database.url };
  await using ctx = await openContext(parseConfig(settings));
  await using http = createHttp(ctx);
  const done: string[] = [];
  http.post("/large", { bodyLimit: 1024 * 1024 }, async () => {
    done.push("body");
    beBusy(() => done.push("others"));
    return {};
  });
  await http.listen({ host: "127.0.0.1", port: 0 });
  const { port } = http.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/large`;
  const body = JSON.stringify({ text: "a".repeat(100_000) });
  const headers = { "content-type": "application/json" };
  const post = async (): Promise<number> =>
    (await fetch(url, { method: "POST", headers, body })).status;
  const answers = await Promise.all(Array.from({ length: 4 }, post));
  assert.deepEqual(answers, [200, 200, 200, 200]);
  assert.deepEqual(done.slice(0, 7), [
    "body",
    "others",
    "body",
    "others",
    "body",
    "others",
    "body",
  ]);
});
