// The far end of the network for tests of the SDK and the shop: a broker on loopback that speaks the wire of the real
// one with real keys. Its "wallet" approves at once. It checks what a merchant must send, and lies when told to.
import { createHash, randomUUID } from "node:crypto";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTPayload } from "jose";

export const clientId = "shop-client";
/** Holds what form encoding changes: a client that skips it is refused. */
export const clientSecret = "s3cret:/+ %é";
export const audience = "https://api.example.com";
export const alice = "0x00000000000000000000000000000000000a11ce";
export const subject = `svcid:${alice}`;
export const logoutEvent = "http://schemas.openid.net/event/backchannel-logout";

interface Key {
  kid: string;
  alg: string;
  privateKey: CryptoKey;
  publicJwk: object;
}

interface Call {
  path: string;
  form: URLSearchParams;
}

export interface KycCall {
  headers: IncomingHttpHeaders;
  query: URLSearchParams;
  body: Record<string, unknown>;
}

/** Thrown by an endpoint of `kyc`. */
export class KycRefusal extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string) {
    super(reason);
    this.status = status;
    this.reason = reason;
  }
}

interface TokenAnswer {
  status: number;
  body: string;
  location?: string;
}

/** Changes to what is signed; a member set to undefined is left out. */
export interface Changes {
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
  key?: Key;
}

export type FakeIssuer = Awaited<ReturnType<typeof openFakeIssuer>>;

export async function makeKey(kid: string, alg = "RS256"): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return {
    kid,
    alg,
    privateKey,
    publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" },
  };
}

/** Shared by every fake issuer in this process, since making a key takes longer than most tests. */
const ownKeys = Promise.all([makeKey("rsa-1"), makeKey("ec-1", "ES256")]);

export async function openFakeIssuer() {
  const [rsa, ec] = await ownKeys;
  const fake = {
    url: "",
    now: 1_800_000_000,
    keys: [rsa, ec],
    calls: [] as Call[],
    /** The browser comes back with this `error` instead of a code. */
    refusal: undefined as string | undefined,
    /** Changes to the next id tokens, to the discovery document and to the callback's query. */
    idToken: {} as Changes,
    discovery: {} as Record<string, unknown>,
    callback: {} as Record<string, string>,
    /** The next answers of the token endpoint, before it works again. */
    tokenAnswers: [] as TokenAnswer[],
    /** Members of the token response that differ. */
    tokenMembers: {} as Record<string, unknown>,
    refreshTokens: new Set<string>(),
    /** Whether access tokens have expired, including new ones. */
    areAccessTokensOver: false,
    beforeNextUserinfo: undefined as (() => Promise<void>) | undefined,
    /** What every call with a token, or for one, gets. */
    tokenRefusal: undefined as { status: number; error?: string } | undefined,
    /**
     * Endpoints by method and path, each with its answer: of KYC the `data` of a success, else all of it. A refusal comes
     * in the envelope of errors.
     */
    kyc: new Map<string, (call: KycCall) => object | Promise<object>>(),
    authorizations: new Map<string, URLSearchParams>(),
    countOf: (path: string) => fake.calls.filter((call) => call.path === path).length,

    idClaims: (): JWTPayload => ({
      iss: fake.url,
      sub: subject,
      aud: clientId,
      iat: fake.now,
      exp: fake.now + 3600,
      auth_time: fake.now,
      sid: "sid-1",
      acr: "urn:svc:acr:qr-near",
      amr: ["pop"],
    }),
    accessClaims: (): JWTPayload => ({
      iss: fake.url,
      sub: subject,
      aud: [audience],
      client_id: clientId,
      scope: "openid offline offline_access",
      jti: randomUUID(),
      iat: fake.now,
      nbf: fake.now,
      exp: fake.now + 3600,
    }),
    logoutClaims: (): JWTPayload => ({
      iss: fake.url,
      sub: subject,
      aud: clientId,
      sid: "sid-1",
      iat: fake.now,
      exp: fake.now + 120,
      jti: randomUUID(),
      events: { [logoutEvent]: {} },
    }),
    sign: (typ: string, claims: JWTPayload, { header, claims: other, key = rsa }: Changes = {}) =>
      new SignJWT({ ...claims, ...other })
        .setProtectedHeader({ alg: key.alg, kid: key.kid, typ, ...header })
        .sign(key.privateKey),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
  const server = createServer((request, response) => {
    const fail = (error: unknown) => response.writeHead(500).end(String(error));
    answer(fake, request, response).catch(fail);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  fake.url = `http://localhost:${(server.address() as AddressInfo).port}`;
  return fake;
}

const tokenPaths = new Set(["/oauth2/token", "/oauth2/revoke", "/userinfo"]);

async function answer(
  fake: FakeIssuer,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? "/", fake.url);
  const posted = await text(request);
  const form = request.method === "POST" ? new URLSearchParams(posted) : url.searchParams;
  fake.calls.push({ path: url.pathname, form });
  const json = (status: number, body: unknown) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  const to = (location: string) => response.writeHead(303, { location }).end();
  if (fake.tokenRefusal !== undefined && tokenPaths.has(url.pathname)) {
    const { status, ...body } = fake.tokenRefusal;
    if (status === 429) response.setHeader("retry-after", 7);
    return json(status, body);
  }
  switch (url.pathname) {
    case "/.well-known/openid-configuration":
      return json(200, { ...discoveryOf(fake.url), ...fake.discovery });
    case "/.well-known/jwks.json":
      return json(200, { keys: fake.keys.map((key) => key.publicJwk) });
    case "/oauth2/auth":
      return void to(authorize(fake, form));
    case "/oauth2/token":
      return token(fake, { form, authorization: request.headers.authorization }, response);
    case "/oauth2/revoke":
      fake.refreshTokens.delete(form.get("token") ?? "");
      return void response.writeHead(200).end();
    case "/userinfo":
      await holdUserinfo(fake);
      return request.headers.authorization?.startsWith("Bearer ey") === true &&
        !fake.areAccessTokensOver
        ? json(200, { sub: subject })
        : json(401, {});
    case "/oauth2/sessions/logout":
      return void to(form.get("post_logout_redirect_uri") ?? `${fake.url}/logged-out`);
    case "/health/ready":
      return json(200, { now: fake.now });
    default:
      return answerKyc(fake, `${request.method} ${url.pathname}`, {
        json,
        call: {
          headers: request.headers,
          query: url.searchParams,
          body: posted.startsWith("{") ? JSON.parse(posted) : {},
        },
      });
  }
}

async function holdUserinfo(fake: FakeIssuer): Promise<void> {
  const hold = fake.beforeNextUserinfo;
  fake.beforeNextUserinfo = undefined;
  await hold?.();
}

async function answerKyc(
  fake: FakeIssuer,
  route: string,
  { json, call }: { json: (status: number, body: unknown) => void; call: KycCall },
): Promise<void> {
  const endpoint = fake.kyc.get(route);
  if (endpoint === undefined) return json(404, {});
  try {
    const data = await endpoint(call);
    const isWrapped = /^\w+ \/api\/v\d\/(?:kyc|blockchain)\//.test(route);
    return json(200, isWrapped ? { data, message: "done", success: true } : data);
  } catch (error) {
    if (!(error instanceof KycRefusal)) throw error;
    const { status, reason } = error;
    return json(status, { success: false, error: { code: status, reason, requestId: "req_1" } });
  }
}

function discoveryOf(url: string) {
  return {
    issuer: url,
    authorization_endpoint: `${url}/oauth2/auth`,
    token_endpoint: `${url}/oauth2/token`,
    userinfo_endpoint: `${url}/userinfo`,
    revocation_endpoint: `${url}/oauth2/revoke`,
    end_session_endpoint: `${url}/oauth2/sessions/logout`,
    jwks_uri: `${url}/.well-known/jwks.json`,
    id_token_signing_alg_values_supported: ["RS256", "ES256"],
  };
}

function authorize(fake: FakeIssuer, query: URLSearchParams): string {
  const back = new URL(query.get("redirect_uri") ?? "");
  const code = randomUUID();
  fake.authorizations.set(code, query);
  const members = {
    state: query.get("state") ?? "",
    iss: fake.url,
    ...(fake.refusal === undefined
      ? { code }
      : { error: fake.refusal, error_description: `about ${fake.refusal}` }),
    ...fake.callback,
  };
  for (const [name, value] of Object.entries(members)) back.searchParams.set(name, value);
  return back.href;
}

interface TokenRequest {
  form: URLSearchParams;
  authorization: string | undefined;
}

async function token(
  fake: FakeIssuer,
  request: TokenRequest,
  response: ServerResponse,
): Promise<void> {
  const { form } = request;
  const refusal = refuseClient(request) ?? refuseGrant(fake, form);
  const refused =
    refusal === undefined ? undefined : { status: 400, body: JSON.stringify({ error: refusal }) };
  const planned: TokenAnswer | undefined = fake.tokenAnswers.shift() ?? refused;
  if (planned !== undefined) {
    const { status, body, location } = planned;
    response
      .writeHead(status, { "content-type": "application/json", ...(location && { location }) })
      .end(body);
    return;
  }
  const authorization = fake.authorizations.get(form.get("code") ?? "");
  fake.authorizations.delete(form.get("code") ?? "");
  fake.refreshTokens.delete(form.get("refresh_token") ?? "");
  const refreshToken = randomUUID();
  fake.refreshTokens.add(refreshToken);
  const accessToken = await fake.sign("at+jwt", fake.accessClaims());
  const nonce = authorization?.get("nonce") ?? undefined;
  const claims = { ...fake.idClaims(), nonce, at_hash: hashOf(accessToken) };
  const body = {
    access_token: accessToken,
    id_token: await fake.sign("JWT", claims, fake.idToken),
    refresh_token: refreshToken,
    expires_in: 3600,
    token_type: "bearer",
    ...fake.tokenMembers,
  };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function refuseClient({ form, authorization }: TokenRequest): string | undefined {
  if (authorization === undefined)
    return form.get("client_id") === "browser-client" ? undefined : "invalid_client";
  const [id, secret] = Buffer.from(authorization.slice("Basic ".length), "base64")
    .toString()
    .split(":");
  return decode(id) === clientId && decode(secret) === clientSecret ? undefined : "invalid_client";
}

function decode(part = ""): string | null {
  return new URLSearchParams(`x=${part}`).get("x");
}

function refuseGrant(fake: FakeIssuer, form: URLSearchParams): string | undefined {
  if (form.get("grant_type") === "refresh_token") {
    return fake.refreshTokens.has(form.get("refresh_token") ?? "") ? undefined : "invalid_grant";
  }
  const authorization = fake.authorizations.get(form.get("code") ?? "");
  const challenge = createHash("sha256")
    .update(form.get("code_verifier") ?? "")
    .digest("base64url");
  const isSame = authorization?.get("redirect_uri") === form.get("redirect_uri");
  return isSame && authorization.get("code_challenge") === challenge ? undefined : "invalid_grant";
}

/** `at_hash`. */
export function hashOf(accessToken: string): string {
  return createHash("sha256").update(accessToken).digest().subarray(0, 16).toString("base64url");
}
