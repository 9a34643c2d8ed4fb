// A statement fails as nobody foresaw: the caller is told so in the form of its route, and the log says why.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { authorizationUrl, logIn, makePkce } from "../login-flow.ts";
import { until } from "../patience.ts";
import { newIdentity, openWalletSession } from "../raw-wallet.ts";
import { openWorld, type ServerProcess, type World } from "../world.ts";

let world: World;
let server: ServerProcess;
const lines: string[] = [];
before(async () => {
  world = await openWorld();
  server = await world.startProcess({ LOG_LEVEL: "error" }, { onLine: (line) => lines.push(line) });
});
after(async () => {
  await server.stop();
  await world[Symbol.asyncDispose]();
});

const rename = async (from: string, to: string) =>
  world.ctx.db.query({ name: "", text: `alter table ${from} rename to ${to}`, values: [] });

/** Calls while a table is missing. */
async function callWithout(table: string, call: () => Promise<Response>): Promise<Response> {
  await rename(table, "away");
  try {
    return await call();
  } finally {
    await rename("away", table);
  }
}

/** Checks that the log tells the cause, with the request's id and route. */
async function checkLogged(requestId: string, route: string): Promise<void> {
  const logged = await until(`${requestId} is logged`, async () => {
    const line = lines.find((each) => each.includes(requestId));
    return line === undefined ? null : (JSON.parse(line) as Record<string, unknown>);
  });
  assert.deepEqual([logged["level"], logged["route"]], ["error", route]);
  assert.equal((logged["err"] as { code: string }).code, "42P01");
}

const idOf = (answer: Response): string => answer.headers.get("x-request-id") ?? "";
const cause = /relation|exist|wallet_session|token_family|42P01/;

test("a wallet's call that fails as nobody foresaw is answered in the envelope, and the log says why", async () => {
  const headers = await openWalletSession(world.baseUrl, newIdentity());
  const answer = await callWithout("wallet_session", async () =>
    fetch(`${server.url}/w/logins`, { headers }),
  );
  assert.equal(answer.status, 500);
  const said = await answer.text();
  const { error } = JSON.parse(said) as { error: Record<string, unknown> };
  assert.deepEqual([error["reason"], error["requestId"]], ["internal", idOf(answer)]);
  assert.doesNotMatch(said, cause);
  await checkLogged(idOf(answer), "/w/logins");
});

test("a client's call that fails as nobody foresaw is answered as OAuth says, and the log says why", async () => {
  const { tokens } = await logIn(world.baseUrl, world.client, newIdentity());
  const headers = { authorization: `Bearer ${tokens.access_token}` };
  const answer = await callWithout("token_family", async () =>
    fetch(`${server.url}/userinfo`, { headers }),
  );
  assert.equal(answer.status, 500);
  const said = await answer.text();
  const { error, error_description: description } = JSON.parse(said) as Record<string, string>;
  assert.equal(error, "server_error");
  assert.ok(description?.includes(idOf(answer)));
  assert.doesNotMatch(said, cause);
  await checkLogged(idOf(answer), "/userinfo");
  assert.equal((await fetch(`${server.url}/userinfo`, { headers })).status, 200);
});

test("a person's page that fails as nobody foresaw names the request, and the log says why", async () => {
  const { tokens } = await logIn(world.baseUrl, world.client, newIdentity());
  const login = authorizationUrl(server.url, world.client, makePkce());
  const logout = `${server.url}/oauth2/sessions/logout?id_token_hint=${tokens.id_token}`;
  for (const [url, table] of [
    [login, "login"],
    [logout, "session"],
  ] as const) {
    const answer = await callWithout(table, async () => fetch(url));
    assert.equal(answer.status, 500, url);
    const page = await answer.text();
    assert.ok(page.includes(idOf(answer)));
    assert.doesNotMatch(page, cause);
    await checkLogged(idOf(answer), new URL(url).pathname);
  }
});
