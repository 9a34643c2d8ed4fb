import {
  JwsFault,
  REQUEST_OBJECT_TYP,
  bytesOfBase64url,
  checkRequestObject,
  originOfConnection,
  requestObjectHash,
  textOfBytes,
  verifyEs256Jws,
  type Hex32,
  type Jws,
  type Link,
  type RequestObject,
} from "@svc/protocol";
import { getBrokerKeys } from "./broker-keys.ts";
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import { quotedName } from "./shown-text.ts";
import { call, findHost, hostOf, membersOf, refusalOfAnswer, sayApp } from "./transport.ts";

/** Who asks, as far as the wallet can tell. Only what a broker on its list signed counts as known. */
export type Requester =
  | {
      readonly known: true;
      /** Origin of the broker that vouches. */
      readonly broker: string;
      readonly clientName: string;
      /** Verified by the broker; absent if none is verified. */
      readonly domain?: string;
    }
  | {
      readonly known: false;
      /** Where the answer would go; absent if it is only shown, or given to an app. */
      readonly host?: string;
      /** The scheme of that app, such as `myapp:`. */
      readonly scheme?: string;
    };

/** A request object that is genuine and belongs to the link. */
export interface VerifiedObject {
  readonly object: RequestObject;
  /** `object` of a signature. */
  readonly hash: Hex32;
}

/** `conn` of a link; a data transfer has none. */
export function connectionOf(link: Link): string | undefined {
  return link.action === "data-transfer" ? undefined : link.connection;
}

/** The broker that a link leads to, if it is on the list; otherwise null, and nobody is asked. */
export async function findBroker(ctx: WalletContext, link: Link): Promise<string | null> {
  const origin = originOfConnection(connectionOf(link));
  return origin !== null && (await ctx.brokers()).includes(origin) ? origin : null;
}

/**
 * Asks the broker behind a link who makes the request: `POST <conn>/open`. Null if no broker on the list can say: the
 * link leads to somebody else, or to a broker that vouches for nothing at this address. Requests for fields that a
 * broker makes itself always have an object; without one they are over or were never made.
 *
 * @throws {WalletRefusal} forged_request, expired, broker_refused, unreachable
 */
export async function askRequester(ctx: WalletContext, link: Link): Promise<VerifiedObject | null> {
  const broker = await findBroker(ctx, link);
  const connection = connectionOf(link);
  if (broker === null || connection === undefined) return null;
  const url = brokerUrl(connection, "open");
  const answer = await call(ctx.fetch, { url, body: {} });
  const isOwn = link.action === "request" || link.action === "access";
  if (!isOwn && (answer.status === 404 || answer.status === 405)) return null;
  if (answer.status !== 200) throw refusalOfAnswer(url, answer);
  return verifyRequestObject(ctx, { compact: answer.text ?? "", link, broker });
}

/**
 * A route below `conn` at a broker. A broker's connections are bare paths in exactly one spelling: with any other
 * spelling the link would reach a route different from the one that the wallet believes it to be.
 *
 * @throws {WalletRefusal} invalid_link
 */
export function brokerUrl(connection: string, route: "claim" | "open"): string {
  if (/[?#%]/.test(connection) || new URL(connection).href !== connection)
    throw new WalletRefusal("invalid_link", "conn: is not spelled as a broker spells it");
  return `${connection}/${route}`;
}

/**
 * Lets a request object through only if it is what decisions, section 3, "Request object" asks for:
 * ES256 by a key of the broker, `typ`, `aud`, `iss`, in force, and in agreement with the link.
 *
 * @throws {WalletRefusal} forged_request, expired
 */
export async function verifyRequestObject(
  ctx: WalletContext,
  { compact, link, broker }: { compact: string; link: Link; broker: string },
): Promise<VerifiedObject> {
  const keys = await getBrokerKeys(ctx, broker, { kid: kidOf(compact) });
  const { payload } = verify(compact, keys);
  const now = await ctx.now();
  if (typeof payload["exp"] === "number" && payload["exp"] <= now)
    throw new WalletRefusal("expired", "the request has expired");
  const object = checkRequestObject(payload, { link, brokers: [broker], now });
  if ("refused" in object) throw forged(object.refused);
  return { object, hash: requestObjectHash(compact) };
}

/** Who asks, according to what was verified. */
export function requesterOf(link: Link, verified: VerifiedObject | null): Requester {
  if (verified !== null) {
    const { iss, client_name: clientName, domain } = verified.object;
    return { known: true, broker: iss, clientName, ...(domain === "" ? {} : { domain }) };
  }
  const connection = connectionOf(link);
  if (connection === undefined) return { known: false };
  const host = findHost(connection);
  return host === null
    ? { known: false, scheme: new URL(connection).protocol }
    : { known: false, host };
}

/** Who asks, as the subject of "asks ..". A name is quoted, so that it cannot be mistaken for the words around it. */
export function sayRequester(requester: Requester): string {
  if (!requester.known) {
    const { host, scheme } = requester;
    const place = scheme === undefined ? host : sayApp(scheme);
    return place === undefined ? "Whoever gave you this" : `Somebody unknown at ${place}`;
  }
  return sayVouched(requester.clientName, requester);
}

/** A name, with the domain that a broker says it has verified. */
export function sayVouched(
  name: string,
  { domain, broker }: { readonly domain?: string; readonly broker: string },
): string {
  const standing =
    domain === undefined ? "no verified domain" : `${domain}, verified by ${hostOf(broker)}`;
  return `${quotedName(name)} (${standing})`;
}

function verify(compact: string, keys: Parameters<typeof verifyEs256Jws>[1]): Jws {
  try {
    return verifyEs256Jws(compact, keys, { typ: REQUEST_OBJECT_TYP });
  } catch (fault) {
    if (fault instanceof JwsFault) throw forged(fault.message);
    throw fault;
  }
}

function forged(reason: string): WalletRefusal {
  return new WalletRefusal("forged_request", `the request object is refused: ${reason}`);
}

/** Read before anything is verified, only to know whether the cached keys may be enough. */
function kidOf(compact: string): string | undefined {
  const bytes = bytesOfBase64url(compact.split(".", 1)[0] ?? "");
  const { kid } = membersOf(bytes === null ? null : textOfBytes(bytes));
  return typeof kid === "string" ? kid : undefined;
}
