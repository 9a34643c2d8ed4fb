import assert from "node:assert/strict";
import { test } from "node:test";
import { addHealthRoutes } from "../../service/src/platform/http/health.ts";
import { createHttp } from "../../service/src/platform/http/http.ts";
import { createLog } from "../../service/src/platform/telemetry/log.ts";
import { openWorld } from "../world.ts";

test("probes fill no log while all is well, and one that fails stands in it", async () => {
  await using world = await openWorld();
  const lines: string[] = [];
  const log = createLog({ level: "info", destination: { write: (line) => lines.push(line) } });
  let leadMs = 0;
  const ctx = { ...world.ctx, log, clock: { ...world.ctx.clock, leadMs: () => leadMs } };
  const http = createHttp(ctx);
  addHealthRoutes(ctx, http);
  http.get("/else", () => ({}));
  const ask = async (url: string): Promise<number> => (await http.inject({ url })).statusCode;
  for (const url of ["/health/alive", "/health/ready"]) assert.equal(await ask(url), 200);
  assert.deepEqual(lines, []);
  assert.equal(await ask("/else"), 200);
  leadMs = 60_000;
  assert.equal(await ask("/health/ready"), 503);
  assert.deepEqual(
    lines.map((line) => {
      const { route, status } = JSON.parse(line) as Record<string, unknown>;
      return [route, status];
    }),
    [
      ["/else", 200],
      ["/health/ready", 503],
    ],
  );
  await http.close();
});
