import type { AuthenticationMethod } from "../../service/src/accounts/client.ts";
import type { Jar } from "../cookie-jar.ts";
import { approveByQr, finish, hooksOf, makePkce } from "../login-flow.ts";
import { type Identity, newIdentity } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";
import { newKey } from "./jwt.ts";
import { audiences, type ClientKey, type OracleClient, type Party, redirectUris } from "./party.ts";
import type { ClientKind } from "./row.ts";

const methods: Record<ClientKind, AuthenticationMethod> = {
  basic: "client_secret_basic",
  other: "client_secret_basic",
  pushing: "client_secret_basic",
  post: "client_secret_post",
  key: "private_key_jwt",
  browser: "none",
};

/** This service; rows name addresses of their own, hence the trusted proxy. */
export async function openOurselves(): Promise<Party> {
  const world = await openWorld({ TRUSTED_PROXIES: "127.0.0.0/8,::1/128" });
  const key = newKey();
  const user = newIdentity();
  return {
    issuer: world.baseUrl,
    key,
    clients: {
      basic: await addClient(world, "basic", key),
      post: await addClient(world, "post", key),
      key: await addClient(world, "key", key),
      browser: await addClient(world, "browser", key),
      other: await addClient(world, "other", key),
      pushing: await addClient(world, "pushing", key),
    },
    isPage: (response, html) => response.status === 200 && html.includes("data-qr="),
    approve: async (jar, page, html) => approve(world, { jar, html, page, user }),
    [Symbol.asyncDispose]: async () => world[Symbol.asyncDispose](),
  };
}

async function addClient(world: World, kind: ClientKind, key: ClientKey): Promise<OracleClient> {
  const jwk = { ...key.publicKey.export({ format: "jwk" }), kid: key.kid } as { kty: "EC" };
  const { id, secret = "" } = await world.addClient({
    name: `Oracle ${kind}`,
    authenticationMethod: methods[kind],
    redirectUris,
    audiences,
    pushedRequestRequired: kind === "pushing",
    ...(kind === "key" ? { jwks: { keys: [{ ...jwk, alg: "ES256" }] } } : {}),
  });
  return { id, secret };
}

interface Page {
  readonly jar: Jar;
  readonly html: string;
  readonly page: Response;
  readonly user: Identity;
}

async function approve({ baseUrl }: World, { jar, html, page, user }: Page): Promise<URL> {
  if (!html.includes("data-qr="))
    throw new Error(
      `no page but ${page.status} ${page.headers.get("location") ?? html.slice(0, 300)}`,
    );
  const opened = { jar, html, pkce: makePkce(), ...hooksOf(html) };
  await approveByQr(baseUrl, opened, user);
  return finish(baseUrl, opened);
}
