// The steps of a login as a browser without a screen sees them.
import { createHash, randomBytes } from "node:crypto";
import { type Jar, openJar } from "./cookie-jar.ts";
import { type Claimed, type Identity, approve, claim, keepShown, scan } from "./raw-wallet.ts";

export interface LoginClient {
  readonly id: string;
  readonly secret?: string;
  readonly redirectUri: string;
}

export interface Pkce {
  readonly verifier: string;
  readonly challenge: string;
}

export function makePkce(): Pkce {
  const verifier = randomBytes(32).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
}

/** The document's authorization request, with anything replaced or left out (undefined). */
export function authorizationUrl(
  baseUrl: string,
  client: LoginClient,
  { challenge }: Pick<Pkce, "challenge">,
  changed: Record<string, string | undefined> = {},
): string {
  const parameters: Record<string, string | undefined> = {
    client_id: client.id,
    redirect_uri: client.redirectUri,
    response_type: "code",
    scope: "openid offline offline_access",
    state: "state-of-the-browser",
    code_challenge: challenge,
    code_challenge_method: "S256",
    prompt: "consent",
    access_type: "offline",
    ...changed,
  };
  const given = Object.entries(parameters).filter(
    (pair): pair is [string, string] => pair[1] !== undefined,
  );
  return `${baseUrl}/oauth2/auth?${new URLSearchParams(given).toString()}`;
}

/** What a page offers to wallets. */
export interface Hooks {
  readonly loginId: string;
  /** Text of the QR code that the page shows now. It rotates by this machine's clock, even if a test moves the service's. */
  readonly qr: string;
  readonly sameDevice: string;
}

export interface OpenPage extends Hooks {
  readonly jar: Jar;
  readonly html: string;
  readonly pkce: Pkce;
}

function unescape(text: string): string {
  return text
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}

function attributeOf(html: string, pattern: RegExp): string {
  return unescape(pattern.exec(html)?.[1] ?? "");
}

/** Opens the QR page in a browser and reads the hooks that it offers. */
export async function openPage(
  baseUrl: string,
  client: LoginClient,
  {
    jar = openJar(),
    changed = {},
  }: { jar?: Jar; changed?: Record<string, string | undefined> } = {},
): Promise<OpenPage> {
  const pkce = makePkce();
  const response = await jar.fetch(authorizationUrl(baseUrl, client, pkce, changed));
  const html = await response.text();
  if (response.status !== 200)
    throw new Error(
      `the page answered ${response.status} ${response.headers.get("location") ?? html.slice(0, 300)}`,
    );
  return Object.assign(hooksOf(html), { jar, html, pkce });
}

export function hooksOf(html: string): Hooks {
  const qr = attributeOf(html, /data-qr="([^"]+)"/);
  const sameDevice =
    attributeOf(html, /<a[^>]*data-same-device[^>]*href="([^"]+)"/) ||
    attributeOf(html, /<a[^>]*href="([^"]+)"[^>]*data-same-device/);
  const link = qr === "" ? sameDevice : qr;
  const loginId = link === "" ? "" : (scan(link).session.split(".")[0] ?? "");
  const qrNow = rotating(html, qr);
  return {
    sameDevice,
    loginId,
    get qr() {
      return qrNow();
    },
  };
}

const stepMs = 4000;

/**
 * The code rotates as in a browser: on a busy machine the first one may expire before a test has claimed it. If it expires
 * on the way, {@link claim} takes the next one.
 */
function rotating(html: string, first: string): () => string {
  const openedMs = performance.now();
  const data = attributeOf(html, /data-login="([^"]+)"/);
  const macs = attributeOf(html, /data-macs="([^"]+)"/).split(" ");
  if (first === "" || data === "") return () => first;
  const { nowMs, firstStep, isStatic } = JSON.parse(data) as {
    nowMs: number;
    firstStep: number;
    isStatic: boolean;
  };
  const codeNow = (stepsLater = 0): string => {
    const step = Math.floor((nowMs + performance.now() - openedMs) / stepMs) + stepsLater;
    const mac = macs[step - firstStep];
    if (isStatic || mac === undefined) return first;
    return first.replace(/(\?sess=[\w-]+)\.\d+\.[\w-]+/, `$1.${step}.${mac}`);
  };
  keepShown(scan(first), codeNow);
  return codeNow;
}

export async function statusOf(
  baseUrl: string,
  page: Pick<OpenPage, "jar" | "loginId">,
): Promise<Record<string, unknown>> {
  const response = await page.jar.fetch(`${baseUrl}/oauth2/login/${page.loginId}/status`);
  return (await response.json()) as Record<string, unknown>;
}

/** Claims with number matching: reads the digits as the browser shows them. */
export async function approveByQr(
  baseUrl: string,
  page: OpenPage,
  identity: Identity,
): Promise<Claimed> {
  const claimed = await claim(scan(page.qr), identity);
  const { digits } = await statusOf(baseUrl, page);
  const response = await approve(claimed, typeof digits === "string" ? digits : "");
  if (response.status !== 200)
    throw new Error(`approval answered ${response.status}: ${await response.text()}`);
  return claimed;
}

export async function finish(
  baseUrl: string,
  page: Pick<OpenPage, "jar" | "loginId">,
): Promise<URL> {
  const response = await page.jar.fetch(`${baseUrl}/oauth2/login/${page.loginId}/finish`, {
    method: "POST",
  });
  const { location } = (await response.json()) as { location?: string };
  if (location === undefined) throw new Error(`finish answered ${response.status}`);
  return new URL(location);
}

export interface Tokens {
  access_token: string;
  id_token: string;
  refresh_token?: string;
  token_type: string;
  expires_in: number;
  scope: string;
}

/** RFC 6749 section 2.3.1. */
export function basicOf({ id, secret = "" }: Pick<LoginClient, "id" | "secret">): string {
  const pair = [id, secret].map((each) => encodeURIComponent(each)).join(":");
  return `Basic ${Buffer.from(pair).toString("base64")}`;
}

/** What the introspection of a token says to a client. */
export async function introspect(
  baseUrl: string,
  client: LoginClient,
  token: string,
): Promise<Record<string, unknown>> {
  const headers = { authorization: basicOf(client) };
  const body = new URLSearchParams({ token });
  const answer = await fetch(`${baseUrl}/oauth2/introspect`, { method: "POST", headers, body });
  return (await answer.json()) as Record<string, unknown>;
}

/** Sends a token request with the client's authentication. */
export async function postToken(
  baseUrl: string,
  client: LoginClient,
  parameters: Record<string, string>,
): Promise<Response> {
  const authorization = client.secret === undefined ? {} : { authorization: basicOf(client) };
  const body = new URLSearchParams({
    ...(client.secret === undefined ? { client_id: client.id } : {}),
    ...parameters,
  });
  return fetch(`${baseUrl}/oauth2/token`, { method: "POST", headers: authorization, body });
}

export async function redeem(
  baseUrl: string,
  client: LoginClient,
  { code, verifier }: { code: string; verifier: string },
): Promise<Response> {
  return postToken(baseUrl, client, {
    grant_type: "authorization_code",
    code,
    redirect_uri: client.redirectUri,
    code_verifier: verifier,
  });
}

/** A whole login by QR code, from the page to the tokens. */
export async function logIn(
  baseUrl: string,
  client: LoginClient,
  identity: Identity,
  options: { jar?: Jar; changed?: Record<string, string | undefined> } = {},
): Promise<{ tokens: Tokens; page: OpenPage; code: string }> {
  const page = await openPage(baseUrl, client, options);
  await approveByQr(baseUrl, page, identity);
  const code = (await finish(baseUrl, page)).searchParams.get("code") ?? "";
  const response = await redeem(baseUrl, client, { code, verifier: page.pkce.verifier });
  if (response.status !== 200)
    throw new Error(`token answered ${response.status}: ${await response.text()}`);
  return { tokens: (await response.json()) as Tokens, page, code };
}
