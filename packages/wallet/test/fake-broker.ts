// The far end of the network for the wallet's tests: a broker on loopback that speaks the wire of the real one with real
// keys. It checks what a wallet sends, and lies when told to.
import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import {
  claimOf,
  declineDigest,
  loginDigest,
  parseSignature,
  recoverAddress,
  requestObjectHash,
  sessionDigest,
  type Address,
  type Hex,
} from "@svc/protocol";

export const loginId = "AAAAAAAAAAAAAAAAAAAAAA";
export const session = `${loginId}.448000000.BBBBBBBBBBBBBBBBBBBBBA`;
export const digits = "42";

export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicJwk: Record<string, unknown>;
}

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly body: Record<string, unknown>;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Record<string, string>;
}

export function makeKey(kid: string): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { kid, privateKey, publicJwk: { ...publicKey.export({ format: "jwk" }), kid } };
}

/** Signs a compact JWS by ES256, whatever its header says. */
export function signJws(key: SigningKey, header: object, payload: object): string {
  const content = [header, payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  const signature = sign("sha256", Buffer.from(content), {
    key: key.privateKey,
    dsaEncoding: "ieee-p1363",
  });
  return `${content}.${signature.toString("base64url")}`;
}

export type FakeBroker = Awaited<ReturnType<typeof openFakeBroker>>;

export async function openFakeBroker() {
  const key = makeKey("wallet-1");
  const fake = {
    url: "",
    key,
    published: [key],
    received: [] as Received[],
    /** Members of the request object to replace; undefined leaves one out. */
    claims: {} as Record<string, unknown>,
    /** The same for its header. */
    header: {} as Record<string, unknown>,
    /** The answer to a claim, in place of an object made from the members above. */
    forged: null as string | null,
    numberMatching: true,
    acr: "urn:svc:acr:qr-near",
    /** Answers that replace the broker's own, by path. */
    answers: new Map<string, Answer>(),
    claimed: null as { user: Address; claim: string; session: string; object: string } | null,
    status: "waiting",
    logins: [{ id: "one", clientName: "Demo\u202eshop", domain: "shop.example", at: 5, acr: "" }],
    token: "",
    /** Unix seconds until which a challenge for a session can be answered. */
    deadline: 4_000_000,
    /** Routes besides those of logins; null for a path that it does not have. */
    more: null as ((request: Received, isInSession: boolean) => Answer | null) | null,
    qrLink: () => link(session, `${fake.url}/w/l/${loginId}`, "callback"),
    sameDeviceLink: () => link(loginId, `${fake.url}/w/b/${loginId}`, "app-link"),
    paths: () => fake.received.map(({ method, path }) => `${method} ${path}`),
    bodies: () => fake.received.map(({ body }) => body),
    reset() {
      Object.assign(fake, { claims: {}, header: {}, forged: null, claimed: null });
      Object.assign(fake, { numberMatching: true, acr: "urn:svc:acr:qr-near", received: [] });
      Object.assign(fake, { published: [key], status: "waiting" });
      fake.answers.clear();
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
  const server = createServer((request, response) => void answer(request, response));
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const raw = await text(request);
    const body = (raw === "" ? {} : JSON.parse(raw)) as Record<string, unknown>;
    const { method = "", url: path = "" } = request;
    const received = { method, path, body };
    fake.received.push(received);
    const authorization = request.headers.authorization ?? "";
    const {
      status,
      body: said,
      headers,
    } = fake.answers.get(path) ?? route(fake, received, authorization);
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof said === "string" ? said : JSON.stringify(said));
  };
  // It shares the process with the wallet: after seconds of work it would close a connection just as the wallet uses it.
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  fake.url = `http://localhost:${(server.address() as AddressInfo).port}`;
  return fake;
}

function link(sess: string, conn: string, type: string): string {
  return `svc:login?sess=${sess}&conn=${encodeURIComponent(conn)}&type=${type}`;
}

function route(fake: FakeBroker, received: Received, authorization: string): Answer {
  const { method, path, body } = received;
  const more = fake.more?.(received, authorization === `Bearer ${fake.token}`) ?? null;
  if (more !== null) return more;
  if (path === "/.well-known/wallet-jwks.json")
    return { status: 200, body: { keys: fake.published.map((key) => key.publicJwk) } };
  if (path === `/w/l/${loginId}/claim`) return claim(fake, body, session);
  if (path === `/w/b/${loginId}/claim`) return claim(fake, body, loginId);
  if (path === `/w/l/${loginId}`) return settle(fake, body);
  if (path === "/w/session/challenge")
    return { status: 200, body: { challenge: "c.mac", deadline: fake.deadline, origin: fake.url } };
  if (path === "/w/session" && method === "POST") return openSession(fake, body);
  if (authorization !== `Bearer ${fake.token}`) return problem(401, "wallet_session_required");
  if (path === "/w/session") return { status: 204, body: "" };
  if (path.startsWith("/w/logins?")) return listLogins(fake, path);
  if (path === "/w/logins/one/end") return { status: 200, body: { status: "ended" } };
  return problem(404, "login_not_found");
}

export function problem(status: number, reason: string): Answer {
  const error = { code: status, reason, message: `said by the broker: ${reason}`, requestId: "r" };
  return { status, body: { success: false, error } };
}

function objectOf(fake: FakeBroker, sess: string): string {
  const isScanned = sess !== loginId;
  const claims = {
    iss: fake.url,
    aud: "svc-wallet",
    action: "login",
    sess,
    client_name: "Demo shop",
    domain: "shop.example",
    from: `0x${"ab".repeat(20)}`,
    required: [],
    optional: [],
    redirect_host: "shop.example",
    scopes: ["openid", "offline_access"],
    acr: isScanned ? fake.acr : "urn:svc:acr:same-device",
    number_matching: isScanned && fake.numberMatching,
    iat: 1_000_000,
    exp: 1_000_120,
    ...fake.claims,
  };
  const header = { alg: "ES256", typ: "svc-request+jwt", kid: fake.key.kid, ...fake.header };
  return signJws(fake.key, header, claims);
}

function claim(fake: FakeBroker, body: Record<string, unknown>, expected: string): Answer {
  const { session: sess, svcID, claim: claimed } = body as Record<string, string>;
  if (sess !== expected) return problem(410, "code_expired");
  fake.claimed ??= {
    user: svcID as Address,
    claim: claimed ?? "",
    session: sess,
    object: fake.forged ?? objectOf(fake, sess),
  };
  if (fake.claimed.claim !== claimed || fake.claimed.user !== svcID)
    return problem(409, "already_claimed");
  const headers = { "content-type": "application/jwt" };
  return { status: 200, body: fake.claimed.object, headers };
}

/** Approval or refusal, checked as the real broker does. */
function settle(fake: FakeBroker, body: Record<string, unknown>): Answer {
  const {
    signature = "",
    session: sess,
    svcID,
    claimSecret = "",
    code = "",
  } = body as Record<string, string>;
  const { claimed } = fake;
  if (claimed === null || claimOf(claimSecret) !== claimed.claim)
    return problem(403, "claim_wrong");
  const connection = `${fake.url}/w/l/${loginId}`;
  const isRefusal = body["error"] !== undefined;
  const requester = (fake.claims["domain"] as string | undefined) ?? "shop.example";
  const object = requestObjectHash(claimed.object);
  const digest = isRefusal
    ? declineDigest({ request: session, connection })
    : loginDigest({ session, connection, requester, code, object });
  if (sess !== session || svcID !== claimed.user || signerOf(digest, signature) !== claimed.user)
    return problem(422, "signature_wrong");
  if (!isRefusal && fake.numberMatching && code !== digits) return problem(403, "wrong_number");
  fake.status = isRefusal ? "declined" : "approved";
  return { status: 200, body: { status: fake.status } };
}

function openSession(fake: FakeBroker, body: Record<string, unknown>): Answer {
  const { svcID, challenge = "", signature = "" } = body as Record<string, string>;
  const digest = sessionDigest({ origin: fake.url, challenge, deadline: fake.deadline });
  if (signerOf(digest, signature) !== svcID) return problem(422, "signature_wrong");
  fake.token = "token-of-the-session";
  return { status: 200, body: { token: fake.token, expiresAt: 5_000_000 } };
}

function listLogins(fake: FakeBroker, path: string): Answer {
  const cursor = new URL(path, fake.url).searchParams.get("cursor");
  const at = cursor === null ? 0 : Number(cursor);
  const nextCursor = at + 1 < fake.logins.length ? String(at + 1) : undefined;
  return { status: 200, body: { items: fake.logins.slice(at, at + 1), nextCursor } };
}

export function signerOf(digest: Uint8Array, signature: string): Address | null {
  const parsed = parseSignature(signature);
  return parsed === null ? null : recoverAddress(digest, parsed);
}

export const privateKeys: Readonly<Record<"alice" | "bob", Hex>> = {
  alice: `0x${"a1".repeat(32)}`,
  bob: `0x${"b0".repeat(32)}`,
};
