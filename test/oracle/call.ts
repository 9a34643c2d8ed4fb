// Makes the requests of a row and sends them.
import { createHash } from "node:crypto";
import { basicOf } from "../login-flow.ts";
import { makeJwt, newKey } from "./jwt.ts";
import { callback, type OracleClient } from "./party.ts";
import type { Call, Changes, ClientKind, JwtChange, Target, Text } from "./row.ts";
import { clientOf, goodRequest, newJti, nowSeconds, type Scene, tokenOf } from "./scene.ts";

/** An answer, read to its end. */
export interface Answer {
  readonly call: Call;
  readonly response: Response;
  readonly text: string;
}

type Pairs = [name: string, value: string][];

const paths: Record<Target, string> = {
  authorize: "/oauth2/auth",
  push: "/oauth2/par",
  code: "/oauth2/token",
  refresh: "/oauth2/token",
  machine: "/oauth2/token",
  userinfo: "/userinfo",
  introspect: "/oauth2/introspect",
  revoke: "/oauth2/revoke",
};

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** Sends a call and keeps what it gave. */
export async function send(scene: Scene, call: Call): Promise<Answer> {
  const answer = await sendCall(scene, call);
  keep(scene, answer);
  return answer;
}

/** Logs in, so that the scene has a code, and the browser a session. */
export async function logIn(scene: Scene): Promise<void> {
  const { login = {}, by } = scene.row;
  const kind = login.by ?? by;
  const answer = await sendCall(scene, {
    to: "authorize",
    ...(kind === undefined ? {} : { by: kind }),
    set: login.set ?? {},
  });
  const end = await scene.party.approve(scene.jar, answer.response, answer.text);
  const code = end.searchParams.get("code");
  if (code === null) throw new Error(`the login ended at ${end.href}`);
  scene.code = code;
}

async function sendCall(scene: Scene, call: Call): Promise<Answer> {
  const client = clientOf(scene, call.by);
  const good = { ...goodParameters(scene, call, client), ...proofParameters(scene, call, client) };
  const pairs = change(scene, good, call.set ?? {});
  const method =
    call.method ?? (call.to === "authorize" || call.to === "userinfo" ? "GET" : "POST");
  const as = call.as ?? (method === "GET" ? "query" : "form");
  const url = `${scene.party.issuer}${paths[call.to]}`;
  const headers = headersOf(scene, call, { client, method, url });
  const query =
    as === "query" && pairs.length > 0 ? `?${new URLSearchParams(pairs).toString()}` : "";
  const init: RequestInit = {
    method,
    headers,
    ...(method === "GET" || as === "query" ? {} : bodyOf(pairs, as)),
  };
  const response = await scene.jar.fetch(`${url}${query}`, init);
  return { call, response, text: await response.text() };
}

function bodyOf(pairs: Pairs, as: "form" | "json" | "text"): { body: string } {
  if (as === "json") return { body: JSON.stringify(Object.fromEntries(pairs)) };
  return { body: new URLSearchParams(pairs).toString() };
}

const contentTypes = {
  form: "application/x-www-form-urlencoded",
  json: "application/json",
  text: "text/plain",
  query: undefined,
};

function goodParameters(scene: Scene, call: Call, client: OracleClient): Record<string, string> {
  const good: Record<Target, () => Record<string, string>> = {
    authorize: () => goodRequest(scene, client),
    push: () => goodRequest(scene, client),
    code: () => ({
      grant_type: "authorization_code",
      code: scene.code,
      redirect_uri: callback,
      code_verifier: scene.pkce.verifier,
    }),
    refresh: () => ({
      grant_type: "refresh_token",
      refresh_token: tokenOf(scene, "refresh_token"),
    }),
    machine: () => ({ grant_type: "client_credentials" }),
    userinfo: () => ({}),
    introspect: () => ({ token: tokenOf(scene, "access_token") }),
    revoke: () => ({ token: tokenOf(scene, "access_token") }),
  };
  return good[call.to]();
}

const registeredProofs: Record<ClientKind, NonNullable<Call["proof"]>> = {
  basic: "basic",
  other: "basic",
  pushing: "basic",
  post: "post",
  key: "key",
  browser: "none",
};

function proofOf(scene: Scene, call: Call): Call["proof"] {
  if (call.to === "authorize" || call.to === "userinfo") return undefined;
  return call.proof ?? registeredProofs[call.by ?? scene.row.by ?? "basic"];
}

function proofParameters(scene: Scene, call: Call, client: OracleClient): Record<string, string> {
  const proof = proofOf(scene, call);
  if (proof === "none") return { client_id: client.id };
  if (proof === "post") return { client_id: client.id, client_secret: client.secret };
  if (proof !== "key") return {};
  if (call.assertion?.isRepeated !== true)
    scene.lastAssertion = makeAssertion(scene, client, call.assertion ?? {});
  return { client_assertion_type: assertionType, client_assertion: scene.lastAssertion };
}

function makeAssertion(scene: Scene, { id }: OracleClient, changed: JwtChange): string {
  const { key, issuer } = scene.party;
  const now = nowSeconds();
  const claims = { iss: id, sub: id, aud: issuer, jti: newJti(), iat: now, exp: now + 60 };
  return makeJwt(
    scene,
    { header: { alg: "ES256", kid: key.kid }, claims },
    { key, change: changed },
  );
}

interface Sending {
  readonly client: OracleClient;
  readonly method: string;
  readonly url: string;
}

function headersOf(scene: Scene, call: Call, sending: Sending): Record<string, string> {
  const { client, method } = sending;
  const as = call.as ?? (method === "GET" ? "query" : "form");
  const good: Record<string, Text | undefined> = {
    accept: call.to === "authorize" ? "text/html" : "application/json",
    "x-forwarded-for": scene.address,
    "content-type": contentTypes[as],
    authorization: authorizationOf(scene, call, client),
    dpop: call.dpop === undefined ? undefined : proofHeader(scene, call, sending),
    ...call.headers,
  };
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(good)) {
    if (value !== undefined) headers[name] = resolve(scene, value);
  }
  return headers;
}

function authorizationOf(scene: Scene, call: Call, client: OracleClient): string | undefined {
  if (call.to === "userinfo")
    return `${call.dpop === undefined ? "Bearer" : "DPoP"} ${tokenOf(scene, "access_token")}`;
  return proofOf(scene, call) === "basic" ? basic(client.id, client.secret) : undefined;
}

export const basic = (id: string, secret: string): string => basicOf({ id, secret });

function proofHeader(scene: Scene, call: Call, { method, url }: Sending): string {
  const changed = call.dpop ?? {};
  if (changed.isRepeated === true) return scene.lastProof;
  const token = call.to === "userinfo" ? tokenOf(scene, "access_token") : undefined;
  const ath =
    token === undefined ? {} : { ath: createHash("sha256").update(token).digest("base64url") };
  const key = changed.isOtherKey === true ? newKey() : scene.key;
  const header = { typ: "dpop+jwt", alg: "ES256", jwk: key.publicKey.export({ format: "jwk" }) };
  const claims = { htm: method, htu: url, jti: newJti(), iat: nowSeconds(), ...ath };
  scene.lastProof = makeJwt(scene, { header, claims }, { key, change: changed });
  return scene.lastProof;
}

function change(scene: Scene, good: Record<string, string>, changes: Changes): Pairs {
  const changed: Changes = { ...good, ...changes };
  return Object.entries(changed).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const values: readonly Text[] = typeof value === "object" ? value : [value];
    return values.map((each): [string, string] => [name, resolve(scene, each)]);
  });
}

function resolve(scene: Scene, text: Text): string {
  return typeof text === "function" ? text(scene) : text;
}

function keep(scene: Scene, { response, text, call }: Answer): void {
  if (!response.ok || call.to === "authorize" || text === "") return;
  const body = JSON.parse(text) as { access_token?: string; request_uri?: string };
  if (body.access_token !== undefined)
    scene.tokens.push({ ...body, access_token: body.access_token });
  if (body.request_uri !== undefined) scene.requestUri = body.request_uri;
}
