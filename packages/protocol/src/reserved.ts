import { keccak256 } from "./keccak.ts";

import { bytesOfHex, bytesOfText, hexOfBytes, isRecord, textOfBytes } from "./encoding.ts";
import type { Hex32 } from "./encoding.ts";
import type { SignLink } from "./links/sign.ts";
import type { TdLink } from "./links/td.ts";
import { businessTypes, svcDomain, svcTypes } from "./svc-types.ts";
import { typeHash } from "./typed-data.ts";
import type { TypedDataDocument } from "./typed-data.ts";
import { TypedDataFault, compileTypes, encodeTypeOf, reachableTypes } from "./typed-data-types.ts";

/** What a wallet warns about, full screen, before it signs. */
export type Warning =
  | "permit"
  | "transfer-with-authorization"
  | "receive-with-authorization"
  | "order"
  | "safe-transaction"
  | "user-operation"
  | "delegation"
  | "blind-hash";

const ownTypes = { ...svcTypes, ...businessTypes };
type OwnType = keyof typeof ownTypes;
const isOwnType = (name: string): name is OwnType => Object.hasOwn(ownTypes, name);

/** The type hashes that wallets sign for nobody else, by hash; the values are our names for them. */
export const reservedTypeHashes: ReadonlyMap<Hex32, OwnType> = new Map(
  Object.keys(ownTypes)
    .filter(isOwnType)
    .map((name) => [typeHash(ownTypes, name), name]),
);

/**
 * Why a document may not be signed at the request of others, or null: a type hash of ours, whatever the domain, or our
 * domain name (decisions, section 3, "Reserved types"). The types inside the primary type count as well: smart accounts
 * accept a signature of a wrapper (ERC-7739) as one of its content. A document whose types are malformed is refused
 * too. Never throws.
 */
export function refusalOfTypedData(document: TypedDataDocument): { reason: string } | null {
  // The document may come from anybody, whatever its type says.
  if (!isRecord(document.domain)) return { reason: "the domain is not an object" };
  if (document.domain["name"] === svcDomain.name) {
    return { reason: `the domain name ${svcDomain.name} is reserved` };
  }
  try {
    const structs = compileTypes(withDomain(document));
    // The text that is hashed begins with the name, so a type of another name has none of our hashes.
    for (const name of reachableTypes(structs, document.primaryType).filter(isOwnType)) {
      const hash = hexOfBytes(keccak256(bytesOfText(encodeTypeOf(structs, name))));
      const reserved = reservedTypeHashes.get(hash);
      if (reserved !== undefined) return { reason: `the type ${reserved} is reserved` };
    }
    return null;
  } catch (fault) {
    if (fault instanceof TypedDataFault) return { reason: fault.message };
    throw fault;
  }
}

/**
 * Why the bytes of a `sign` may not be signed, or null: they are EIP-4361 text, "sign in with Ethereum", for another
 * domain than the host that receives the signature.
 *
 * @param receiver the web address that it is sent to or opened at; undefined if it is shown or handed over
 */
export function refusalOfMessage(
  message: Uint8Array,
  receiver: string | undefined,
): { reason: string } | null {
  const text = textOfBytes(message);
  const domain = text === null ? null : siweDomainOf(text);
  if (domain === null) return null;
  if (receiver !== undefined && domain !== "" && sameHost(domain, receiver)) return null;
  return { reason: "the text signs in to another domain" };
}

/** Both refusals by the link that asks. Null for a link that may be shown and signed. */
export function refusalOf(link: TdLink | SignLink): { reason: string } | null {
  if (link.action === "td") return refusalOfTypedData({ ...link.data, types: link.types });
  // With any other return type, the one who shows the link gets the signature, and `conn` never receives it.
  const isReceived = link.returnType === "callback" || link.returnType === "app-link";
  const receiver = isReceived ? link.connection : undefined;
  return refusalOfMessage(bytesOfHex(link.data) ?? new Uint8Array(0), receiver);
}

/**
 * The domain that an EIP-4361 text signs in to, without its scheme, in lower case; null for any other text. Recognised
 * by its first line alone and generously, because it decides about a refusal: for a text that is almost one, the result
 * is whatever precedes the phrase, which then matches no host.
 *
 * @see https://eips.ethereum.org/EIPS/eip-4361
 */
export function siweDomainOf(text: string): string | null {
  const [line = ""] = text.slice(0, 4096).trimStart().split("\n", 1);
  const lower = line.toLowerCase();
  const at = lower.indexOf("wants you to sign in with your ");
  if (at < 0 || !lower.includes(" account", at)) return null;
  return lower
    .slice(0, at)
    .trim()
    .replace(/^[a-z][a-z0-9+.-]*:\/\//, "");
}

/** What to warn about in a document, by the names of all types it reaches. Each code once. */
export function warningsOfTypedData(document: TypedDataDocument): readonly Warning[] {
  const structs = compileTypes(withDomain(document));
  const warnings = new Set<Warning>();
  for (const name of reachableTypes(structs, document.primaryType)) {
    const warning = name.startsWith("Permit") ? "permit" : warningOfType.get(name);
    if (warning !== undefined) warnings.add(warning);
  }
  return [...warnings];
}

/** What to warn about in the bytes of a `sign`: a bare hash, as bytes or spelled out in hex, shows nothing of what it stands for. */
export function warningsOfMessage(message: Uint8Array): readonly Warning[] {
  const text = textOfBytes(message);
  const isReadable = text !== null && !/\p{C}/u.test(text);
  const isBlind =
    (message.length === 32 && !isReadable) ||
    (text !== null && /^(?:0x)?[0-9a-f]{64}$/i.test(text.trim()));
  return isBlind ? ["blind-hash"] : [];
}

/** Both kinds of warnings by the link that asks. */
export function warningsOf(link: TdLink | SignLink): readonly Warning[] {
  if (link.action === "td") return warningsOfTypedData({ ...link.data, types: link.types });
  return warningsOfMessage(bytesOfHex(link.data) ?? new Uint8Array(0));
}

const warningOfType: ReadonlyMap<string, Warning> = new Map([
  ["TransferWithAuthorization", "transfer-with-authorization"],
  ["ReceiveWithAuthorization", "receive-with-authorization"],
  ["OrderComponents", "order"],
  ["SafeTx", "safe-transaction"],
  ["PackedUserOperation", "user-operation"],
  ["Delegation", "delegation"],
]);

/** `EIP712Domain` may be left out of the types and still be the primary type. */
function withDomain({ types }: TypedDataDocument): TypedDataDocument["types"] {
  return { EIP712Domain: [], ...types };
}

function sameHost(domain: string, receiver: string): boolean {
  const received = new URL(receiver);
  const scheme = received.protocol;
  // An app can put any host after a scheme of its own.
  if (scheme !== "https:" && scheme !== "http:") return false;
  if (!/^[a-z0-9.:[\]-]+$/.test(domain) || !URL.canParse(`${scheme}//${domain}`)) return false;
  return new URL(`${scheme}//${domain}`).host === received.host;
}
