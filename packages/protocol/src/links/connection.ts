import type { Action } from "../action.ts";
import { queryMembersOf } from "../results/members.ts";
import { LinkRefused, optionalText } from "./parameters.ts";
import type { Parameters } from "./parameters.ts";

/** How the wallet gives its answer (service document, "Deep-link URI protocol", rules 4 and 5). */
export type ReturnType = "qr" | "p2p" | "nfc" | "callback" | "app-link";
/** A data transfer has no `conn`: its answer stays with the holder, is shown or handed over. */
export type TransferReturnType = "qr" | "nfc" | "text" | "p2p";

/** Where and how an answer goes. */
export interface ReturnRoute {
  /** `conn` after one decoding: the exact text that is signed. */
  connection?: string;
  returnType: ReturnType;
}

const returnTypes: readonly string[] = [
  "qr",
  "p2p",
  "nfc",
  "callback",
  "app-link",
] satisfies ReturnType[];
const transferReturnTypes: readonly string[] = [
  "qr",
  "nfc",
  "text",
  "p2p",
] satisfies TransferReturnType[];

/** Schemes that run, read or nest something on the device instead of opening the app or page that they name. */
const refusedSchemes: ReadonlySet<string> = new Set([
  "about",
  "android-app",
  "blob",
  "data",
  "file",
  "filesystem",
  "intent",
  "javascript",
  "svc",
  "vbscript",
  "view-source",
]);
const connectionMax = 4096;

const isReturnType = (text: string): text is ReturnType => returnTypes.includes(text);
const isTransferReturnType = (text: string): text is TransferReturnType =>
  transferReturnTypes.includes(text);

/** Reads `conn` and `type`, which every action but the data transfer has. */
export function readRoute(parameters: Parameters, action: Action): ReturnRoute {
  const returnType = optionalText(parameters, "type") ?? "callback";
  if (!isReturnType(returnType)) {
    throw new LinkRefused("type", `is not one of ${returnTypes.join(", ")}`);
  }
  const connection = optionalText(parameters, "conn");
  if (connection !== undefined) {
    const fault =
      faultOfConnection(connection, returnType) ??
      (returnType === "app-link" ? faultOfQuery(connection, action) : null);
    if (fault !== null) throw new LinkRefused("conn", fault);
    return { connection, returnType };
  }
  if (returnType === "app-link") throw new LinkRefused("conn", "is missing, an app-link needs it");
  return { returnType };
}

/** The same for an action that requires `conn`. */
export function readRequiredRoute(parameters: Parameters, action: Action): Required<ReturnRoute> {
  const { connection, returnType } = readRoute(parameters, action);
  if (connection === undefined) throw new LinkRefused("conn", "is missing");
  return { connection, returnType };
}

export function readTransferReturnType(parameters: Parameters): TransferReturnType {
  const returnType = optionalText(parameters, "type") ?? "p2p";
  if (!isTransferReturnType(returnType)) {
    throw new LinkRefused("type", `is not one of ${transferReturnTypes.join(", ")}`);
  }
  return returnType;
}

/**
 * Why a text cannot be `conn`, or null. What a person is shown is the host as URL parsers read it, so
 * every spelling that parsers read differently is refused: back slashes, white space, missing slashes,
 * user info, characters outside RFC 3986.
 */
function faultOfConnection(text: string, returnType: ReturnType): string | null {
  if (text.length > connectionMax) return `is longer than ${connectionMax} characters`;
  if (!/^[\w.~!$&'()*+,;=:@/?#[\]%-]+$/.test(text)) return "holds a character no URL may hold";
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined || !URL.canParse(text)) return "is not an absolute URL";
  const isWeb = scheme === "http" || scheme === "https";
  if (isWeb && !/^https?:\/\/[^/?#]/i.test(text)) return "names no host";
  // For URL parsers empty user info is no user info, but the text that is signed would contain it.
  if (/^[^:]+:\/\/[^/?#]*@/.test(text)) return "holds user info";
  if (returnType === "app-link") {
    return refusedSchemes.has(scheme) ? `must not use the scheme ${scheme}` : null;
  }
  if (!isWeb) return "is not an http or https URL";
  return text.includes("#") ? "holds a fragment" : null;
}

/** The answer is appended to the query: a name that is there already would be read in place of the appended one. */
function faultOfQuery(connection: string, action: Action): string | null {
  const members = queryMembersOf(action);
  const query = /\?([^#]*)/.exec(connection)?.[1] ?? "";
  const names = query.split("&").map((pair) => decodedName(pair.split("=", 1)[0] ?? ""));
  const taken = names.find((name) => members.has(name));
  return taken === undefined ? null : `already holds the result member ${taken}`;
}

function decodedName(raw: string): string {
  try {
    return decodeURIComponent(raw.replaceAll("+", " "));
  } catch {
    return raw;
  }
}
