import type { Action } from "./action.ts";
import type { Address } from "./address.ts";
import { readAccess } from "./links/access.ts";
import type { AccessLink } from "./links/access.ts";
import type { ReturnType, TransferReturnType } from "./links/connection.ts";
import { readDataTransfer, writeDataTransfer } from "./links/data-transfer.ts";
import type { DataTransferLink } from "./links/data-transfer.ts";
import { writeFields } from "./links/fields.ts";
import { readLogin, writeLogin } from "./links/login.ts";
import type { LoginLink } from "./links/login.ts";
import { LinkRefused, readAddress, readParameters, writeParameters } from "./links/parameters.ts";
import type { LinkFault, Pairs, Parameters } from "./links/parameters.ts";
import { readRequest } from "./links/request.ts";
import type { RequestLink } from "./links/request.ts";
import { readSign, writeSign } from "./links/sign.ts";
import type { SignLink } from "./links/sign.ts";
import { readTd, writeTd } from "./links/td.ts";
import type { TdLink } from "./links/td.ts";
import { readTx, writeTx } from "./links/tx.ts";
import type { TxLink } from "./links/tx.ts";

/** A parsed deep link (service document, "Deep-link URI protocol"). */
export type Link =
  | DataTransferLink
  | LoginLink
  | TdLink
  | RequestLink
  | AccessLink
  | SignLink
  | TxLink;

/** A link is at most this many characters long; it is ASCII, so as many bytes. */
export const linkLengthMax = 131_072;

/**
 * Reads a deep link. Strict: every known parameter is checked against the document's table, a repeated
 * parameter is refused, unknown ones are ignored. Deadlines are read, not compared with a clock.
 * Never throws, whatever the text.
 */
export function parseLink(text: string): Link | { refused: LinkFault } {
  try {
    return readLink(text);
  } catch (refusal) {
    if (refusal instanceof LinkRefused) return { refused: refusal.fault };
    throw refusal;
  }
}

/**
 * Writes a deep link; `parseLink` reads the same link back. Without an identity no slash is written.
 * The type is always spelled out.
 *
 * @throws {TypeError} when `parseLink` would refuse the result; the message names the parameter
 */
export function buildLink(link: Link): string {
  const text = `svc:${pathOf(link)}?${encodable(link.action, pairsOf(link))}`;
  const parsed = parseLink(text);
  if ("refused" in parsed) {
    const { parameter, reason } = parsed.refused;
    throw new TypeError(`cannot build a ${link.action} link: ${parameter ?? "it"} ${reason}`);
  }
  return text;
}

/**
 * The https form that opens the web wallet: `https://<wallet>/l#<svc uri>`; browsers send the fragment to no server.
 */
export function universalLinkOf(walletOrigin: string, link: string): string {
  return `${walletOrigin}/l#${link}`;
}

/**
 * The link inside a universal link, whichever wallet's origin that has: the origin says nothing about who asks, only
 * the link does. Returns any other text as it is.
 */
export function linkInUniversal(text: string): string {
  return /^https?:\/\/[^/?#]+\/l#(svc:.*)$/is.exec(text)?.[1] ?? text;
}

/** How the answer really travels: `callback` without `conn` is shown as `qr` (decisions, section 3). */
export function returnTypeOf(link: Link): ReturnType | TransferReturnType {
  if (link.action === "data-transfer") return link.returnType;
  return link.returnType === "callback" && link.connection === undefined ? "qr" : link.returnType;
}

type Reader = (parameters: Parameters) => Link;

const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ["login", readLogin],
  ["td", readTd],
  ["request", readRequest],
  ["access", readAccess],
  ["sign", readSign],
  ["tx", readTx],
]);

function readLink(text: string): Link {
  if (text.length > linkLengthMax) {
    throw new LinkRefused(null, `is longer than ${linkLengthMax} characters`);
  }
  const match = /^svc:([^?#]*)(?:\?([^#]*))?$/i.exec(text);
  if (match === null) throw new LinkRefused(null, "does not begin with svc:, or holds a #");
  const { read, identity } = readPath(match[1] ?? "");
  const link = read(readParameters(match[2] ?? ""));
  return identity === undefined ? link : { ...link, identity };
}

/** `[action][/][identity]`: the slash comes only after an action, and may end the path. */
function readPath(path: string): { read: Reader; identity: Address | undefined } {
  const [first = "", second, ...rest] = path.split("/");
  if (rest.length > 0) throw new LinkRefused(null, "has more than an action and an identity");
  const read = readers.get(first);
  if (read !== undefined)
    return { read, identity: readIdentity(second ?? "", "has no address after its action") };
  const actions = [...readers.keys()].join(", ");
  if (second !== undefined) throw new LinkRefused(null, `names none of the actions ${actions}`);
  const neither = `names neither an identity nor one of the actions ${actions}`;
  return { read: readDataTransfer, identity: readIdentity(first, neither) };
}

function readIdentity(segment: string, fault: string): Address | undefined {
  return segment === "" ? undefined : readAddress(segment, null, fault);
}

function pathOf({ action, identity }: Link): string {
  if (action === "data-transfer") return identity ?? "";
  return identity === undefined ? action : `${action}/${identity}`;
}

function pairsOf(link: Link): Pairs {
  switch (link.action) {
    case "data-transfer":
      return writeDataTransfer(link);
    case "login":
      return writeLogin(link);
    case "td":
      return writeTd(link);
    case "request":
    case "access":
      return writeFields(link);
    case "sign":
      return writeSign(link);
    case "tx":
      break;
  }
  return writeTx(link);
}

/** `encodeURIComponent` throws at a lone surrogate, which no link can carry. */
function encodable(action: Action, pairs: Pairs): string {
  try {
    return writeParameters(pairs);
  } catch {
    throw new TypeError(`cannot build a ${action} link: a value is not well-formed text`);
  }
}
