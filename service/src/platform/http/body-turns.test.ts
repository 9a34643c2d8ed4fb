import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { openContext } from "../../compose.ts";
import { parseConfig } from "../config/config.ts";
import { openTestDatabase } from "../database/test-database.ts";
import { createBodyTurns } from "./body-turns.ts";
import { createHttp } from "./http.ts";

/** Counts turns of the event loop, as others have them. */
function countTurns(): Disposable & { readonly turns: number } {
  let [turns, isOver] = [0, false];
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  return {
    get turns() {
      return turns;
    },
    [Symbol.dispose]: () => void (isOver = true),
  };
}

const busyMs = 20;
/** An idle event loop has thousands in that time. */
const turnsMin = 20;
function beBusy(): void {
  const until = performance.now() + busyMs;
  while (performance.now() < until);
}

test("work of owners is done in turns, and between two pieces the process is there for others", async () => {
  using loop = countTurns();
  const done: { owner: string; turns: number }[] = [];
  const takeTurn = createBodyTurns();
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const owner of ["noisy", "noisy", "noisy", "quiet"])
    takeTurn(owner, () => {
      beBusy();
      done.push({ owner, turns: loop.turns });
      if (done.length === 4) resolve();
    });
  await promise;
  assert.deepEqual(
    done.map(({ owner }) => owner),
    ["noisy", "noisy", "quiet", "noisy"],
  );
  const between = done.slice(1).map((each, at) => each.turns - (done[at]?.turns ?? 0));
  assert.ok(Math.min(...between) > turnsMin, between.join(" "));
});

test("of large bodies that come at once one is read at a time, and the process has as long for others as each took", async () => {
  await using database = await openTestDatabase();
  const settings = { MASTER_KEY: "11".repeat(32), LOG_LEVEL: "silent", DATABASE_URL: database.url };
  await using ctx = await openContext(parseConfig(settings));
  await using http = createHttp(ctx);
  using loop = countTurns();
  const begun: number[] = [];
  http.post("/large", { bodyLimit: 1024 * 1024 }, async () => {
    begun.push(loop.turns);
    beBusy();
    return {};
  });
  await http.listen({ host: "127.0.0.1", port: 0 });
  const { port } = http.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/large`;
  const body = JSON.stringify({ text: "a".repeat(100_000) });
  const headers = { "content-type": "application/json" };
  const post = async (): Promise<number> =>
    (await fetch(url, { method: "POST", headers, body })).status;
  // What the first one of a process loads is no matter here.
  await post();
  begun.length = 0;
  const answers = await Promise.all(Array.from({ length: 4 }, post));
  assert.deepEqual(answers, [200, 200, 200, 200]);
  const between = begun.slice(1).map((each, at) => each - (begun[at] ?? 0));
  assert.ok(Math.min(...between) > turnsMin, between.join(" "));
});
