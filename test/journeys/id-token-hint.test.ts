// Every id token that the service issues is one that it takes as a hint.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { parseAddress, subjectOf } from "@svc/protocol";
import { openClients } from "../../service/src/accounts/index.ts";
import { type IdTokenInput, signIdToken } from "../../service/src/login/token/id-token.ts";
import { openSigningKeys } from "../../service/src/login/keys/signing-keys.ts";
import { type Jar, openJar } from "../cookie-jar.ts";
import { authorizationUrl, basicOf, logIn, makePkce } from "../login-flow.ts";
import { type Identity, newIdentity } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

function parametersOf(changed: Record<string, string>): URLSearchParams {
  const asked = { scope: "openid", prompt: "none", ...changed };
  return new URL(authorizationUrl(world.baseUrl, world.client, makePkce(), asked)).searchParams;
}

async function push(form: URLSearchParams): Promise<Response> {
  return fetch(`${world.baseUrl}/oauth2/par`, {
    method: "POST",
    headers: { authorization: basicOf(world.client) },
    body: form,
  });
}

/** "code" where a session answers, else the error at the redirect URI. */
async function answerTo(jar: Jar, query: URLSearchParams, init?: RequestInit): Promise<string> {
  const url = `${world.baseUrl}/oauth2/auth`;
  const response = await (init === undefined
    ? jar.fetch(`${url}?${query.toString()}`)
    : jar.fetch(url, init));
  assert.equal(response.status, 303, await response.clone().text());
  const { searchParams } = new URL(response.headers.get("location") ?? "");
  return searchParams.has("code") ? "code" : (searchParams.get("error") ?? "");
}

/** The answers to the request by GET, by POST and pushed. */
async function answersTo(jar: Jar, changed: Record<string, string>): Promise<string[]> {
  const form = parametersOf(changed);
  const answers = [
    await answerTo(jar, form),
    await answerTo(jar, form, { method: "POST", body: form }),
  ];
  const pushed = (await (await push(form)).json()) as { error?: string; request_uri?: string };
  if (pushed.request_uri === undefined) return [...answers, pushed.error ?? ""];
  const query = new URLSearchParams({
    client_id: world.client.id,
    request_uri: pushed.request_uri,
  });
  return [...answers, await answerTo(jar, query)];
}

test("a nonce takes at most 1,024 bytes of the id token", async () => {
  const sizes: readonly [character: string, most: number][] = [
    ["n", 1024],
    ["\u20ac", 341],
    ['"', 512],
    ["\u0001", 170],
  ];
  for (const [character, most] of sizes) {
    const jar = openJar();
    const good = await answersTo(jar, { nonce: character.repeat(most) });
    assert.deepEqual(new Set(good), new Set(["login_required"]), character);
    const long = await answersTo(jar, { nonce: character.repeat(most + 1) });
    assert.deepEqual(new Set(long), new Set(["invalid_request"]), character);
  }
});

/** All that varies in an id token at its longest; these are the bounds for names and domains on input. */
async function longestInput({ address: user }: Identity): Promise<IdTokenInput> {
  await using clients = await openClients(world.ctx);
  const client = await clients.find(world.client.id);
  const address = parseAddress(user);
  assert.ok(client !== null && address !== null);
  const now = world.ctx.clock.now();
  const name = "\u20ac".repeat(100);
  return {
    client,
    subject: subjectOf(address),
    accessToken: "any",
    sessionId: randomUUID(),
    acr: "urn:svc:acr:same-device",
    authenticatedAt: now,
    nonce: "n".repeat(1024),
    ext: {
      login_type: "business",
      business: { id: address, name, domain: "d".repeat(253), verified: false, status: "active" },
      acting_member: {
        id: address,
        name,
        authority: "JOINT",
        voting_rights: false,
        is_creator: false,
      },
      approved_at: now,
    },
    now,
    expiresAt: now + 3600,
  };
}

test("the longest id token, of a business under the longest issuer, has at most 8,192 characters", async () => {
  await using signingKeys = await openSigningKeys(world.ctx);
  const config = { ...world.ctx.config, baseUrl: `https://${"i".repeat(253)}:65535` };
  const token = signIdToken({ config, signingKeys }, await longestInput(newIdentity()));
  assert.ok(token.length > 4096 && token.length <= 8192, `${token.length} characters`);
});

test("a hint of 8,192 characters is taken wherever one is", async () => {
  const [jar, identity] = [openJar(), newIdentity()];
  const changed = { scope: "openid" };
  const { tokens } = await logIn(world.baseUrl, world.client, identity, { jar, changed });
  const claims = Buffer.from(tokens.id_token.split(".")[1] ?? "", "base64url").toString();
  const { sid } = JSON.parse(claims) as { sid: string };
  await using signingKeys = await openSigningKeys(world.ctx);
  const signer = { config: world.ctx.config, signingKeys };
  const input = { ...(await longestInput(identity)), sessionId: sid };
  const roomBytes = Math.floor(((8192 - signIdToken(signer, input).length) * 3) / 4);
  const nonce = input.nonce + "n".repeat(roomBytes);
  const hint = signIdToken(signer, { ...input, nonce });
  assert.ok(hint.length > 8188 && hint.length <= 8192, `${hint.length} characters`);
  assert.deepEqual(await answersTo(jar, { id_token_hint: hint }), ["code", "code", "code"]);

  const url = `${world.baseUrl}/oauth2/sessions/logout`;
  const body = new URLSearchParams({ id_token_hint: hint });
  assert.equal((await fetch(url, { method: "POST", body })).status, 200);
  assert.equal((await fetch(`${url}?${body.toString()}`)).status, 200);
  assert.equal(await answerTo(jar, parametersOf({})), "login_required");
});

test("a hint that is signed with ES256 is taken as well, unless a byte of it differs", async () => {
  const client = await world.addClient({ idTokenAlgorithm: "ES256" });
  const jar = openJar();
  const changed = { scope: "openid" };
  const { tokens } = await logIn(world.baseUrl, client, newIdentity(), { jar, changed });
  const [head = "", body = "", tail = ""] = tokens.id_token.split(".");
  assert.match(Buffer.from(head, "base64url").toString(), /"alg":"ES256"/);
  const forged = `${head}.${body}.${tail.startsWith("A") ? "B" : "A"}${tail.slice(1)}`;
  const ask = async (hint: string): Promise<string> => {
    const asked = { scope: "openid", prompt: "none", id_token_hint: hint };
    const url = authorizationUrl(world.baseUrl, client, makePkce(), asked);
    return answerTo(jar, new URL(url).searchParams);
  };
  assert.equal(await ask(tokens.id_token), "code");
  assert.equal(await ask(forged), "invalid_request");
});

test("an id token of another client is no hint, whoever it names", async () => {
  const jar = openJar();
  const identity = newIdentity();
  await logIn(world.baseUrl, world.client, identity, { jar, changed: { scope: "openid" } });
  const other = await world.addClient();
  const { tokens } = await logIn(world.baseUrl, other, identity);
  const refused = ["invalid_request", "invalid_request", "invalid_request"];
  assert.deepEqual(await answersTo(jar, { id_token_hint: tokens.id_token }), refused);
  assert.deepEqual(await answersTo(jar, {}), ["code", "code", "code"]);
});
