// What a hostile wallet, or an impatient one, would send to the routes of wallet sessions and logins.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sessionDigest, signDigest } from "@svc/protocol";
import { openJar } from "../cookie-jar.ts";
import { logIn, postToken } from "../login-flow.ts";
import { openRawConnection } from "../raw-connection.ts";
import { type Identity, newIdentity, openWalletSession, post } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

interface Challenge {
  readonly challenge: string;
  readonly deadline: number;
  readonly origin: string;
}

async function askChallenge(): Promise<Challenge> {
  return (await (await post(`${world.baseUrl}/w/session/challenge`, {})).json()) as Challenge;
}

function sign(identity: Identity, message: Challenge): Record<string, unknown> {
  const { challenge, deadline } = message;
  const signature = signDigest(sessionDigest(message), identity.privateKey);
  return { svcID: identity.address, challenge, deadline, signature };
}

async function listIds(headers: Record<string, string>): Promise<string[]> {
  const response = await fetch(`${world.baseUrl}/w/logins`, { headers });
  const { items } = (await response.json()) as { items: { id: string }[] };
  return items.map(({ id }) => id);
}

test("a signed challenge opens one session, also after that session was ended or under another spelling", async () => {
  const identity = newIdentity();
  const asked = await askChallenge();
  const body = sign(identity, asked);
  const opened = await post(`${world.baseUrl}/w/session`, body);
  assert.equal(opened.status, 200);
  const { token } = (await opened.json()) as { token: string };
  const authorization = `Bearer ${token}`;
  await fetch(`${world.baseUrl}/w/session`, { method: "DELETE", headers: { authorization } });
  assert.equal(
    (await fetch(`${world.baseUrl}/w/logins`, { headers: { authorization } })).status,
    401,
  );
  const respelled = sign(identity, { ...asked, challenge: `${asked.challenge}.` });
  for (const again of [body, respelled])
    assert.equal((await post(`${world.baseUrl}/w/session`, again)).status, 422);
});

test("a session for another origin, a later deadline or another identity is not opened", async () => {
  const identity = newIdentity();
  const asked = await askChallenge();
  for (const body of [
    { ...sign(identity, { ...asked, origin: "https://evil.example" }), deadline: asked.deadline },
    sign(identity, { ...asked, deadline: asked.deadline + 1 }),
    { ...sign(identity, asked), svcID: newIdentity().address },
  ])
    assert.equal((await post(`${world.baseUrl}/w/session`, body)).status, 422);
  await world.advance(301);
  assert.equal((await post(`${world.baseUrl}/w/session`, sign(identity, asked))).status, 422);
});

test("ids that PostgreSQL cannot read are refused, never a fault", async () => {
  const headers = await openWalletSession(world.baseUrl, newIdentity());
  const answer = { session: "x", svcID: newIdentity().address, signature: "0x00" };
  const uuid = "01890000-0000-7000-8000-000000000000";
  for (const [response, status] of [
    [await post(`${world.baseUrl}/w/l/%00`, answer), 404],
    [await post(`${world.baseUrl}/w/l/${encodeURIComponent("a\u{1f600}")}`, answer), 404],
    [await post(`${world.baseUrl}/w/logins/urn:uuid:${uuid}/end`, {}, headers), 400],
    [await post(`${world.baseUrl}/w/logins/${uuid}/end`, {}, headers), 404],
    [await fetch(`${world.baseUrl}/w/logins?cursor=1.${"-".repeat(36)}`, { headers }), 400],
    [await fetch(`${world.baseUrl}/w/logins?cursor=999999999999.${uuid}`, { headers }), 200],
  ] as const)
    assert.equal(response.status, status, response.url);
});

test("logins of one session that are ended at once all end, and none of the calls fails", async () => {
  for (let round = 0; round < 5; round += 1) {
    const identity = newIdentity();
    const jar = openJar();
    const tokens: string[] = [];
    for (let login = 0; login < 3; login += 1)
      tokens.push(
        (await logIn(world.baseUrl, world.client, identity, { jar })).tokens.refresh_token ?? "",
      );
    const headers = await openWalletSession(world.baseUrl, identity);
    const ids = await listIds(headers);
    assert.equal(ids.length, 3);
    const ended = await Promise.all(
      ids.map(async (id) => post(`${world.baseUrl}/w/logins/${id}/end`, {}, headers)),
    );
    for (const { status } of ended) assert.equal(status, 200);
    assert.deepEqual(await listIds(headers), []);
    for (const token of tokens) {
      const parameters = { grant_type: "refresh_token", refresh_token: token };
      assert.equal((await postToken(world.baseUrl, world.client, parameters)).status, 400);
    }
  }
});

test("nobody ends or sees the login of another identity", async () => {
  const identity = newIdentity();
  await logIn(world.baseUrl, world.client, identity);
  const own = await openWalletSession(world.baseUrl, identity);
  const other = await openWalletSession(world.baseUrl, newIdentity());
  const [id] = await listIds(own);
  assert.deepEqual(await listIds(other), []);
  assert.equal((await post(`${world.baseUrl}/w/logins/${id}/end`, {}, other)).status, 404);
  assert.deepEqual(await listIds(own), [id]);
});

test("who has no link and no session is answered before a large body is read", async () => {
  for (const [path, status] of [
    ["/w/o/AAAAAAAAAAAAAAAAAAAAAA", 404],
    ["/w/relay", 401],
    ["/w/mailbox", 401],
  ] as const) {
    const connection = await openRawConnection(world.baseUrl);
    const head = ["Host: localhost", "Content-Type: application/json", "Content-Length: 200000"];
    connection.send(`POST ${path} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n{`);
    const [answer = ""] = await connection.first;
    assert.ok(answer.startsWith(`HTTP/1.1 ${status} `), answer);
    connection.cut();
  }
});

test("a large body of nothing but values is refused before it is parsed, which would stop everybody", async () => {
  const session = await openWalletSession(world.baseUrl, newIdentity());
  for (const each of ["{}", "[]", "0", "["]) {
    const more = `${each},`.repeat(Math.floor(500_000 / (each.length + 1)));
    const response = await fetch(`${world.baseUrl}/w/relay`, {
      method: "POST",
      headers: { ...session, "content-type": "application/json" },
      body: `{"url":"https://shop.example/","body":{"more":[${more}0]}}`,
    });
    assert.equal(response.status, 400);
    assert.match(await response.text(), /the body holds more than 65536 values/, each);
  }
});
