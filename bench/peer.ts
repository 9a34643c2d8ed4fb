import { fork } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { type Browser, openBrowser } from "./browser.ts";
import { freePort } from "./free-port.ts";
import { type HttpAnswer, sendExpecting } from "./http-client.ts";
import { makePkce, type Pkce } from "../test/login-flow.ts";
import type { Party } from "./party.ts";
import type { PeerAnswer, PeerSettings } from "./peers/oidc-provider-server.ts";
import { basicAuthorization, formBody, formHeaders, type Tokens, tokensOf } from "./oauth.ts";

export interface Peer extends Party {
  readonly client: PeerSettings["client"];
  readonly audience: string;
}

const compileCache = join(import.meta.dirname, "..", "node_modules", ".cache", "svc-bench");

/** Starts oidc-provider over its own database. */
export async function startPeer(
  given: Pick<PeerSettings, "connectionString" | "connections" | "pageBytes" | "audience">,
): Promise<Peer> {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const client = {
    id: "bench",
    secret: randomBytes(32).toString("base64url"),
    redirectUri: "http://localhost:4999/callback",
    name: "Bench shop",
  };
  const settings: PeerSettings = {
    ...given,
    port: await freePort(),
    signingKey: {
      ...privateKey.export({ format: "jwk" }),
      kid: "bench-1",
      use: "sig",
      alg: "RS256",
    },
    cookieKeys: [randomBytes(32).toString("base64url")],
    client,
  };
  const entry = new URL("./peers/oidc-provider-server.ts", import.meta.url);
  const child = fork(entry, {
    execArgv: ["--conditions=source"],
    // Compiled code is kept, as the service keeps its own.
    env: { ...process.env, NODE_ENV: "production", NODE_COMPILE_CACHE: compileCache },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const answerOf = async (): Promise<PeerAnswer> => {
    const ended = new AbortController();
    const exit = once(child, "exit", { signal: ended.signal }).then(() =>
      Promise.reject(new Error("the peer ended")),
    );
    exit.catch(() => undefined);
    try {
      const [answer] = (await Promise.race([once(child, "message"), exit])) as [PeerAnswer];
      return answer;
    } finally {
      ended.abort();
    }
  };
  const ready = answerOf();
  child.send(settings);
  await ready;
  return {
    name: "peer",
    pid: child.pid ?? 0,
    baseUrl: `http://localhost:${settings.port}`,
    client,
    audience: given.audience,
    async callsTotal() {
      const answer = answerOf();
      child.send("calls");
      const got = await answer;
      return got.kind === "calls" ? got.callsTotal : 0;
    },
    async [Symbol.asyncDispose]() {
      const exit = once(child, "exit");
      child.disconnect();
      await exit;
    },
  };
}

/** A login at the peer, as far as its browser has come. */
export interface PeerPage {
  readonly browser: Browser;
  readonly pkce: Pkce;
  readonly approveUrl: string;
  /** Null: an opaque access token. */
  readonly audience: string | null;
  readonly bytes: number;
}

/** The authorization request and the page that it leads to. */
export async function openPeerPage(
  peer: Peer,
  audience: string | null = peer.audience,
): Promise<PeerPage> {
  const browser = openBrowser();
  const pkce = makePkce();
  const query = new URLSearchParams({
    client_id: peer.client.id,
    redirect_uri: peer.client.redirectUri,
    response_type: "code",
    scope: "openid offline_access",
    state: "state-of-the-browser",
    code_challenge: pkce.challenge,
    code_challenge_method: "S256",
    prompt: "consent",
    ...(audience === null ? {} : { resource: audience }),
  });
  const started = await browser.call(303, `${peer.baseUrl}/auth?${query.toString()}`);
  const pageUrl = new URL(started.headers.location ?? "", peer.baseUrl);
  const { body } = await browser.call(200, pageUrl.href);
  return {
    browser,
    pkce,
    approveUrl: `${pageUrl.href}/approve`,
    audience,
    bytes: Buffer.byteLength(body),
  };
}

/** Approves, comes back, and redeems the code. */
export async function finishAtPeer(peer: Peer, page: PeerPage, account: string): Promise<Tokens> {
  const approved = await page.browser.call(303, page.approveUrl, {
    method: "POST",
    headers: { "x-account": account },
  });
  const resumed = await page.browser.call(
    303,
    new URL(approved.headers.location ?? "", peer.baseUrl).href,
  );
  const code = new URL(resumed.headers.location ?? "").searchParams.get("code") ?? "";
  const target = page.audience === null ? {} : { resource: page.audience };
  return tokensOf(
    await postPeerToken(peer, {
      grant_type: "authorization_code",
      code,
      redirect_uri: peer.client.redirectUri,
      code_verifier: page.pkce.verifier,
      ...target,
    }),
  );
}

export async function refreshAtPeer(peer: Peer, tokens: Tokens): Promise<Tokens> {
  return tokensOf(
    await postPeerToken(peer, {
      grant_type: "refresh_token",
      refresh_token: tokens.refresh,
      resource: peer.audience,
    }),
  );
}

async function postPeerToken(peer: Peer, parameters: Record<string, string>): Promise<HttpAnswer> {
  return sendExpecting(200, `${peer.baseUrl}/token`, {
    method: "POST",
    headers: { ...formHeaders, authorization: basicAuthorization(peer.client) },
    body: formBody(parameters),
  });
}

export async function introspectAtPeer(peer: Peer, token: string): Promise<void> {
  const { body } = await sendExpecting(200, `${peer.baseUrl}/token/introspection`, {
    method: "POST",
    headers: { ...formHeaders, authorization: basicAuthorization(peer.client) },
    body: formBody({ token }),
  });
  if (!body.includes('"active":true')) throw new Error(`introspection answered ${body}`);
}
