import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";
import {
  addClient,
  addCode,
  type Answer,
  openTestLogin,
  post,
  redeem,
  redirectUri,
  refused,
} from "../test-login.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { addTestSecret, changeTestClient, disableTestClient } from "../test-login-store.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

async function ask(form: Record<string, string>, authorization?: string): Promise<Answer> {
  return post(login, "/oauth2/token", {
    form: { grant_type: "client_credentials", ...form },
    headers: { authorization },
  });
}

function basicOf(id: string, secret: string): string {
  return `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`;
}

test("each type of client is taken by its own method alone", async () => {
  const basic = await addClient(login);
  const body = await addClient(login, { method: "client_secret_post" });
  const spa = await addClient(login, { method: "none" });
  assert.equal((await ask({}, basic.basic)).status, 200);
  assert.equal((await ask({ client_id: body.id, client_secret: body.secret })).status, 200);
  const code = await addCode(login, spa);
  const headers = { authorization: undefined };
  assert.equal(
    (await redeem(login, spa, { ...code, form: { client_id: spa.id }, headers })).status,
    200,
  );

  refused(await ask({ client_id: basic.id, client_secret: basic.secret }), 401, "invalid_client");
  refused(await ask({}, body.basic), 401, "invalid_client");
  refused(await ask({ client_id: basic.id }), 401, "invalid_client");
  refused(await ask({ client_id: body.id }), 401, "invalid_client");
  refused(await ask({}, spa.basic), 401, "invalid_client");
});

test("a wrong, unknown or disabled client is refused, and told of Basic whether or not it used the header", async () => {
  const client = await addClient(login);
  const other = await addClient(login);
  const cases: [Record<string, string>, string | undefined][] = [
    [{}, basicOf(client.id, "wrong")],
    [{}, basicOf(client.id, other.secret)],
    [{}, basicOf(randomUUID(), client.secret)],
    [{}, basicOf("", "")],
    [{}, basicOf("no/such\u0000", "x")],
    [{}, "Basic !!!"],
    [{}, `Bearer ${client.secret}`],
    [{}, undefined],
    [{ client_id: client.id }, undefined],
    [{ client_id: client.id, client_secret: "wrong" }, undefined],
    [{ client_assertion_type: assertionType, client_assertion: "wrong" }, undefined],
  ];
  for (const [form, authorization] of cases) {
    const answer = await ask(form, authorization);
    refused(answer, 401, "invalid_client");
    assert.equal(answer.headers["www-authenticate"], 'Basic realm="svc", charset="UTF-8"');
  }
  await disableTestClient(login.ctx.db, client.id);
  login.clock.advance(61);
  refused(await ask({}, client.basic), 401, "invalid_client");
});

test("a secret that a cached client was given since counts at once, and not as a guess", async () => {
  const client = await addClient(login);
  assert.equal((await ask({}, client.basic)).status, 200);
  const secret = randomUUID();
  await addTestSecret(login.ctx.db, { clientId: client.id, secretSha256: sha256(secret) });
  // As often as wrong ones are forgiven, and once more.
  for (let call = 0; call < 11; call += 1)
    assert.equal((await ask({}, basicOf(client.id, secret))).status, 200);
  refused(await ask({}, basicOf(client.id, "wrong")), 401, "invalid_client");
});

test("a cached client whose method was changed since authenticates by the new one at once", async () => {
  const client = await addClient(login);
  const inBody = { client_id: client.id, client_secret: client.secret };
  assert.equal((await ask({}, client.basic)).status, 200);
  await changeTestClient(login.ctx.db, client.id, { method: "client_secret_post" });
  assert.equal((await ask(inBody)).status, 200);
  refused(await ask({}, client.basic), 401, "invalid_client");
});

test("id and secret in the header are form-decoded", async () => {
  const client = await addClient(login);
  const encoded = Array.from(
    client.secret,
    (letter) => `%${letter.charCodeAt(0).toString(16)}`,
  ).join("");
  assert.equal((await ask({}, basicOf(client.id, encoded))).status, 200);
  refused(await ask({}, basicOf(client.id, "%zz")), 400, "invalid_request");
});

test("several methods at once, or ids that differ, are refused", async () => {
  const client = await addClient(login);
  refused(
    await ask({ client_id: client.id, client_secret: client.secret }, client.basic),
    400,
    "invalid_request",
  );
  const unreadable = {
    client_assertion: "x",
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
  };
  refused(await ask(unreadable, client.basic), 400, "invalid_request");
  refused(await ask({ client_id: randomUUID() }, client.basic), 400, "invalid_request");
  assert.equal((await ask({ client_id: client.id }, client.basic)).status, 200);
});

test("after ten wrong secrets within ten minutes even the right one has to wait", async () => {
  const client = await addClient(login);
  for (let at = 0; at < 10; at += 1)
    refused(await ask({}, basicOf(client.id, `wrong-${at}`)), 401, "invalid_client");
  for (const authorization of [client.basic, basicOf(client.id, "wrong"), client.basic]) {
    const answer = await ask({}, authorization);
    assert.equal(answer.status, 429);
    assert.ok(Number(answer.headers["retry-after"]) >= 1);
  }
  const other = await addClient(login);
  assert.equal((await ask({}, other.basic)).status, 200);
  login.clock.advance(600);
  assert.equal((await ask({}, client.basic)).status, 200);
});

test("each minute after ten wrong secrets allows one more try, which only a wrong one uses up", async () => {
  const client = await addClient(login);
  const wrong = basicOf(client.id, "wrong");
  for (let at = 0; at < 10; at += 1) await ask({}, wrong);
  const statuses: number[] = [];
  for (const [minute, tries] of [
    [0, [client.basic]],
    [1, [client.basic, client.basic, wrong, client.basic]],
    [2, [client.basic, wrong, wrong]],
  ] as const) {
    if (minute > 0) login.clock.advance(60);
    for (const authorization of tries) statuses.push((await ask({}, authorization)).status);
  }
  assert.deepEqual(statuses, [429, 200, 200, 401, 429, 200, 401, 429]);
});

test("wrong secrets from many addresses of one network block that network alone", async () => {
  const client = await addClient(login);
  const statuses: number[] = [];
  for (let at = 0; at <= 10; at += 1) {
    const { statusCode } = await login.http.inject({
      method: "POST",
      url: "/oauth2/token",
      remoteAddress: `2001:db8::${at}`,
      headers: {
        authorization: basicOf(client.id, `wrong-${at}`),
        "content-type": "application/x-www-form-urlencoded",
      },
      payload: "grant_type=client_credentials",
    });
    statuses.push(statusCode);
  }
  assert.deepEqual(statuses, [...Array.from({ length: 10 }, () => 401), 429]);
  assert.equal((await ask({}, client.basic)).status, 200);
});

test("a redirect_uri is still compared when the client is a public one", async () => {
  const spa = await addClient(login, { method: "none" });
  const code = await addCode(login, spa);
  const headers = { authorization: undefined };
  const wrong = { client_id: spa.id, redirect_uri: `${redirectUri}?x=1` };
  refused(await redeem(login, spa, { ...code, form: wrong, headers }), 400, "invalid_grant");
});

test("of 30 wrong secrets at once no more than ten are looked at", async () => {
  const client = await addClient(login);
  const all = await Promise.all(
    Array.from({ length: 30 }, async (_, at) => ask({}, basicOf(client.id, `wrong-${at}`))),
  );
  assert.equal(all.filter(({ status }) => status === 401).length, 10);
  assert.equal(all.filter(({ status }) => status === 429).length, 20);
});
