import {
  bytesOfBase64url,
  fieldsOfName,
  isFieldName,
  isParentName,
  originOfConnection,
  requestObjectAudience,
  REQUEST_OBJECT_TYP,
  textOfBytes,
  verifyEs256Jws,
  JwsFault,
  type EcPublicJwk,
  type Receipt,
} from "@svc/protocol";

import { parseObject } from "./answer.ts";
import { openMembers } from "./members.ts";

/** What the user was shown. The user signed its hash; whether the broker signed it is a separate fact. */
export interface RequestStatement {
  /** The broker that asked on the merchant's behalf: an origin. */
  broker: string;
  clientName: string;
  /** The merchant's verified domain; empty if none was verified. */
  requester: string;
  /** Names that had to be released, parents included. */
  required: string[];
  /** Names that could be left out. */
  optional: string[];
  /** Where the data went. */
  callbackHost: string;
  purpose?: string;
  /** Unix seconds. */
  issuedAt: number;
}

/**
 * Reads the request object of a receipt and checks that it is about the receipt's order, and that what was released is
 * what it asked for. Its hash, which the user signed, has been compared before.
 *
 * @param fault names the claim that is wrong
 */
export function readStatement(receipt: Receipt, fault: (claim: string) => Error): RequestStatement {
  const { header, claims } = decode(receipt.requestObject, fault);
  const members = openMembers(claims, fault);
  const { share } = receipt;
  const statement: RequestStatement = {
    broker: members.text("iss"),
    clientName: members.text("client_name"),
    requester: members.anyText("domain"),
    required: members.texts("required"),
    optional: members.texts("optional"),
    callbackHost: members.text("callback_host"),
    ...(members.has("purpose") && { purpose: members.text("purpose") }),
    issuedAt: members.count("iat"),
  };
  const checks: [boolean, string][] = [
    [header["typ"] === REQUEST_OBJECT_TYP, "typ"],
    [members.text("aud") === requestObjectAudience, "aud"],
    [members.text("action") === "request", "action"],
    [members.text("id") === receipt.referenceKey, "id"],
    [originOfConnection(share.connection) === statement.broker, "iss"],
    [statement.requester === share.requester, "domain"],
    [isWhatWasAsked(receipt, statement), "required"],
  ];
  const failed = checks.find(([holds]) => !holds);
  if (failed !== undefined) throw fault(failed[1]);
  return statement;
}

/** Whether one of the keys signed the request object (decisions, section 3, Request object). */
export function isSignedByBroker(receipt: Receipt, keys: readonly EcPublicJwk[]): boolean {
  try {
    verifyEs256Jws(receipt.requestObject, { keys }, { typ: REQUEST_OBJECT_TYP });
    return true;
  } catch (error) {
    if (error instanceof JwsFault) return false;
    throw error;
  }
}

type Claims = Record<string, unknown>;

function decode(
  compact: string,
  fault: (claim: string) => Error,
): { header: Claims; claims: Claims } {
  const [head = "", body = "", tail, ...more] = compact.split(".");
  const [header, claims] = [parsePart(head), parsePart(body)];
  if (header === null || claims === null || tail === undefined || more.length > 0)
    throw fault("form");
  return { header, claims };
}

function parsePart(part: string): Claims | null {
  const bytes = bytesOfBase64url(part);
  const text = bytes === null ? null : textOfBytes(bytes);
  return text === null ? null : parseObject(text);
}

/** Whether every released field was asked for, and every required name has a field that satisfies it. */
function isWhatWasAsked({ fields }: Receipt, { required, optional }: RequestStatement): boolean {
  const released = fields.map(({ field }) => field);
  const asked = new Set<string>([...required, ...optional].flatMap((name) => fieldsOf(name)));
  return (
    released.every((field) => asked.has(field)) &&
    required.every((name) =>
      fieldsOf(name).some((field) => released.some((each) => each === field)),
    )
  );
}

function fieldsOf(name: string): readonly string[] {
  return isFieldName(name) || isParentName(name) ? fieldsOfName(name) : [];
}
