import {
  bytesOfText,
  hashTypedData,
  type Hex32,
  hexOfBytes,
  isRecord,
  isShowable,
  personalDigest,
  refusalOfTypedData,
  siweDomainOf,
  type TypedDataDocument,
  TypedDataFault,
  warningsOfTypedData,
} from "@svc/protocol";
import { invalidRequest, Problem } from "../../platform/http/problems.ts";

/** What a business is asked to sign. */
export type SignedDocument =
  | { readonly messageKind: "TEXT"; readonly message: string }
  | { readonly messageKind: "TYPED_DATA"; readonly typedData: TypedDataDocument };

/** A document with the digest that is signed: EIP-191 for a text, EIP-712 for typed data. */
export interface ReadDocument {
  readonly document: SignedDocument;
  readonly digest: Hex32;
}

const messageBytesMax = 4096;
const typedDataBytesMax = 64 * 1024;

/** Reads the members of a request. @throws {Problem} invalid_request */
export function readDocument(given: {
  messageKind: "TEXT" | "TYPED_DATA";
  message?: string;
  typedData?: unknown;
}): ReadDocument {
  const { messageKind, message, typedData } = given;
  if (messageKind === "TEXT") {
    if (message === undefined || typedData !== undefined)
      throw invalidRequest("a TEXT has message, and no typedData");
    return readText(message);
  }
  if (typedData === undefined || message !== undefined)
    throw invalidRequest("TYPED_DATA has typedData, and no message");
  return readTypedData(typedData);
}

function readText(message: string): ReadDocument {
  const bytes = bytesOfText(message);
  if (bytes.length === 0 || bytes.length > messageBytesMax)
    throw invalidRequest(`message has 1 to ${messageBytesMax} bytes`);
  if (!isShowable(message)) throw invalidRequest("message holds characters that cannot be shown");
  return {
    document: { messageKind: "TEXT", message },
    digest: hexOfBytes(personalDigest(bytes)),
  };
}

function readTypedData(given: unknown): ReadDocument {
  if (!isTypedData(given))
    throw invalidRequest("typedData has domain, types, primaryType and message, and nothing else");
  const { domain, types, primaryType, message } = given;
  const typedData = { domain, types, primaryType, message };
  if (Buffer.byteLength(JSON.stringify(typedData)) > typedDataBytesMax)
    throw invalidRequest(`typedData has at most ${typedDataBytesMax} bytes`);
  if (!areTextsShowable([domain, message]))
    throw invalidRequest("typedData holds characters that cannot be shown");
  try {
    return { document: { messageKind: "TYPED_DATA", typedData }, digest: hashTypedData(typedData) };
  } catch (error) {
    if (error instanceof TypedDataFault) throw invalidRequest(`typedData: ${error.message}`);
    throw error;
  }
}

/** Whether all texts in a value can be shown. Names of members are identifiers or not hashed, so need no check. */
function areTextsShowable(value: unknown): boolean {
  if (typeof value === "string") return isShowable(value);
  if (Array.isArray(value)) return value.every((each) => areTextsShowable(each));
  return !isRecord(value) || Object.values(value).every((each) => areTextsShowable(each));
}

function isTypedData(value: unknown): value is TypedDataDocument {
  if (!isRecord(value)) return false;
  const { domain, types, primaryType, message, ...others } = value;
  return (
    Object.keys(others).length === 0 &&
    isRecord(domain) &&
    isRecord(types) &&
    typeof primaryType === "string" &&
    isRecord(message)
  );
}

/**
 * Refuses what nobody should sign at the request of others (decisions sections 3 and 6): our own types and domain name,
 * signing in to another domain, permits and operations of accounts, another chain.
 *
 * @param requester.domain the verified domain of the requester, to which alone a text may sign in; empty if none is
 *   verified
 * @throws {Problem} document_refused
 */
export function refuseDocument(
  document: SignedDocument,
  requester: { readonly domain: string; readonly chainId: number },
): void {
  const reason =
    document.messageKind === "TEXT"
      ? refusalOfText(document.message, requester.domain)
      : refusalOfData(document.typedData, requester.chainId);
  if (reason !== null)
    throw new Problem("document_refused", { message: `document_refused: ${reason}` });
}

function refusalOfText(message: string, domain: string): string | null {
  const signedInTo = siweDomainOf(message);
  const isOwn = signedInTo !== "" && signedInTo === domain;
  return signedInTo === null || isOwn ? null : "the text signs in to another domain";
}

function refusalOfData(typedData: TypedDataDocument, chainId: number): string | null {
  const reserved = refusalOfTypedData(typedData);
  if (reserved !== null) return reserved.reason;
  const [warning] = warningsOfTypedData(typedData);
  if (warning !== undefined) return `documents of this kind move assets or rights: ${warning}`;
  const named = typedData.domain["chainId"];
  return named === undefined || isChain(named, chainId) ? null : "its domain names another chain";
}

/** Whether a domain's `chainId` is the id of this chain. It may have any type; only numbers and texts are compared. */
function isChain(named: unknown, chainId: number): boolean {
  const isNumber = typeof named === "number" || typeof named === "string";
  return isNumber && named !== "" && Number(named) === chainId;
}
