import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import type { PoolConfig } from "pg";
import { openClients } from "../accounts/index.ts";
import { createAudit } from "../platform/audit/audit.ts";
import { parseConfig } from "../platform/config/config.ts";
import type { Ctx } from "../platform/context.ts";
import { openDb } from "../platform/database/db.ts";
import { createHttp, type Http } from "../platform/http/http.ts";
import { openInstallationKeys } from "../platform/cryptography/installation-keys.ts";
import { createLog } from "../platform/telemetry/log.ts";
import { createMetrics } from "../platform/telemetry/metrics.ts";
import { openNotifications } from "../platform/database/notifications.ts";
import { createOutbound, type Outbound } from "../platform/outbound/outbound.ts";
import { createRandom } from "../platform/cryptography/random.ts";
import { createRateLimiter } from "../platform/rate-limit.ts";
import { sha256 } from "../platform/cryptography/sha256.ts";
import { createSeal } from "../platform/cryptography/seal.ts";
import { countWithoutNotes } from "../platform/database/test-call-count-store.ts";
import {
  type Filling,
  openTestDatabase,
  type TestDatabase,
} from "../platform/database/test-database.ts";
import type { BusinessDirectory } from "./business/business-directory.ts";
import { createLiveClaims } from "./token/live-claims.ts";
import { createRefreshSuccessors } from "./token/refresh-successors.ts";
import { openSigningKeys } from "./keys/signing-keys.ts";
import * as store from "./test-login-store.ts";
import { familyOf, readAccessToken } from "./token/access-token.ts";
import { makeCode } from "./token/authorization-code.ts";
import type { TokenContext } from "./token-context.ts";
import { tokenRoutes } from "./token/token-routes.ts";

/** Time that stands still until a test moves it; shared by the processes that a test plays. */
export interface TestClock {
  now(): number;
  nowMs(): number;
  advance(seconds: number): void;
}

export function createTestClock(): TestClock {
  let ms = 1_800_000_000_000;
  return {
    nowMs: () => ms,
    now: () => Math.floor(ms / 1000),
    advance(seconds) {
      ms += seconds * 1000;
    },
  };
}

/** One process of the token side over a real database. */
export interface TestLogin extends AsyncDisposable {
  readonly ctx: TokenContext;
  readonly clock: TestClock;
  readonly http: Http;
  readonly database: TestDatabase;
}

export interface TestLoginOptions {
  /** A second process shares these with the first. */
  readonly with?: TestLogin;
  readonly environment?: NodeJS.ProcessEnv;
  readonly outbound?: Outbound;
  readonly connections?: number;
}

/** Tests of this slice know no businesses. */
const noBusinesses: BusinessDirectory = {
  ask: async () => {
    throw new Error("there are no businesses here");
  },
  withdraw: async () => undefined,
  noteAcquaintance: async () => undefined,
  findDomain: async () => null,
  readSeat: () => {
    throw new Error("there are no businesses here");
  },
};

const masterKey = "5a".repeat(32);

/** The context in which keys are made; closes with the notifications and the database. */
async function openKeyContext(
  connection: PoolConfig,
  clock: TestClock,
  options: TestLoginOptions = {},
): Promise<Ctx> {
  const config = parseConfig({ PORT: "4000", LOG_LEVEL: "silent", ...options.environment });
  const db = countWithoutNotes(openDb({ ...connection, connections: options.connections ?? 4 }));
  const notifications = await openNotifications(db, { onFault: () => undefined });
  const base = {
    config,
    db,
    clock,
    notifications,
    random: createRandom(),
    seal: createSeal([masterKey]),
    log: createLog({ level: "silent" }),
    metrics: createMetrics(),
    outbound: options.outbound ?? createOutbound({ profile: "dev", ownHosts: [] }),
    resolveTxt: async () => [],
    limits: createRateLimiter({ db, clock }, { limitLoopback: true }),
  };
  const keys = await openInstallationKeys(base);
  return { ...base, keys, audit: createAudit({ ...base, keys }) };
}

/** Making RSA keys takes longer than most tests, so each begins with keys that were made once. */
const signingKeys: Filling = {
  name: "login_keys",
  async fill(url) {
    const ctx = await openKeyContext({ connectionString: url }, createTestClock());
    const keys = await openSigningKeys(ctx);
    await keys[Symbol.asyncDispose]();
    await ctx.notifications.close();
    await ctx.outbound.close();
    await ctx.db.close();
  },
};

export async function openTestLogin(options: TestLoginOptions = {}): Promise<TestLogin> {
  const database = options.with?.database ?? (await openTestDatabase({ filling: signingKeys }));
  const clock = options.with?.clock ?? createTestClock();
  const withKeys = await openKeyContext(database.connection, clock, options);
  const clients = await openClients(withKeys);
  const ctx = {
    ...withKeys,
    clients,
    businesses: noBusinesses,
    signingKeys: await openSigningKeys(withKeys),
    successors: createRefreshSuccessors(withKeys),
    findLiveClaims: createLiveClaims(withKeys),
  };
  const http = createHttp(ctx);
  await tokenRoutes(ctx, http);
  await http.ready();
  return {
    ctx,
    clock,
    http,
    database,
    async [Symbol.asyncDispose]() {
      await http.close();
      await clients[Symbol.asyncDispose]();
      await ctx.notifications.close();
      await ctx.outbound.close();
      await ctx.db.close();
      if (options.with === undefined) await database[Symbol.asyncDispose]();
    },
  };
}

export interface TestClient {
  readonly id: string;
  readonly secret: string;
  /** Value of the `Authorization` header. */
  readonly basic: string;
}

export const redirectUri = "https://shop.example/callback";

export async function addClient(
  login: TestLogin,
  settings: Partial<store.TestClientRow> = {},
): Promise<TestClient> {
  const id = randomUUID();
  const secret = randomBytes(32).toString("base64url");
  const method = settings.method ?? "client_secret_basic";
  await store.insertTestClient(login.ctx.db, {
    id,
    method,
    redirectUris: [redirectUri],
    audiences: ["https://api.example.com"],
    postLogoutRedirectUris: ["https://shop.example/bye"],
    backchannelLogoutUri: null,
    jwks: null,
    jwksUri: null,
    dpopRequired: false,
    idTokenAlgorithm: "RS256",
    secretSha256: method.startsWith("client_secret") ? sha256(secret) : null,
    ...settings,
  });
  return { id, secret, basic: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}` };
}

export interface TestCode {
  readonly code: string;
  readonly verifier: string;
  readonly sessionId: string;
  /** Value of the session cookie. */
  readonly sessionSecret: string;
}

export const user = "0x52908400098527886e0f7030069857d2e4169ee7";

/** A code as the authorization endpoint leaves it behind. */
export async function addCode(
  login: TestLogin,
  client: TestClient,
  request: Record<string, unknown> & { scope?: string } = {},
): Promise<TestCode> {
  const code = makeCode(login.ctx.random, randomBytes(16).toString("base64url"));
  const verifier = randomBytes(32).toString("base64url");
  const sessionSecret = randomBytes(32).toString("base64url");
  const sessionId = randomUUID();
  const scope = request.scope ?? "openid offline_access";
  const now = login.clock.now();
  await store.insertTestLogin(login.ctx.db, {
    clientId: client.id,
    user,
    sessionId,
    sessionSecretSha256: sha256(sessionSecret),
    request: {
      redirectUri,
      scope,
      nonce: "n-1",
      codeChallenge: sha256(verifier).toString("base64url"),
      audience: [],
      prompt: [],
      wantsRefresh: scope.includes("offline"),
      ...request,
    },
    code,
    now,
    codeExpiresAt: now + login.ctx.config.codeLifetimeSeconds,
  });
  return { code: code.text, verifier, sessionId, sessionSecret };
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

/** Sends a form. A list repeats its parameter; undefined leaves it out. */
export async function post(
  login: TestLogin,
  path: string,
  call: {
    form?: Record<string, string | readonly string[] | undefined>;
    headers?: Record<string, string | undefined>;
  },
): Promise<Answer> {
  const pairs = Object.entries(call.form ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((each) => [name, each] as [string, string]),
  );
  const headers = Object.entries(call.headers ?? {}).filter(([, value]) => value !== undefined);
  const response = await login.http.inject({
    method: "POST",
    url: path,
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      ...(Object.fromEntries(headers) as Record<string, string>),
    },
    payload: new URLSearchParams(pairs).toString(),
  });
  return answerOf(response);
}

export async function get(
  login: TestLogin,
  path: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return answerOf(await login.http.inject({ method: "GET", url: path, headers }));
}

export function answerOf(response: {
  statusCode: number;
  headers: Readonly<Record<string, unknown>>;
  body: string;
}): Answer {
  const isJson = String(response.headers["content-type"]).startsWith("application/json");
  const body = isJson ? (JSON.parse(response.body) as Record<string, unknown>) : {};
  return { status: response.statusCode, headers: response.headers, text: response.body, body };
}

/** Redeems a code as its client would; `form` and `headers` change the request. */
export async function redeem(
  login: TestLogin,
  client: TestClient,
  given: TestCode & {
    form?: Record<string, string | readonly string[] | undefined>;
    headers?: Record<string, string | undefined>;
  },
): Promise<Answer> {
  const form = {
    grant_type: "authorization_code",
    code: given.code,
    redirect_uri: redirectUri,
    code_verifier: given.verifier,
    ...given.form,
  };
  return post(login, "/oauth2/token", {
    form,
    headers: { authorization: client.basic, ...given.headers },
  });
}

export async function refresh(
  login: TestLogin,
  client: TestClient,
  token: unknown,
): Promise<Answer> {
  return refreshAs(login, client, { refresh_token: String(token) });
}

/** A refresh with more parameters than its token. */
export async function refreshAs(
  login: TestLogin,
  client: TestClient,
  form: Record<string, string>,
): Promise<Answer> {
  return post(login, "/oauth2/token", {
    form: { grant_type: "refresh_token", ...form },
    headers: { authorization: client.basic },
  });
}

/** The claims of a JWT, unverified. */
export function claimsOf(token: unknown): Record<string, unknown> {
  const [, claims = ""] = String(token).split(".");
  return JSON.parse(Buffer.from(claims, "base64url").toString("utf8")) as Record<string, unknown>;
}

/** Asserts that a token endpoint refuses, and that nobody keeps the answer (RFC 6749 section 5.2). */
export function refused(answer: Answer, status: number, error: string): void {
  assert.deepEqual([answer.status, answer.body["error"]], [status, error], answer.text);
  assert.equal(answer.headers["cache-control"], "no-store");
}

/** Why the family of an access token was revoked; null where it was not. */
export async function familyStateOf(
  login: TestLogin,
  accessToken: unknown,
): Promise<string | null | undefined> {
  const claims = readAccessToken(login.ctx, String(accessToken));
  assert.ok(claims);
  const rows = await store.listTestFamilies(login.ctx.db);
  return rows.find((row) => row.id === familyOf(claims))?.revokedReason;
}
