import { createClient, createDomain, createOrganization } from "../service/src/accounts/index.ts";
import { openContext } from "../service/src/compose.ts";
import { parseConfig } from "../service/src/platform/config/config.ts";
import { hooksOf, makePkce, type Pkce } from "../test/login-flow.ts";
import { approvalOf, type Claimed, type Identity, scan } from "../test/raw-wallet.ts";
import { claimOf } from "@svc/protocol";
import { randomBytes } from "node:crypto";
import { type Browser, openBrowser } from "./browser.ts";
import { type HttpAnswer, sendExpecting } from "./http-client.ts";
import { basicAuthorization, formBody, formHeaders, type Tokens, tokensOf } from "./oauth.ts";
import type { Party } from "./party.ts";
import { serviceEnvironment, startParty } from "./service-party.ts";

export interface Broker extends Party {
  readonly client: { readonly id: string; readonly secret: string; readonly redirectUri: string };
  readonly audience: string;
}

const callbackUri = "http://localhost:4999/callback";
export const audience = "https://api.example.com";

/** Starts the service as its own process over this database, with one client of the default settings. */
export async function startBroker({
  connectionString,
  connections,
}: {
  connectionString: string;
  connections: number;
}): Promise<Broker> {
  const environment = {
    ...(await serviceEnvironment(connectionString, connections)),
    CHAIN: "off",
    LIMIT_LOGINS_PER_ADDRESS_MINUTE: "1000000",
    LIMIT_LOGINS_PER_CLIENT_MINUTE: "1000000",
  };
  const client = await seedClient(environment);
  return { ...(await startParty(environment)), client, audience };
}

async function seedClient(environment: NodeJS.ProcessEnv): Promise<Broker["client"]> {
  await using ctx = await openContext(parseConfig(environment));
  const organization = await createOrganization(ctx, { name: "Bench" }, "bench");
  const domain = await createDomain(
    ctx,
    { organizationId: organization.id, domain: "localhost", environment: "live" },
    "bench",
  );
  const given = {
    clientDomainId: domain.id,
    name: "Bench shop",
    authenticationMethod: "client_secret_basic",
    redirectUris: [callbackUri],
    audiences: [audience],
  } as const;
  const { client, secret } = await createClient(ctx, given, "bench");
  if (secret === null) throw new Error("the client has no secret");
  return { id: client.id, secret, redirectUri: callbackUri };
}

/** A login at the service, as far as its browser has come. */
export interface BrokerPage {
  readonly browser: Browser;
  readonly pkce: Pkce;
  readonly loginId: string;
  /** Text of the QR code. */
  readonly qr: string;
  readonly bytes: number;
}

export async function openBrokerPage(broker: Broker): Promise<BrokerPage> {
  const browser = openBrowser();
  const pkce = makePkce();
  const query = new URLSearchParams({
    client_id: broker.client.id,
    redirect_uri: broker.client.redirectUri,
    response_type: "code",
    scope: "openid offline_access",
    state: "state-of-the-browser",
    code_challenge: pkce.challenge,
    code_challenge_method: "S256",
    prompt: "consent",
    audience: broker.audience,
  });
  const { body } = await browser.call(200, `${broker.baseUrl}/oauth2/auth?${query.toString()}`);
  const { qr, loginId } = hooksOf(body);
  return { browser, pkce, qr, loginId, bytes: Buffer.byteLength(body) };
}

/** The wallet's first call: it names the identity and gets the signed request object. */
export async function claimAtBroker(page: BrokerPage, identity: Identity): Promise<Claimed> {
  const scanned = scan(page.qr);
  const secret = randomBytes(32).toString("base64url");
  const body = JSON.stringify({
    session: scanned.session,
    svcID: identity.address,
    claim: claimOf(secret),
  });
  const { body: object } = await sendExpecting(200, `${scanned.connection}/claim`, {
    method: "POST",
    headers: jsonHeaders,
    body,
  });
  const claims = JSON.parse(
    Buffer.from(object.split(".")[1] ?? "", "base64url").toString(),
  ) as Claimed["claims"];
  return { ...scanned, identity, secret, object, claims };
}

const jsonHeaders = { "content-type": "application/json" };

/** What the page's browser asks after the claim; answers the body of the wallet's approval, signed. */
export async function readDigits(
  broker: Broker,
  page: BrokerPage,
  claimed: Claimed,
): Promise<string> {
  const { body } = await page.browser.call(
    200,
    `${broker.baseUrl}/oauth2/login/${page.loginId}/status`,
  );
  const { digits } = JSON.parse(body) as { digits?: string };
  return JSON.stringify(approvalOf(claimed, digits ?? ""));
}

export async function approveAtBroker(claimed: Claimed, approval: string): Promise<void> {
  await sendExpecting(200, claimed.connection, {
    method: "POST",
    headers: jsonHeaders,
    body: approval,
  });
}

/** The page fetches the code and the shop redeems it. */
export async function finishAtBroker(broker: Broker, page: BrokerPage): Promise<Tokens> {
  const { body } = await page.browser.call(
    200,
    `${broker.baseUrl}/oauth2/login/${page.loginId}/finish`,
    { method: "POST" },
  );
  const { location } = JSON.parse(body) as { location: string };
  return redeemCodeAtBroker(broker, page, location);
}

async function redeemCodeAtBroker(
  broker: Broker,
  page: BrokerPage,
  location: string,
): Promise<Tokens> {
  const code = new URL(location).searchParams.get("code") ?? "";
  return tokensOf(
    await postToken(broker, {
      grant_type: "authorization_code",
      code,
      redirect_uri: broker.client.redirectUri,
      code_verifier: page.pkce.verifier,
    }),
  );
}

export async function refreshAtBroker(broker: Broker, tokens: Tokens): Promise<Tokens> {
  return tokensOf(
    await postToken(broker, { grant_type: "refresh_token", refresh_token: tokens.refresh }),
  );
}

async function postToken(broker: Broker, parameters: Record<string, string>): Promise<HttpAnswer> {
  return sendExpecting(200, `${broker.baseUrl}/oauth2/token`, {
    method: "POST",
    headers: { ...formHeaders, authorization: basicAuthorization(broker.client) },
    body: formBody(parameters),
  });
}

export async function introspectAtBroker(broker: Broker, token: string): Promise<void> {
  const { body } = await sendExpecting(200, `${broker.baseUrl}/oauth2/introspect`, {
    method: "POST",
    headers: { ...formHeaders, authorization: basicAuthorization(broker.client) },
    body: formBody({ token }),
  });
  if (!body.includes('"active":true')) throw new Error(`introspection answered ${body}`);
}
