// Logouts whose client was changed after this process had cached it, when the notification was lost.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { sql } from "../../platform/database/db.ts";
import type { Outbound } from "../../platform/outbound/outbound.ts";
import {
  addClient,
  addCode,
  type Answer,
  get,
  openTestLogin,
  redeem,
  type TestClient,
} from "../test-login.ts";
import { changeTestClient, listTestLogouts } from "../test-login-store.ts";
import { deliverLogouts } from "./back-channel.ts";

const sent: string[] = [];
const outbound: Outbound = {
  async send({ url }) {
    sent.push(url);
    return { kind: "answered", status: 200, headers: {}, body: Buffer.alloc(0) };
  },
  close: async () => undefined,
};
const login = await openTestLogin({ outbound });
after(async () => login[Symbol.asyncDispose]());

/** Logs in, which makes this process cache the client; returns the hint for the logout. */
async function hintOf(client: TestClient): Promise<string> {
  const redeemed = await redeem(login, client, await addCode(login, client));
  return String(redeemed.body["id_token"]);
}

async function logOut(form: Record<string, string>): Promise<Answer> {
  return get(login, `/oauth2/sessions/logout?${new URLSearchParams(form).toString()}`);
}

test("a logout leads to an address that a cached client was given since", async () => {
  const client = await addClient(login);
  const hint = await hintOf(client);
  const uri = "https://shop.example/farewell";
  const form = { id_token_hint: hint, post_logout_redirect_uri: uri };
  assert.equal((await logOut(form)).status, 400);
  await changeTestClient(login.ctx.db, client.id, { postLogoutRedirectUris: [uri] });
  const done = await logOut(form);
  assert.deepEqual([done.status, done.headers["location"]], [303, uri]);
});

test("a cached client that asked since to be told of logouts is told", async () => {
  const client = await addClient(login);
  const hint = await hintOf(client);
  const uri = "https://shop.example/told";
  await changeTestClient(login.ctx.db, client.id, { backchannelLogoutUri: uri });
  assert.equal((await logOut({ id_token_hint: hint })).status, 200);
  await deliverLogouts(login.ctx);
  assert.deepEqual(sent, [uri]);
  assert.deepEqual(await listTestLogouts(login.ctx.db), [
    { clientId: client.id, attempts: 1, outcome: "delivered" },
  ]);
});

test("a cached client that was disabled since is told nothing", async () => {
  const client = await addClient(login, { backchannelLogoutUri: "https://shop.example/gone" });
  const hint = await hintOf(client);
  sent.length = 0;
  await login.ctx.db.query(sql`update oauth_client set disabled_at = 1 where id = ${client.id}`);
  assert.equal((await logOut({ id_token_hint: hint })).status, 200);
  await deliverLogouts(login.ctx);
  assert.deepEqual(sent, []);
});
