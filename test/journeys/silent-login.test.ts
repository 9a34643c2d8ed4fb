// What the client of a browser is told when nobody may be asked, and when nobody can be.
import assert from "node:assert/strict";
import { after, mock, test } from "node:test";
import type { Db } from "../../service/src/platform/database/db.ts";
import { authorizationUrl, makePkce } from "../login-flow.ts";
import { openWorld } from "../world.ts";

const world = await openWorld();
after(async () => world[Symbol.asyncDispose]());

async function ask(prompt: string): Promise<Response> {
  const changed = { scope: "openid", prompt };
  return fetch(authorizationUrl(world.baseUrl, world.client, makePkce(), changed), {
    redirect: "manual",
  });
}

/** The error at the redirect URI. */
function toldBy(response: Response): URLSearchParams {
  assert.equal(response.status, 303);
  const url = new URL(response.headers.get("location") ?? "");
  assert.equal(`${url.origin}${url.pathname}`, world.client.redirectUri);
  assert.equal(url.searchParams.get("state"), "state-of-the-browser");
  assert.equal(url.searchParams.get("iss"), world.baseUrl);
  return url.searchParams;
}

/** Makes every statement fail until the result is disposed of, except the one that looks a client up. */
function failWith(message: string): Disposable {
  const { db } = world.ctx;
  const query = db.query.bind(db);
  const failing = mock.method(db, "query", (async (statement) => {
    if (statement.text.includes("from oauth_client")) return query(statement);
    throw new Error(message);
  }) satisfies Db["query"]);
  return { [Symbol.dispose]: () => failing.mock.restore() };
}

const failures: readonly [message: string, code: string, status: number][] = [
  ["Connection terminated", "temporarily_unavailable", 503],
  ["nobody foresaw this", "server_error", 500],
];

for (const [message, code, status] of failures) {
  void test(`${code} is told at the redirect URI where no page may be shown, and on a page to a person`, async () => {
    assert.equal(toldBy(await ask("none")).get("error"), "login_required");
    using _ = failWith(message);
    assert.equal(toldBy(await ask("none")).get("error"), code);
    const headers = { cookie: `svc_session=${"A".repeat(43)}` };
    const leaving = fetch(`${world.baseUrl}/oauth2/sessions/logout`, { headers });
    for (const shown of [await ask("login"), await leaving]) {
      assert.equal(shown.status, status);
      assert.equal(shown.headers.get("retry-after"), status === 503 ? "1" : null);
      assert.match(await shown.text(), /<h1/);
    }
  });
}
