// A client that we did not write: openid-client as it is published, with all of its own checks.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { exportJWK, generateKeyPair } from "jose";
import * as openid from "openid-client";
import { type Jar, openJar } from "../cookie-jar.ts";
import { approveByQr, finish, hooksOf } from "../login-flow.ts";
import { type Identity, newIdentity } from "../raw-wallet.ts";
import { apiAudience, callbackUri, openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

const byeUri = "http://localhost:4999/bye";

/** The issuer is on loopback, hence http; everything else of the library stays as it is. */
const discoveryOptions: openid.DiscoveryRequestOptions = {
  // oxlint-disable-next-line typescript/no-deprecated -- the library's way to say: look twice
  execute: [openid.allowInsecureRequests],
};

async function discover(
  clientId: string,
  authentication?: openid.ClientAuth,
): Promise<openid.Configuration> {
  const issuer = new URL(world.baseUrl);
  return openid.discovery(issuer, clientId, undefined, authentication, discoveryOptions);
}

interface Start {
  readonly identity?: Identity;
  readonly jar?: Jar;
  readonly isPushed?: boolean;
  readonly options?: openid.AuthorizationCodeGrantOptions;
}

/** The code flow with PKCE, state, nonce and audience; the wallet approves. */
async function logIn(
  config: openid.Configuration,
  { identity = newIdentity(), jar = openJar(), isPushed = false, options = {} }: Start = {},
): ReturnType<typeof openid.authorizationCodeGrant> {
  const pkceCodeVerifier = openid.randomPKCECodeVerifier();
  const expectedState = openid.randomState();
  const expectedNonce = openid.randomNonce();
  const parameters = {
    redirect_uri: callbackUri,
    scope: "openid offline offline_access",
    code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: "S256",
    state: expectedState,
    nonce: expectedNonce,
    audience: apiAudience,
    prompt: "consent",
  };
  const target = isPushed
    ? await openid.buildAuthorizationUrlWithPAR(config, parameters, options)
    : openid.buildAuthorizationUrl(config, parameters);
  assert.equal(target.searchParams.has("request_uri"), isPushed);
  const html = await (await jar.fetch(target.href)).text();
  const page = Object.assign(hooksOf(html), { jar, html, pkce: { verifier: "", challenge: "" } });
  await approveByQr(world.baseUrl, page, identity);
  const callback = await finish(world.baseUrl, page);
  const checks = { pkceCodeVerifier, expectedState, expectedNonce, idTokenExpected: true };
  return openid.authorizationCodeGrant(config, callback, checks, undefined, options);
}

const subjectOf = ({ address }: Identity) => `svcid:${address}`;

test("openid-client logs in, reads userinfo, refreshes, introspects and revokes", async () => {
  const { id, secret } = world.client;
  const config = await discover(id, openid.ClientSecretBasic(secret));
  const alice = newIdentity();
  const tokens = await logIn(config, { identity: alice });
  assert.equal(tokens.token_type, "bearer");
  assert.equal(tokens.expires_in, 3600);
  assert.equal(tokens.claims()?.sub, subjectOf(alice));

  const user = await openid.fetchUserInfo(config, tokens.access_token, subjectOf(alice));
  assert.equal(user.sub, subjectOf(alice));

  const next = await openid.refreshTokenGrant(config, tokens.refresh_token ?? "");
  assert.equal(next.claims()?.sub, subjectOf(alice));
  assert.notEqual(next.refresh_token, tokens.refresh_token);

  const about = await openid.tokenIntrospection(config, next.access_token);
  assert.equal(about.active, true);
  assert.equal(about.sub, subjectOf(alice));
  assert.deepEqual(about.aud, [apiAudience]);

  await openid.tokenRevocation(config, next.refresh_token ?? "");
  assert.deepEqual(await openid.tokenIntrospection(config, next.access_token), { active: false });
  await assert.rejects(
    async () => openid.fetchUserInfo(config, next.access_token, subjectOf(alice)),
    openid.WWWAuthenticateChallengeError,
  );
  await assert.rejects(
    async () => openid.refreshTokenGrant(config, next.refresh_token ?? ""),
    (error: openid.ResponseBodyError) => error.error === "invalid_grant",
  );
});

test("openid-client logs in with a pushed request and the secret in the body", async () => {
  const { id, secret } = await world.addClient({ authenticationMethod: "client_secret_post" });
  const config = await discover(id, openid.ClientSecretPost(secret));
  const alice = newIdentity();
  const tokens = await logIn(config, { identity: alice, isPushed: true });
  assert.equal(tokens.claims()?.sub, subjectOf(alice));
});

for (const alg of ["RS256", "ES256"] as const) {
  test(`openid-client logs in with private_key_jwt, ${alg} on both sides`, async () => {
    const { privateKey, publicKey } = await generateKeyPair(alg);
    const { kty, n, e, crv, x, y } = await exportJWK(publicKey);
    const jwks = { keys: [JSON.parse(JSON.stringify({ kty, n, e, crv, x, y, alg, kid: "k1" }))] };
    const { id } = await world.addClient({
      authenticationMethod: "private_key_jwt",
      jwks,
      idTokenAlgorithm: alg,
    });
    const config = await discover(id, openid.PrivateKeyJwt({ key: privateKey, kid: "k1" }));
    // By default the library does not verify the signature of what it gets directly from the issuer.
    openid.enableNonRepudiationChecks(config);
    const alice = newIdentity();
    const tokens = await logIn(config, { identity: alice, isPushed: true });
    assert.equal(tokens.claims()?.sub, subjectOf(alice));
    const about = await openid.tokenIntrospection(config, tokens.access_token);
    assert.equal(about.active, true);
    await openid.tokenRevocation(config, tokens.access_token);
  });
}

test("openid-client binds its tokens to a DPoP key, and nobody else uses them", async () => {
  const { id, secret } = await world.addClient({ dpopRequired: true });
  const config = await discover(id, openid.ClientSecretBasic(secret));
  const DPoP = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair());
  const alice = newIdentity();
  const tokens = await logIn(config, { identity: alice, isPushed: true, options: { DPoP } });
  assert.equal(tokens.token_type, "dpop");
  const subject = subjectOf(alice);
  const user = await openid.fetchUserInfo(config, tokens.access_token, subject, { DPoP });
  assert.equal(user.sub, subject);
  const next = await openid.refreshTokenGrant(config, tokens.refresh_token ?? "", undefined, {
    DPoP,
  });
  assert.equal(next.token_type, "dpop");

  await assert.rejects(async () => openid.fetchUserInfo(config, next.access_token, subject));
  const stranger = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair());
  await assert.rejects(async () =>
    openid.fetchUserInfo(config, next.access_token, subject, { DPoP: stranger }),
  );
  await assert.rejects(
    async () => logIn(config),
    (error: openid.ResponseBodyError) => error.error === "invalid_request",
  );
});

test("openid-client logs in as a browser-only client, with PKCE alone", async () => {
  const { id } = await world.addClient({ authenticationMethod: "none" });
  const config = await discover(id, openid.None());
  const alice = newIdentity();
  const tokens = await logIn(config, { identity: alice });
  const user = await openid.fetchUserInfo(config, tokens.access_token, subjectOf(alice));
  assert.equal(user.sub, subjectOf(alice));
  const next = await openid.refreshTokenGrant(config, tokens.refresh_token ?? "");
  await openid.tokenRevocation(config, next.refresh_token ?? "");
  await assert.rejects(async () => openid.refreshTokenGrant(config, next.refresh_token ?? ""));
});

test("openid-client logs out at the service, and the session is over", async () => {
  const { id, secret } = world.client;
  const config = await discover(id, openid.ClientSecretBasic(secret));
  const jar = openJar();
  const tokens = await logIn(config, { jar });
  const silent = async (): Promise<URL> => {
    const challenge = await openid.calculatePKCECodeChallenge(openid.randomPKCECodeVerifier());
    const target = openid.buildAuthorizationUrl(config, {
      redirect_uri: callbackUri,
      scope: "openid offline offline_access",
      code_challenge: challenge,
      code_challenge_method: "S256",
      audience: apiAudience,
      prompt: "none",
    });
    const { headers } = await jar.fetch(target.href);
    return new URL(headers.get("location") ?? "");
  };
  assert.ok((await silent()).searchParams.has("code"), "the session answers without the wallet");

  const target = openid.buildEndSessionUrl(config, {
    id_token_hint: tokens.id_token ?? "",
    post_logout_redirect_uri: byeUri,
    state: "bye-1",
  });
  const response = await jar.fetch(target.href);
  assert.equal(response.status, 303);
  assert.equal(response.headers.get("location"), `${byeUri}?state=bye-1`);
  assert.equal((await silent()).searchParams.get("error"), "login_required");
});

test("openid-client gets a token of its own, which is nobody's userinfo", async () => {
  const { id, secret } = world.client;
  const config = await discover(id, openid.ClientSecretBasic(secret));
  const tokens = await openid.clientCredentialsGrant(config, { audience: apiAudience });
  assert.equal(tokens.token_type, "bearer");
  assert.equal(tokens.refresh_token, undefined);
  assert.equal(tokens.id_token, undefined);
  const about = await openid.tokenIntrospection(config, tokens.access_token);
  assert.equal(about.active, true);
  assert.deepEqual(about.aud, [apiAudience]);
  assert.equal(about.client_id, id);
  await assert.rejects(
    async () => openid.fetchUserInfo(config, tokens.access_token, id),
    openid.WWWAuthenticateChallengeError,
  );
});
