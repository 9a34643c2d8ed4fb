// oidc-provider in this process, set up as the service is: same paths, same kinds of clients, PKCE for all.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { errors, type OidcContext, Provider } from "oidc-provider";
import type { Jar } from "../cookie-jar.ts";
import { freePort } from "../world.ts";
import { newKey } from "./jwt.ts";
import { audiences, type ClientKey, type OracleClient, type Party, redirectUris } from "./party.ts";
import type { ClientKind } from "./row.ts";

const account = "svcid:0x00000000000000000000000000000000000000aa";
const scopes = "openid offline offline_access";

export async function openPeer(): Promise<Party> {
  const issuer = `http://localhost:${await freePort()}`;
  const key = newKey();
  const clients = makeClients();
  const provider = new Provider(issuer, configurationOf(clients, key));
  provider.use(async (ctx, next) =>
    ctx.path.startsWith("/interaction/") ? approve(provider, ctx) : next(),
  );
  const server = createServer(provider.callback()).listen(
    Number(new URL(issuer).port),
    "localhost",
  );
  await once(server, "listening");
  return {
    issuer,
    key,
    clients,
    isPage: (response) => pageOf(issuer, response) !== null,
    approve: async (jar, page) => follow(jar, issuer, page),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function pageOf(issuer: string, response: Response): URL | null {
  const location = response.headers.get("location");
  const url = location === null ? null : new URL(location, issuer);
  return url?.origin === issuer && url.pathname.startsWith("/interaction/") ? url : null;
}

/** Follows redirects from the page, which approves by itself, until the browser leaves the issuer. */
async function follow(jar: Jar, issuer: string, page: Response): Promise<URL> {
  let url = pageOf(issuer, page);
  if (url === null) throw new Error(`no page but ${page.status}`);
  while (url.origin === issuer) {
    const response: Response = await jar.fetch(url.href);
    const location = response.headers.get("location");
    if (location === null)
      throw new Error(`${url.pathname} answered ${response.status}: ${await response.text()}`);
    url = new URL(location, issuer);
  }
  return url;
}

/** Logs in and consents to everything that was asked for, in one step. */
async function approve(provider: Provider, ctx: OidcContext): Promise<void> {
  const { params } = await provider.interactionDetails(ctx.req, ctx.res);
  const grant = new provider.Grant({ accountId: account, clientId: params["client_id"] ?? "" });
  grant.addOIDCScope(params["scope"] ?? "");
  for (const resource of [params["resource"] ?? []].flat())
    grant.addResourceScope(resource, scopes);
  const consent = { grantId: await grant.save() };
  ctx.respond = false;
  await provider.interactionFinished(
    ctx.req,
    ctx.res,
    { login: { accountId: account }, consent },
    { mergeWithLastSubmission: false },
  );
}

function makeClients(): Record<ClientKind, OracleClient> {
  return {
    basic: withSecret("client-basic"),
    post: withSecret("client-post"),
    other: withSecret("client-other"),
    pushing: withSecret("client-pushing"),
    key: { id: "client-key", secret: "" },
    browser: { id: "client-browser", secret: "" },
  };
}

function withSecret(id: string): OracleClient {
  return { id, secret: randomBytes(32).toString("base64url") };
}

const methods: Record<ClientKind, string> = {
  basic: "client_secret_basic",
  other: "client_secret_basic",
  pushing: "client_secret_basic",
  post: "client_secret_post",
  key: "private_key_jwt",
  browser: "none",
};

function metadataOf(
  kind: ClientKind,
  { id, secret }: OracleClient,
  key: ClientKey,
): Record<string, unknown> {
  const grants = ["authorization_code", "refresh_token"];
  return {
    client_id: id,
    ...(secret === "" ? {} : { client_secret: secret }),
    ...(kind === "key"
      ? { jwks: { keys: [{ ...key.publicKey.export({ format: "jwk" }), kid: key.kid }] } }
      : {}),
    redirect_uris: redirectUris,
    grant_types: kind === "browser" ? grants : [...grants, "client_credentials"],
    response_types: ["code"],
    token_endpoint_auth_method: methods[kind],
    id_token_signed_response_alg: "RS256",
    require_pushed_authorization_requests: kind === "pushing",
  };
}

function configurationOf(
  clients: Record<ClientKind, OracleClient>,
  key: ClientKey,
): Record<string, unknown> {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return {
    clients: Object.entries(clients).map(([kind, client]) =>
      metadataOf(kind as ClientKind, client, key),
    ),
    clientAuthMethods: ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"],
    jwks: {
      keys: [{ ...privateKey.export({ format: "jwk" }), kid: "signing", use: "sig", alg: "RS256" }],
    },
    cookies: {
      keys: [randomBytes(32).toString("base64url")],
      long: { signed: true, sameSite: "none" },
    },
    enableHttpPostMethods: true,
    routes: {
      authorization: "/oauth2/auth",
      pushed_authorization_request: "/oauth2/par",
      token: "/oauth2/token",
      userinfo: "/userinfo",
      introspection: "/oauth2/introspect",
      revocation: "/oauth2/revoke",
    },
    responseTypes: ["code"],
    pkce: { required: () => true },
    scopes: scopes.split(" "),
    findAccount: (_ctx: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub }) }),
    rotateRefreshToken: true,
    renderError: (ctx: { type: string; body: unknown }, out: unknown) => {
      ctx.type = "html";
      ctx.body = `<pre>${JSON.stringify(out)}</pre>`;
    },
    ttl: {
      AccessToken: 3600,
      AuthorizationCode: 60,
      ClientCredentials: 3600,
      IdToken: 3600,
      RefreshToken: 2_592_000,
      Interaction: 120,
      Session: 43_200,
      Grant: 2_592_000,
    },
    features: {
      devInteractions: { enabled: false },
      dPoP: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      pushedAuthorizationRequests: { enabled: true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (_ctx: unknown, _client: unknown, oneOf: unknown) => oneOf,
        getResourceServerInfo,
      },
    },
  };
}

function getResourceServerInfo(_ctx: unknown, resource: string): Record<string, unknown> {
  if (!audiences.includes(resource)) throw new errors.InvalidTarget();
  return { scope: scopes, audience: resource, accessTokenTTL: 3600, accessTokenFormat: "opaque" };
}
