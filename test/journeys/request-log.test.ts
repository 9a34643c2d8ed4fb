import assert from "node:assert/strict";
import { test } from "node:test";
import { addHealthRoutes } from "../../service/src/platform/http/health.ts";
import { createHttp } from "../../service/src/platform/http/http.ts";
import { createLog } from "../../service/src/platform/telemetry/log.ts";
import { authorizationUrl, makePkce } from "../login-flow.ts";
import { until } from "../patience.ts";
import { openWorld } from "../world.ts";

await using world = await openWorld();

function openLog() {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  return { lines, log: createLog({ level: "info", destination: { write } }) };
}

await test("probes fill no log while all is well, and one that fails stands in it and says what to do", async () => {
  const { lines, log } = openLog();
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
  const { body } = await http.inject({ url: "/health/ready" });
  assert.match(
    body,
    /clock was set back, and the process is 60 s ahead of it: restart the process/,
  );
  assert.deepEqual(
    lines.map((line) => {
      const { route, status } = JSON.parse(line) as Record<string, unknown>;
      return [route, status];
    }),
    [
      ["/else", 200],
      ["/health/ready", 503],
      ["/health/ready", 503],
    ],
  );
  await http.close();
});

await test("the line of a refused call says why in the word that its caller was told, and repeats nothing that was sent", async (t) => {
  const { baseUrl, client, ctx } = world;
  const { lines, log } = openLog();
  for (const level of ["info", "warn", "error"] as const)
    t.mock.method(ctx.log, level, log[level].bind(log));
  const authorize = (changed: Record<string, string>): string =>
    authorizationUrl(baseUrl, client, makePkce(), changed);
  const form = (path: string): [string, RequestInit] => [
    `${baseUrl}${path}`,
    { method: "POST", body: new URLSearchParams({ grant_type: "canary" }) },
  ];
  const calls: [string, RequestInit?][] = [
    [authorize({ redirect_uri: "https://canary.example/" })],
    [authorize({ scope: "openid canary" })],
    [`${baseUrl}/oauth2/sessions/logout?post_logout_redirect_uri=https://canary.example/`],
    form("/oauth2/token"),
    [`${baseUrl}/api/v2/kyc/status?referenceKey=canary`],
    [`${baseUrl}/canary`],
    form("/w/session"),
  ];
  for (const [url, init] of calls) await fetch(url, { redirect: "manual", ...init });
  const last = "/w/session";
  const told = await until("every call is logged", async () => {
    const read = lines.filter((line) => line.includes('"route"'));
    return read.some((line) => line.includes(`"${last}"`)) ? read : null;
  });
  assert.deepEqual(
    told.map((line) => {
      const { route, status, reason } = JSON.parse(line) as Record<string, unknown>;
      return [route, status, reason];
    }),
    [
      ["/oauth2/auth", 400, "invalid_request"],
      ["/oauth2/auth", 303, "invalid_scope"],
      ["/oauth2/sessions/logout", 400, "invalid_request"],
      ["/oauth2/token", 401, "invalid_client"],
      ["/api/v2/kyc/status", 401, "apikey_missing"],
      ["unknown", 404, "route_not_found"],
      [last, 415, "unsupported_media_type"],
    ],
  );
  assert.doesNotMatch(lines.join("\n"), /canary/);
});
