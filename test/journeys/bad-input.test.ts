// Every route answers every malformed request with its documented error: never 5xx, nothing half-written.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createApiKey } from "../../service/src/accounts/index.ts";
import { askPlainly } from "../kept-connection.ts";
import { openPage } from "../login-flow.ts";
import { newIdentity, scan } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
let apiKey: string;
/** A request that hangs is a fault like any other. */
const ask = askPlainly;

before(async () => {
  world = await openWorld();
  const { ctx, clientDomainId } = world;
  apiKey = (await createApiKey(ctx, { clientDomainId, name: "Test" }, "test")).key;
});
after(async () => world[Symbol.asyncDispose]());

interface Route {
  readonly method: string;
  readonly path: string;
}

/** Routes that the reference does not list: the page's own. */
const pageRoutes: readonly Route[] = [
  { method: "GET", path: "/oauth2/login/{loginId}" },
  { method: "GET", path: "/oauth2/login/{loginId}/events" },
  { method: "GET", path: "/oauth2/login/{loginId}/status" },
  { method: "POST", path: "/oauth2/login/{loginId}/finish" },
  { method: "POST", path: "/oauth2/login/{loginId}/continue" },
  { method: "POST", path: "/oauth2/login/{loginId}/show-code" },
  { method: "POST", path: "/oauth2/login/{loginId}/restart" },
  { method: "GET", path: "/w/b/{loginId}" },
  { method: "GET", path: "/oauth2/assets/{name}" },
];

async function listRoutes(): Promise<Route[]> {
  const document = (await (await ask(`${world.baseUrl}/openapi.json`)).json()) as {
    openapi: string;
    paths: Record<string, Record<string, unknown>>;
  };
  assert.match(document.openapi, /^3\.1/);
  const listed = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })),
  );
  return [...listed, ...pageRoutes];
}

function fill(path: string, value: string): string {
  return world.baseUrl + path.replaceAll(/\{[^}]+\}/g, encodeURIComponent(value));
}

const deep = `${"[".repeat(40)}${"]".repeat(40)}`;
const bodies: readonly { name: string; type?: string; body: string | Uint8Array }[] = [
  { name: "no content type", body: "x" },
  { name: "plain text", type: "text/plain;charset=UTF-8", body: "x" },
  { name: "empty JSON", type: "application/json", body: "" },
  { name: "broken JSON", type: "application/json", body: '{"a":' },
  { name: "JSON null", type: "application/json", body: "null" },
  { name: "JSON array", type: "application/json", body: "[]" },
  { name: "JSON number", type: "application/json", body: "5" },
  { name: "deep JSON", type: "application/json", body: deep },
  {
    name: "wide JSON",
    type: "application/json",
    body: JSON.stringify({
      session: { a: [1] },
      svcID: 5,
      claim: null,
      signature: [],
      challenge: {},
      deadline: "x",
    }),
  },
  {
    name: "JSON with NUL",
    type: "application/json",
    body: '{"session":"\\u0000","svcID":"a","claim":"b"}',
  },
  {
    name: "JSON with a lone surrogate",
    type: "application/json",
    body: '{"session":"\\ud800","svcID":"a","claim":"b"}',
  },
  { name: "JSON with __proto__", type: "application/json", body: '{"__proto__":{"a":1}}' },
  {
    name: "JSON in UTF-16",
    type: "application/json; charset=utf-16",
    body: new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0]),
  },
  {
    name: "invalid UTF-8",
    type: "application/json",
    body: new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  },
  {
    name: "too large",
    type: "application/json",
    body: JSON.stringify({ session: "x".repeat(70_000) }),
  },
  { name: "empty form", type: "application/x-www-form-urlencoded", body: "" },
  { name: "broken form", type: "application/x-www-form-urlencoded", body: "%zz=%&=&&a=%ff" },
  {
    name: "form with NUL",
    type: "application/x-www-form-urlencoded",
    body: "client_id=%00&token=%00&grant_type=a",
  },
  {
    name: "repeated parameters",
    type: "application/x-www-form-urlencoded",
    body: "client_id=a&client_id=b&token=a&token=b&grant_type=a&grant_type=b&code=1&code=2",
  },
  {
    name: "over-long values",
    type: "application/x-www-form-urlencoded",
    body: `client_id=${"a".repeat(9000)}&token=${"b".repeat(9000)}&grant_type=refresh_token&refresh_token=${"c".repeat(9000)}`,
  },
  {
    name: "too many parameters",
    type: "application/x-www-form-urlencoded",
    body: Array.from({ length: 200 }, (_, index) => `p${index}=1`).join("&"),
  },
  { name: "multipart", type: "multipart/form-data; boundary=x", body: "--x--" },
  { name: "XML", type: "text/xml", body: "<a/>" },
];

const queries = [
  "",
  "?a=1&a=2",
  "?client_id=a&client_id=b",
  "?%zz=%",
  "?x=%00",
  `?state=${"s".repeat(6000)}`,
  "?response_type[]=code",
  "?limit=-1&cursor=%27",
  "?signature=1&session=2&svcID=3",
  "?after=%F0%9F%92%A9".repeat(1),
];
const segments = [
  "x",
  "a".repeat(22),
  "..%2f..",
  "%00",
  "%ff",
  "a".repeat(400),
  "00000000-0000-0000-0000-000000000000",
  "' or 1=1 --",
  "${7*7}",
  "💩",
];

/** API calls carry a valid key. */
function keyOf({ path }: Route): Record<string, string> {
  return path.startsWith("/api/") ? { authorization: apiKey } : {};
}

async function counts(): Promise<Record<string, number>> {
  const tables = [
    "login",
    "session",
    "token_family",
    "svc_user",
    "pushed_request",
    "used_once",
    "wallet_session",
    "audit_entry",
    "logout_delivery",
    "oauth_client",
    "client_secret",
    "api_key",
    "kyc_order",
    "kyc_token",
    "kyc_package",
    "credential",
    "webhook_event",
    "mailbox",
    "email_verification",
  ];
  const text = `select ${tables.map((table) => `(select count(*)::int from ${table}) as ${table}`).join(", ")}`;
  const [row] = await world.ctx.db.query<Record<string, number>>({ name: "", text, values: [] });
  return row ?? {};
}

/** The documented shape of a refusal: envelope, OAuth error, or page. */
async function checkShape(route: Route, response: Response, label: string): Promise<void> {
  const type = response.headers.get("content-type") ?? "";
  const text = await response.text();
  assert.ok(response.status < 500, `${label} answered ${response.status}: ${text.slice(0, 200)}`);
  if (response.status < 400) return;
  assert.match(response.headers.get("x-request-id") ?? "", /^req_/, label);
  if (type.startsWith("text/html")) return assert.match(text, /req_/, label);
  const body = JSON.parse(text) as {
    error?: unknown;
    error_description?: unknown;
    success?: unknown;
  };
  if (typeof body.error === "string")
    return assert.equal(typeof body.error_description, "string", label);
  const { code, reason, message, requestId } = body.error as Record<string, unknown>;
  assert.equal(body.success, false, label);
  assert.equal(code, response.status, label);
  assert.ok(
    typeof reason === "string" && typeof message === "string" && typeof requestId === "string",
    label,
  );
  assert.ok(route.path !== "/oauth2/token", `${label}: the token endpoint answers OAuth errors`);
}

test("malformed bodies, queries and paths are refused in the documented shape, and nothing is written", async () => {
  const routes = await listRoutes();
  assert.ok(routes.length > 20, "the reference lists the routes");
  const counted = await counts();
  for (const route of routes) {
    const withBody = route.method === "POST" || route.method === "PUT";
    const variants = withBody ? bodies : [{ name: "none", body: "" }];
    for (const { name, type, body } of variants) {
      const init = withBody
        ? {
            method: route.method,
            body,
            headers: { ...keyOf(route), ...(type === undefined ? {} : { "content-type": type }) },
          }
        : { method: route.method, headers: keyOf(route) };

      const response = await ask(fill(route.path, "a".repeat(22)), init);
      await checkShape(route, response, `${route.method} ${route.path} with ${name}`);
      if (name === "too large") {
        // Other refusals may come before that of the size: of the type where only forms are taken, of the key for
        // issuers, of the entitlement for businesses, of the session for large bodies of wallets. Routes of values take
        // far more, and JSON-RPC has errors of its own.
        const isLarge = ["/w/mailbox", "/w/relay"].includes(route.path);
        const isKeyFirst = isLarge || route.path.startsWith("/api/v1/issuer");
        const isKyb = route.path.startsWith("/api/v1/kyb/");
        const others = route.path === "/w/chain" ? [200] : [413, 415, 400, 404];
        const statuses = isKeyFirst ? [401] : [...others, ...(isKyb ? [403] : [])];
        assert.ok(statuses.includes(response.status), `${route.method} ${route.path}`);
      }
    }
    for (const query of queries) {
      const response = await ask(fill(route.path, "a".repeat(22)) + query, {
        method: route.method,
        headers: keyOf(route),
      });
      await checkShape(route, response, `${route.method} ${route.path}${query.slice(0, 40)}`);
    }
    if (!route.path.includes("{")) continue;
    for (const segment of segments) {
      const response = await ask(fill(route.path, segment), {
        method: route.method,
        headers: keyOf(route),
      });
      await checkShape(route, response, `${route.method} ${route.path} of ${segment.slice(0, 40)}`);
    }
  }
  assert.deepEqual(await counts(), counted);
});

test("a JSON body that is not UTF-8 is refused: no byte of it is replaced by another", async () => {
  for (const type of ["application/json", "application/json; charset=iso-8859-1"]) {
    const user = newIdentity().address;
    const stored = { user, infos: [{ field: "IDCARD_LAST_NAME", data: "Müller", pepper: "00" }] };
    const response = await ask(`${world.baseUrl}/api/v1/blockchain/valid`, {
      method: "POST",
      headers: { authorization: apiKey, "content-type": type },
      body: Buffer.from(JSON.stringify(stored), "latin1"),
    });
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    assert.equal(error["reason"], "malformed_request", type);
    assert.equal(error["message"], "Invalid Request: the body is not UTF-8");
  }
});

test("32 levels of a body are read and 33 are not, whether the innermost is empty or not", async () => {
  for (const inner of ["", "1"])
    for (const [levels, said] of [
      [31, /user is missing/],
      [32, /nested deeper than 32/],
    ] as const) {
      const more = "[".repeat(levels) + inner + "]".repeat(levels);
      const response = await ask(`${world.baseUrl}/api/v1/blockchain/valid`, {
        method: "POST",
        headers: { authorization: apiKey, "content-type": "application/json" },
        body: `{"more":${more}}`,
      });
      assert.equal(response.status, 400);
      assert.match(await response.text(), said, more);
    }
});

async function sendCoded(path: string, type: string, coding: string): Promise<Response> {
  return ask(world.baseUrl + path, {
    method: "POST",
    headers: { authorization: apiKey, "content-type": type, "content-encoding": coding },
    body: type === "application/json" ? "{}" : "grant_type=client_credentials",
  });
}

test("a compressed body is refused as such, in the shape of its route", async () => {
  const form = "application/x-www-form-urlencoded";
  const said = "the body must be sent without a Content-Encoding";
  for (const coding of ["gzip", "br", "identity, gzip"]) {
    const api = await sendCoded("/api/v1/blockchain/valid", "application/json", coding);
    const { error } = (await api.json()) as { error: Record<string, unknown> };
    assert.deepEqual(
      [api.status, error["reason"], error["message"]],
      [415, "unsupported_media_type", said],
    );
    for (const path of ["/oauth2/token", "/oauth2/par", "/oauth2/introspect", "/oauth2/revoke"]) {
      const oauth = await sendCoded(path, form, coding);
      const body = { error: "invalid_request", error_description: said };
      assert.deepEqual([oauth.status, await oauth.json()], [415, body], path);
      assert.equal(oauth.headers.get("accept-encoding"), "identity", path);
    }
    const page = await sendCoded("/oauth2/auth", form, coding);
    assert.equal(page.status, 415);
    assert.match(await page.text(), new RegExp(said));
    assert.equal(api.headers.get("accept-encoding"), "identity");
    assert.equal(page.headers.get("accept-encoding"), "identity");
  }
  const taken = await sendCoded("/oauth2/token", form, "Identity");
  assert.equal(taken.status, 401);
});

test("what cannot be read is refused as the document says of every route", async () => {
  const { info } = (await (await ask(`${world.baseUrl}/openapi.json`)).json()) as {
    info: { description: string };
  };
  const headers = { authorization: apiKey };
  for (const segment of ["%E0%A4%A", "a".repeat(5000)]) {
    const response = await ask(`${world.baseUrl}/api/v1/kyb/status/${segment}`, { headers });
    const { error } = (await response.json()) as { error: { code: number; reason: string } };
    assert.match(info.description, new RegExp(`${error.code} \`${error.reason}\``));
  }
  for (const reason of ["408 `request_timeout`", "431 `headers_too_large`"])
    assert.ok(info.description.includes(reason), reason);
});

async function refusalOf(path: string, method: string, body?: object): Promise<string> {
  const headers = { authorization: apiKey, "content-type": "application/json" };
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  const answer = (await (await ask(world.baseUrl + path, init)).json()) as {
    error: { message: string };
  };
  return answer.error.message;
}

test("a refused call is told which of its members is missing, unknown or of another form", async () => {
  const stored = { user: newIdentity().address, infos: [{ field: "EMAIL", pepper: "00" }] };
  assert.equal(
    await refusalOf("/api/v1/blockchain/valid", "POST", stored),
    "Invalid Request: infos[0].data is missing",
  );
  const endpoint = { url: "https://shop.example/hook", urls: [] };
  assert.equal(
    await refusalOf("/api/v1/kyb/webhook-endpoint", "PUT", endpoint),
    "malformed_request: urls is unknown",
  );
  const limit = "Invalid Request: limit must be a whole number from 1 to 100";
  for (const given of ["0", "101", "1.5", ""])
    assert.equal(await refusalOf(`/api/v2/kyc/orders?limit=${given}`, "GET"), limit);
});

test("a path under another method answers 405 in the shape of its other refusals and says which it takes; an unknown path 404 in the envelope", async () => {
  for (const route of await listRoutes()) {
    const response = await ask(fill(route.path, "a".repeat(22)), {
      method: "PATCH",
    });
    assert.equal(response.status, 405, route.path);
    assert.ok(response.headers.get("allow")?.includes(route.method), route.path);
    await checkShape(route, response, `PATCH ${route.path}`);
  }
  for (const path of ["/", "/nothing", "/oauth2", "/api/v1/kyc/qrcode", "/w/l", "/oauth2/token/"]) {
    const response = await ask(world.baseUrl + path);
    assert.equal(response.status, 404, path);
    const body = (await response.json()) as { error: { reason: string } };
    assert.equal(body.error.reason, "route_not_found");
  }
});

test("whoever sends neither key nor session is told by a challenge what to send", async () => {
  const refused = { key: 0, session: 0 };
  for (const { method, path } of await listRoutes()) {
    const isWallet = path.startsWith("/w/");
    if (!isWallet && !path.startsWith("/api/")) continue;
    const body = method === "GET" || method === "HEAD" ? {} : { body: "{}" };
    const headers = { "content-type": "application/json" };
    const answer = await ask(fill(path, "x"), { method, headers, ...body });
    await answer.arrayBuffer();
    const challenge = answer.headers.get("www-authenticate");
    if (answer.status !== 401) {
      assert.equal(challenge, null, `${method} ${path}`);
      continue;
    }
    const expected = isWallet ? 'Bearer realm="svc"' : 'ApiKey realm="svc"';
    assert.equal(challenge, expected, `${method} ${path}`);
    refused[isWallet ? "session" : "key"] += 1;
  }
  assert.ok(refused.key >= 30 && refused.session >= 5, JSON.stringify(refused));
});

test("HEAD asks for the header lines of what monitors and caches read, and for nothing that a GET would begin", async () => {
  for (const path of [
    "/health/alive",
    "/health/ready",
    "/openapi.json",
    "/.well-known/openid-configuration",
    "/.well-known/oauth-authorization-server",
    "/.well-known/jwks.json",
    "/.well-known/wallet-jwks.json",
    "/.well-known/kyb-jwks.json",
  ]) {
    const url = world.baseUrl + path;
    const [head, get] = [await ask(url, { method: "HEAD" }), await ask(url)];
    assert.deepEqual([head.status, await head.text()], [200, ""], path);
    for (const name of ["content-type", "cache-control", "etag", "access-control-allow-origin"])
      assert.equal(head.headers.get(name), get.headers.get(name), `${path} ${name}`);
  }
  for (const path of ["/oauth2/auth", "/userinfo", "/oauth2/sessions/logout"])
    assert.equal((await ask(world.baseUrl + path, { method: "HEAD" })).status, 405, path);
});

test("odd headers are refused or ignored, never a fault", async () => {
  const odd: Record<string, string>[] = [
    { authorization: "Basic" },
    { authorization: "Basic %%%" },
    { authorization: `Basic ${Buffer.from("no colon").toString("base64")}` },
    { authorization: `Basic ${Buffer.from("%zz:%zz").toString("base64")}` },
    { authorization: `Basic ${Buffer.from("a\0b:c").toString("base64")}` },
    { authorization: `Bearer ${"x.".repeat(3000)}` },
    { authorization: "Bearer a.b.c" },
    { authorization: "DPoP a.b.c", dpop: "x" },
    { authorization: "Bearer eyJhbGciOiJub25lIn0.e30." },
    { cookie: "svc_session=%00; svc_login_x=; =; ;;; __proto__=1" },
    { "x-forwarded-for": "not an address, 1.2.3.4" },
    { "accept-language": "*;q=2,xx-".repeat(100) },
    { origin: "null" },
    { range: "bytes=0-", "if-none-match": "*" },
  ];
  for (const headers of odd) {
    for (const path of [
      "/userinfo",
      "/oauth2/auth",
      "/w/logins",
      "/api/v1/key",
      "/.well-known/jwks.json",
    ]) {
      const response = await ask(world.baseUrl + path, { headers });
      await checkShape(
        { method: "GET", path },
        response,
        `${path} ${JSON.stringify(headers).slice(0, 60)}`,
      );
    }
    const response = await ask(`${world.baseUrl}/oauth2/token`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/x-www-form-urlencoded" },
      body: "grant_type=client_credentials",
    });
    assert.ok(response.status >= 400 && response.status < 500);
    await checkShape({ method: "POST", path: "/oauth2/token" }, response, "token");
  }
});

test("a wallet that sends a session of another login's shape learns nothing", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { connection } = scan(page.qr);
  for (const session of [
    "",
    ".",
    "..",
    `${page.loginId}..`,
    `${page.loginId}.1.`,
    `${page.loginId}.-1.${"A".repeat(22)}`,
    `${page.loginId}.1e3.${"A".repeat(22)}`,
  ]) {
    const response = await ask(`${connection}/claim`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ session, svcID: newIdentity().address, claim: "A".repeat(43) }),
    });
    assert.ok(response.status === 400 || response.status === 404, session);
  }
});
