import assert from "node:assert/strict";
import { after, test } from "node:test";
import { updateClient } from "../../accounts/index.ts";
import {
  addClient,
  addCode,
  type Answer,
  claimsOf,
  openTestLogin,
  post,
  redeem,
  refresh,
  type TestClient,
} from "../test-login.ts";
import { changeTestClient, listTestFamilies } from "../test-login-store.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());
const api = "https://api.example.com";

function refused(answer: Answer): void {
  assert.deepEqual([answer.status, answer.body["error"]], [400, "invalid_target"], answer.text);
}

async function changeAudiences(client: TestClient, audiences: readonly string[]): Promise<void> {
  await updateClient(login.ctx, { clientId: client.id, changes: { audiences } }, "test");
  // A process may use its cached client for this long.
  login.clock.advance(61);
}

async function tokensOf(client: TestClient, audience: readonly string[]): Promise<Answer["body"]> {
  const answer = await redeem(login, client, await addCode(login, client, { audience }));
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

test("a refresh issues nothing for an audience that the client has no more, and keeps its token", async () => {
  const client = await addClient(login, { audiences: [api, "reports"] });
  const first = await tokensOf(client, [api]);
  await changeAudiences(client, ["reports"]);
  refused(await refresh(login, client, first["refresh_token"]));
  await changeAudiences(client, [api]);
  const second = await refresh(login, client, first["refresh_token"]);
  assert.equal(second.status, 200, second.text);
  assert.deepEqual(claimsOf(second.body["access_token"])["aud"], [api]);
});

test("the repeat of a refresh issues nothing for an audience that the client has no more", async () => {
  await using other = await openTestLogin({ with: login });
  const client = await addClient(login);
  const first = await tokensOf(client, [api]);
  assert.equal((await refresh(login, client, first["refresh_token"])).status, 200);
  await updateClient(login.ctx, { clientId: client.id, changes: { audiences: [] } }, "test");
  refused(await refresh(other, client, first["refresh_token"]));
});

test("a code issues nothing for an audience that the client has no more", async () => {
  const client = await addClient(login, { audiences: ["reports"] });
  const before = (await listTestFamilies(login.ctx.db)).length;
  const code = await addCode(login, client, { audience: [api] });
  refused(await redeem(login, client, code));
  assert.equal((await listTestFamilies(login.ctx.db)).length, before);
});

test("tokens of the client alone go on when all of its audiences are taken", async () => {
  const client = await addClient(login, { audiences: [api] });
  const byDefault = await tokensOf(client, []);
  await changeAudiences(client, [client.id]);
  const byName = await tokensOf(client, [client.id]);
  await changeAudiences(client, []);
  for (const { refresh_token: token } of [byDefault, byName]) {
    const answer = await refresh(login, client, token);
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(claimsOf(answer.body["access_token"])["aud"], [client.id]);
  }
});

test("introspection accepts a cached client for an audience that it was given since", async () => {
  const audience = "https://given.example";
  const shop = await addClient(login, { audiences: [audience] });
  const resource = await addClient(login);
  const tokens = await tokensOf(shop, [audience]);
  const isActive = async (): Promise<unknown> => {
    const form = { token: String(tokens["access_token"]) };
    const headers = { authorization: resource.basic };
    return (await post(login, "/oauth2/introspect", { form, headers })).body["active"];
  };
  assert.equal(await isActive(), false);
  await changeTestClient(login.ctx.db, resource.id, { audiences: [audience] });
  assert.equal(await isActive(), true);
});
