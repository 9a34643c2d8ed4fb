// What a hostile caller would do to connections, and to answers meant for other origins.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createHttp } from "../../service/src/platform/http.ts";
import { logIn } from "../login-flow.ts";
import { newIdentity } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

test("a request that does not end and a connection that says nothing are cut off", async () => {
  const { server } = createHttp(world.ctx);
  assert.equal(server.requestTimeout, 60_000);
  assert.equal(server.headersTimeout, 60_000);
  // A long poll is silent for 25 s, a status stream for 15 s.
  assert.equal(server.timeout, 120_000);
});

test("userinfo is readable from the origins of the token's client alone, whatever the form calls itself", async () => {
  const other = await world.addClient({ redirectUris: ["http://localhost:4998/callback"] });
  const { tokens } = await logIn(world.baseUrl, world.client, newIdentity());
  const ask = async (origin: string, client_id: string): Promise<string | null> => {
    const response = await fetch(`${world.baseUrl}/userinfo`, {
      method: "POST",
      headers: { authorization: `Bearer ${tokens.access_token}`, origin },
      body: new URLSearchParams({ client_id }),
    });
    assert.equal(response.status, 200);
    assert.match(response.headers.get("vary") ?? "", /origin/i);
    return response.headers.get("access-control-allow-origin");
  };
  assert.equal(await ask("http://localhost:4998", other.id), null);
  assert.equal(await ask("http://localhost:4999", other.id), "http://localhost:4999");
});
