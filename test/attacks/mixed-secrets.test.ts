// Every kind of secret in the place of every other kind: none works anywhere but where it belongs.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { createApiKey, createManagementKey } from "../../service/src/accounts/index.ts";
import { createIssuer, createIssuerKey } from "../../service/src/credentials/index.ts";
import {
  approveByQr,
  finish,
  introspect,
  openPage,
  postToken,
  redeem,
  type Tokens,
} from "../login-flow.ts";
import { newIdentity, openWalletSession, post } from "../raw-wallet.ts";
import { openKybWorld } from "../kyb-world.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";

await using world = await openKybWorld();
const { ctx, baseUrl, client, clientDomainId, organizationId } = world;
const person = newIdentity();

async function loginOf(): Promise<{ code: string; verifier: string }> {
  const page = await openPage(baseUrl, client);
  await approveByQr(baseUrl, page, person);
  const code = (await finish(baseUrl, page)).searchParams.get("code") ?? "";
  return { code, verifier: page.pkce.verifier };
}

async function makeSecrets() {
  const login = await loginOf();
  const answer = await redeem(baseUrl, client, await loginOf());
  const tokens = (await answer.json()) as Tokens;
  const issuer = await createIssuer(ctx, { name: "Issuer", environment: "live" }, "test");
  const endpoint = await world.call("PUT", "/api/v1/kyb/webhook-endpoint", {
    body: { url: "http://localhost:4998/hooks" },
  });
  const offer = await world.call("POST", `${signaturesPath}/offers`, {
    headers: { "idempotency-key": randomBytes(8).toString("hex") },
    body: someText,
  });
  const { authorization = "" } = await openWalletSession(baseUrl, person);
  const named = { name: "Backend" };
  return {
    apiKey: (await createApiKey(ctx, { clientDomainId, ...named }, "test")).key,
    managementKey: (await createManagementKey(ctx, { organizationId, ...named }, "test")).key,
    issuerKey: (await createIssuerKey(ctx, { issuerId: issuer.id, ...named }, "test")).key,
    walletToken: authorization.replace("Bearer ", ""),
    accessToken: tokens.access_token,
    idToken: tokens.id_token,
    refreshToken: tokens.refresh_token ?? "",
    code: login.code,
    clientSecret: client.secret ?? "",
    endpointSecret: String(endpoint.body["secret"]),
    offerToken: /%2Fw%2Ff%2F([\w.-]+)/.exec(String(offer.body["link"]))?.[1] ?? "",
    verifier: login.verifier,
  };
}

const { verifier, ...secrets } = await makeSecrets();
type Kind = keyof typeof secrets;
const kinds = Object.keys(secrets) as Kind[];

const get = async (path: string, authorization: string): Promise<boolean> =>
  (await fetch(`${baseUrl}${path}`, { headers: { authorization } })).ok;
const asked = async (path: string, body: unknown = {}): Promise<boolean> =>
  (await post(`${baseUrl}${path}`, body)).ok;
const granted = async (form: Record<string, string>): Promise<boolean> =>
  (await postToken(baseUrl, client, form)).ok;

const isActive = async (token: string): Promise<boolean> =>
  (await introspect(baseUrl, client, token))["active"] === true;

interface Place {
  /** The kinds that belong there. */
  readonly own: readonly Kind[];
  readonly take: (secret: string) => Promise<boolean>;
}

const places: Readonly<Record<string, Place>> = {
  "a merchant's call": { own: ["apiKey"], take: async (key) => get("/api/v1/key", key) },
  "an issuer's call": {
    own: ["issuerKey"],
    take: async (key) => get("/api/v1/issuer/credentials", key),
  },
  "a wallet's call": {
    own: ["walletToken"],
    take: async (token) => get("/w/logins", `Bearer ${token}`),
  },
  userinfo: { own: ["accessToken"], take: async (token) => get("/userinfo", `Bearer ${token}`) },
  introspection: { own: ["accessToken", "refreshToken"], take: isActive },
  "the link of an offer": {
    own: ["offerToken"],
    take: async (token) => asked(`/w/f/${encodeURIComponent(token)}/open`),
  },
  "the link of an order": {
    own: [],
    take: async (token) => asked(`/w/o/${encodeURIComponent(token)}/open`),
  },
  "the secret of a client": {
    own: ["clientSecret"],
    take: async (secret) => {
      const form = { grant_type: "client_credentials" };
      return (await postToken(baseUrl, { ...client, secret }, form)).ok;
    },
  },
  // The right kind uses each of these two up, so they come last.
  "a code": {
    own: ["code"],
    take: async (code) =>
      granted({
        grant_type: "authorization_code",
        code,
        redirect_uri: client.redirectUri,
        code_verifier: verifier,
      }),
  },
  "a refresh": {
    own: ["refreshToken"],
    take: async (token) => granted({ grant_type: "refresh_token", refresh_token: token }),
  },
};

for (const [place, { own, take }] of Object.entries(places))
  await test(`${place} takes no secret of another kind`, async () => {
    for (const kind of kinds) {
      assert.notEqual(secrets[kind], "", kind);
      assert.equal(await take(secrets[kind]), own.includes(kind), kind);
    }
  });
