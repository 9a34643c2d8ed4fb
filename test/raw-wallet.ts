// A wallet reduced to what goes over the wire, so that tests can send what no honest wallet would.
import { randomBytes } from "node:crypto";
import {
  type Address,
  claimOf,
  declineDigest,
  loginDigest,
  parseLink,
  requestObjectHash,
  sessionDigest,
  zeroHash,
} from "@svc/protocol";
import { addressOfPrivateKey, signDigest } from "./signing.ts";

export interface Identity {
  readonly address: Address;
  readonly privateKey: Uint8Array;
}

export function newIdentity(privateKey: Uint8Array = randomBytes(32)): Identity {
  return { privateKey, address: addressOfPrivateKey(privateKey) };
}

export interface Scanned {
  readonly session: string;
  readonly connection: string;
}

/** Reads a login link as a wallet's camera would. */
export function scan(link: string): Scanned {
  const parsed = parseLink(link);
  if ("refused" in parsed || parsed.action !== "login" || parsed.connection === undefined)
    throw new Error(`not a login link: ${link}`);
  return { session: parsed.session, connection: parsed.connection };
}

type ShownCode = (stepsLater: number) => string;

/** What the pages that were opened last show, by login. */
const shown = new Map<string, ShownCode>();
const shownMax = 1_000;

/** Lets {@link claim} look at the page again. @param code what it shows, or will show some steps of 4 s later */
export function keepShown({ session }: Scanned, code: ShownCode): void {
  shown.set(loginOf(session), code);
  for (const oldest of shown.keys()) {
    if (shown.size <= shownMax) return;
    shown.delete(oldest);
  }
}

const loginOf = (session: string): string => session.split(".")[0] ?? "";

export interface Claimed extends Scanned {
  readonly identity: Identity;
  readonly secret: string;
  readonly object: string;
  /** Members of the request object that tests look at. */
  readonly claims: {
    readonly domain: string;
    readonly number_matching: boolean;
    readonly acr: string;
    readonly client_name: string;
  };
}

export async function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url, {
    method: "POST",
    redirect: "manual",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

/** Sends a claim and returns the raw answer, with the secret that belongs to it. */
export async function tryClaim(
  scanned: Scanned,
  identity: Identity,
  secret = randomBytes(32).toString("base64url"),
): Promise<{ response: Response; secret: string }> {
  const body = { session: scanned.session, svcID: identity.address, claim: claimOf(secret) };
  return { response: await post(`${scanned.connection}/claim`, body), secret };
}

/**
 * Steps from what a page shows to what is current, if the machine stalled: it got its time late, or its service holds
 * the time.
 */
const stallSteps = [0, 1, -1, 2, -2, 3, -3];

/** Claims, and scans again if the code expired on its way: it lives for seconds, and a machine may stall as long. */
export async function claim(scanned: Scanned, identity: Identity): Promise<Claimed> {
  const current = { ...scanned };
  const send = async () => {
    const { response, secret } = await tryClaim(current, identity);
    return { status: response.status, object: await response.text(), secret };
  };
  let sent = await send();
  for (const steps of stallSteps) {
    const again = shown.get(loginOf(scanned.session))?.(steps);
    if (!sent.object.includes("code_expired") || again === undefined) break;
    current.session = scan(again).session;
    sent = await send();
  }
  const { status, object, secret } = sent;
  if (status !== 200) throw new Error(`claim answered ${status}: ${object}`);
  const claims = JSON.parse(
    Buffer.from(object.split(".")[1] ?? "", "base64url").toString(),
  ) as Claimed["claims"];
  return { ...current, identity, secret, object, claims };
}

/** The signature over a claimed login; `changed` replaces members of the signed message. */
export function signLogin(
  claimed: Claimed,
  code: string,
  changed: Partial<Parameters<typeof loginDigest>[0]> = {},
): string {
  const message = {
    session: claimed.session,
    connection: claimed.connection,
    requester: claimed.claims.domain,
    code,
    object: requestObjectHash(claimed.object),
    ...changed,
  };
  return signDigest(loginDigest(message), claimed.identity.privateKey);
}

/** The body of an approval, for tests to change. */
export function approvalOf(claimed: Claimed, code = ""): Record<string, string> {
  return {
    signature: signLogin(claimed, code),
    session: claimed.session,
    svcID: claimed.identity.address,
    claimSecret: claimed.secret,
    ...(code === "" ? {} : { code }),
  };
}

export async function approve(claimed: Claimed, code = ""): Promise<Response> {
  return post(claimed.connection, approvalOf(claimed, code));
}

export async function decline(claimed: Claimed): Promise<Response> {
  const signature = signDigest(
    declineDigest({ request: claimed.session, connection: claimed.connection }),
    claimed.identity.privateKey,
  );
  return post(claimed.connection, {
    error: "access_denied",
    session: claimed.session,
    svcID: claimed.identity.address,
    signature,
  });
}

/** What a wallet would send without having claimed the login. @param code digits, as if the page had shown some */
export function unclaimedAnswer(
  { session, connection }: Scanned,
  identity: Identity,
  code = "",
): Record<string, string> {
  const digest = loginDigest({ session, connection, requester: "", code: "", object: zeroHash });
  const signature = signDigest(digest, identity.privateKey);
  return { signature, session, svcID: identity.address, ...(code === "" ? {} : { code }) };
}

/** The address that the wallet opens on the same device, without a claim. */
export function sameDeviceReturn(scanned: Scanned, identity: Identity): string {
  const query = new URLSearchParams(unclaimedAnswer(scanned, identity));
  return `${scanned.connection}?${query.toString()}`;
}

/** The same for a login that the wallet claimed. */
export function claimedReturn(claimed: Claimed): string {
  const query = new URLSearchParams({
    signature: signLogin(claimed, ""),
    session: claimed.session,
    svcID: claimed.identity.address,
  });
  return `${claimed.connection}?${query.toString()}`;
}

/** Opens a wallet session and returns its bearer header. */
export async function openWalletSession(
  baseUrl: string,
  identity: Identity,
): Promise<Record<string, string>> {
  const { challenge, deadline, origin } = (await (
    await post(`${baseUrl}/w/session/challenge`, {})
  ).json()) as { challenge: string; deadline: number; origin: string };
  const signature = signDigest(sessionDigest({ origin, challenge, deadline }), identity.privateKey);
  const response = await post(`${baseUrl}/w/session`, {
    svcID: identity.address,
    challenge,
    deadline,
    signature,
  });
  const answered = await response.text();
  if (!response.ok) throw new Error(`/w/session answered ${response.status}: ${answered}`);
  const { token } = JSON.parse(answered) as { token: string };
  return { authorization: `Bearer ${token}` };
}
