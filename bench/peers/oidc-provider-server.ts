// oidc-provider as its own process, set up as a careful user would run it in production. What it is
// set up with comes in one message from the process that starts it; further messages ask for the count of calls.
import { createServer } from "node:http";
import { type OidcContext, Provider } from "oidc-provider";
import { type Db, openDb } from "../../service/src/platform/database/db.ts";
import { renderInteractionPage } from "./interaction-page.ts";
import {
  createTables,
  findAccountClaims,
  insertAccount,
  openAdapter,
  openClientAdapter,
} from "./payload-store.ts";

export interface PeerSettings {
  readonly port: number;
  readonly connectionString: string;
  readonly connections: number;
  /** Private JWK, RS256. */
  readonly signingKey: Record<string, unknown>;
  readonly cookieKeys: readonly string[];
  readonly client: {
    readonly id: string;
    readonly secret: string;
    readonly redirectUri: string;
    readonly name: string;
  };
  /** The resource whose access tokens are RS256 JWTs; without it they are opaque. */
  readonly audience: string;
  /** Length of the page, the service's own. */
  readonly pageBytes: number;
}

export type PeerAnswer =
  | { readonly kind: "ready" }
  | { readonly kind: "calls"; readonly callsTotal: number };

const accessSeconds = 3600;
const refreshSeconds = 30 * 86_400;
const clientSeconds = 10 * 365 * 86_400;
const scopes = "openid offline_access";

function send(answer: PeerAnswer): void {
  process.send?.(answer);
}

process.once("message", (message: PeerSettings) => {
  serve(message).catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
});
process.once("disconnect", () => process.exit(0));

async function serve(settings: PeerSettings): Promise<void> {
  const db = openDb({
    connectionString: settings.connectionString,
    connections: settings.connections,
  });
  await createTables(db);
  await openAdapter(db, "Client").upsert(settings.client.id, metadataOf(settings), clientSeconds);
  const issuer = `http://localhost:${settings.port}`;
  const provider = new Provider(issuer, configurationOf(settings, db));
  provider.use(async (ctx, next) =>
    ctx.path.startsWith("/interaction/") ? interact({ provider, settings, db }, ctx) : next(),
  );
  provider.on("server_error", (_ctx, error) => console.error(error));
  createServer(provider.callback()).listen(settings.port, "localhost", () =>
    send({ kind: "ready" }),
  );
  process.on("message", () => send({ kind: "calls", callsTotal: db.callsTotal }));
}

function configurationOf(settings: PeerSettings, db: Db): Record<string, unknown> {
  const { audience } = settings;
  return {
    adapter: (model: string) =>
      model === "Client" ? openClientAdapter(db) : openAdapter(db, model),
    jwks: { keys: [settings.signingKey] },
    cookies: { keys: settings.cookieKeys },
    pkce: { required: () => true },
    scopes: ["openid", "offline_access"],
    findAccount: async (_ctx: unknown, sub: string) => {
      const claims = await findAccountClaims(db, sub);
      return claims === null ? undefined : { accountId: sub, claims: () => ({ sub, ...claims }) };
    },
    claims: { openid: ["sub", "ext"] },
    loadExistingGrant: async (ctx: OidcContext) => grantOf(ctx, settings),
    rotateRefreshToken: true,
    ttl: {
      AccessToken: accessSeconds,
      AuthorizationCode: 60,
      IdToken: accessSeconds,
      RefreshToken: refreshSeconds,
      Interaction: 120,
      Session: 43_200,
      Grant: refreshSeconds,
    },
    features: {
      devInteractions: { enabled: false },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (_ctx: unknown, _client: unknown, oneOf: string | undefined) => oneOf,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: scopes,
          audience,
          accessTokenTTL: accessSeconds,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
  };
}

function metadataOf({ client }: PeerSettings): Record<string, unknown> {
  return {
    client_id: client.id,
    client_secret: client.secret,
    client_name: client.name,
    redirect_uris: [client.redirectUri],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "client_secret_basic",
    id_token_signed_response_alg: "RS256",
  };
}

/** The one grant of this login, made when the browser comes back approved: nothing reads it before it is complete. */
async function grantOf(ctx: OidcContext, { audience }: PeerSettings): Promise<unknown> {
  if (ctx.oidc.result === undefined) return undefined;
  const provider = ctx.oidc as unknown as { provider: Provider };
  const grant = new provider.provider.Grant({
    accountId: ctx.oidc.session.accountId,
    clientId: ctx.oidc.client.clientId,
  });
  grant.addOIDCScope(scopes);
  grant.addResourceScope(audience, scopes);
  await grant.save();
  return grant;
}

interface Site {
  readonly provider: Provider;
  readonly settings: PeerSettings;
  readonly db: Db;
}

async function interact(site: Site, ctx: OidcContext): Promise<void> {
  const { provider, settings } = site;
  if (ctx.method === "POST" && ctx.path.endsWith("/approve")) return approve(site, ctx);
  const { uid, params } = await provider.interactionDetails(ctx.req, ctx.res);
  const client = await provider.Client.find(params["client_id"] ?? "");
  ctx.set({
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'",
  });
  ctx.body = renderInteractionPage({
    issuer: `http://localhost:${settings.port}`,
    uid,
    clientName: client?.clientName ?? "",
    host: new URL(settings.client.redirectUri).host,
    bytes: settings.pageBytes,
  });
}

/** Login and consent in one answer, so that the browser comes back once. The first login is the sign-up. */
async function approve({ provider, db }: Site, ctx: OidcContext): Promise<void> {
  const accountId = String(ctx.req.headers["x-account"] ?? "");
  await insertAccount(db, accountId);
  ctx.respond = false;
  await provider.interactionFinished(
    ctx.req,
    ctx.res,
    { login: { accountId }, consent: {} },
    { mergeWithLastSubmission: false },
  );
}
