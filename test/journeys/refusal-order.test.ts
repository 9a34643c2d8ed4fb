import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

/** Bodies that no route would read. */
const unreadable: readonly RequestInit[] = [
  { headers: { "content-type": "application/json" }, body: "{bad" },
  { headers: { "content-type": "application/json" }, body: " ".repeat(70_000) },
  { headers: { "content-type": "application/json", "content-encoding": "gzip" }, body: "{}" },
  { headers: { "content-type": "application/x-www-form-urlencoded" }, body: "a=%00" },
  { headers: { "content-type": "text/plain" }, body: "text" },
];

async function refusalOf(path: string, init: RequestInit = {}): Promise<unknown[]> {
  const answer = await fetch(`${world.baseUrl}${path}`, init);
  const { error } = (await answer.json()) as { error: { reason: string; message: string } };
  if (path.startsWith("/api/v1/kyb/")) assert.ok(error.message.startsWith(`${error.reason}: `));
  return [answer.status, error.reason, answer.headers.get("allow")];
}

test("a path that does not exist, or not with this method, is reported whatever the body and the query are", async () => {
  const rows: readonly [string, string, unknown[]][] = [
    ["POST", "/api/v1/kyb/nothing", [404, "route_not_found", null]],
    ["POST", "/nothing?a=%00", [404, "route_not_found", null]],
    ["POST", "/api/v1/kyb/data-requests/01", [405, "method_not_allowed", "GET"]],
    ["DELETE", "/api/v2/kyc/status", [405, "method_not_allowed", "GET"]],
    ["PUT", "/oauth2/auth?a=%00", [405, "method_not_allowed", "GET, POST"]],
  ];
  for (const [method, path, expected] of rows)
    for (const init of [{}, ...unreadable])
      assert.deepEqual(await refusalOf(path, { ...init, method }), expected, path);
});

test("an OAuth endpoint answers another method as it answers other mistakes, whatever the body and the query are", async () => {
  const rows = [
    ["PUT", "/oauth2/token?a=%00", "POST"],
    ["DELETE", "/oauth2/introspect", "POST"],
    ["DELETE", "/oauth2/revoke", "POST"],
    ["DELETE", "/oauth2/par", "POST"],
    ["DELETE", "/userinfo", "GET, POST"],
  ] as const;
  for (const [method, path, methods] of rows)
    for (const init of [{}, ...unreadable]) {
      const answer = await fetch(`${world.baseUrl}${path}`, { ...init, method });
      assert.deepEqual([answer.status, answer.headers.get("allow")], [405, methods], path);
      assert.deepEqual(await answer.json(), {
        error: "invalid_request",
        error_description: `this path takes ${methods}`,
      });
    }
});

test("a caller without a key is told so before its query is looked at", async () => {
  const query = `?${"a=1&".repeat(201)}`;
  for (const path of ["/api/v1/kyb/data-requests", "/api/v1/blockchain/verified"])
    for (const bad of ["?limit=%00", query])
      assert.deepEqual(await refusalOf(path + bad), [401, "apikey_missing", null], path);
});

test("a route that asks for no credentials refuses a query that cannot be read", async () => {
  assert.deepEqual(await refusalOf("/.well-known/jwks.json?a=%00"), [
    400,
    "malformed_request",
    null,
  ]);
});
