import { DatabaseError } from "pg";
import { type DestinationStream, pino } from "pino";
import type { Config } from "../config/config.ts";
import { openLogOutput } from "./log-output.ts";
import { escapeSteering } from "./steering.ts";

interface Write {
  (fields: Readonly<Record<string, unknown>>, message: string): void;
  (message: string): void;
}

/** Structured log: what varies goes into fields, the message is a constant. An error goes into the field `err`. */
export interface Log {
  readonly fatal: Write;
  readonly error: Write;
  readonly warn: Write;
  readonly info: Write;
  readonly debug: Write;
}

const standardOutput = openLogOutput(1);

/** Writes a line for people to standard output, after everything that was logged before. */
export function announce(line: string): void {
  standardOutput.write(`${line}\n`);
}

/**
 * JSON lines on standard output, or on `destination`. Nothing secret or personal gets through, wherever it is: fields
 * are hidden by name at any depth; query strings, tokens and credentials are removed from every text; of errors only
 * kind, code, place and a message without quoted input are kept.
 */
export function createLog(options: {
  level: Config["logLevel"];
  destination?: DestinationStream;
}): Log {
  const settings = {
    level: options.level,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (fields: Record<string, unknown>) => hideFields(fields, 0),
    },
    // Errors have been described by then. pino's own serializer would call each of them "Object", and add its causes.
    serializers: { err: (described: unknown) => described },
    // Any text may reach the log, such as one that a chain's node quotes.
    hooks: { streamWrite: (line: string) => escapeSteering(cutSecrets(line)) },
  };
  return pino(settings, options.destination ?? standardOutput);
}

/** Names of fields, in lower case and without `-` and `_`. */
const hiddenNames = new Set(
  [
    ["authorization", "proxyauthorization", "cookie", "setcookie", "dpop", "password", "secret"],
    ["clientsecret", "claimsecret", "code", "codeverifier", "clientassertion", "signature"],
    [
      "token",
      "refreshtoken",
      "accesstoken",
      "idtoken",
      "idtokenhint",
      "logouttoken",
      "subjecttoken",
    ],
    ["apikey", "masterkey", "privatekey", "mnemonic", "digits", "email", "phone", "body", "query"],
  ].flat(),
);

const hidden = "[hidden]";
const depthMax = 6;
const itemsMax = 50;
/**
 * The most characters of one text, which may be somebody else's: the time to look for secrets may grow with the square
 * of its length.
 */
const charactersMax = 4096;

/** A cut may leave half of a character, for which strict readers of JSON would drop the line: hence `toWellFormed`. */
const cut = (text: string): string => text.slice(0, charactersMax).toWellFormed();

function hideFields(fields: object, depth: number): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    const isHidden = hiddenNames.has(name.toLowerCase().replaceAll(/[-_]/g, ""));
    shown[name] = isHidden ? hidden : hideValue(value, depth + 1);
  }
  return shown;
}

function hideValue(value: unknown, depth: number): unknown {
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "string") return cut(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth > depthMax || ArrayBuffer.isView(value)) return hidden;
  if (value instanceof Error) return describeError(value, depth);
  if (Array.isArray(value))
    return value.slice(0, itemsMax).map((each) => hideValue(each, depth + 1));
  if (value instanceof URL) return cut(value.href);
  return hideFields(value, depth);
}

/** An error's own fields may hold rows, parameters and requests, so none of them is kept. */
function describeError(error: Error, depth: number): Record<string, unknown> {
  const code = "code" in error ? error.code : undefined;
  const frames = error.stack?.split("\n").filter((line) => /^\s+at /.test(line)) ?? [];
  return {
    type: error.name,
    message: messageOf(error),
    ...(error instanceof DatabaseError ? { table: error.table, constraint: error.constraint } : {}),
    ...(typeof code === "string" && /^\w{1,40}$/.test(code) ? { code } : {}),
    stack: frames.slice(0, itemsMax).join("\n"),
    ...(error.cause === undefined ? {} : { cause: hideValue(error.cause, depth + 1) }),
    ...(error instanceof AggregateError ? { errors: hideValue(error.errors, depth) } : {}),
    ...(error instanceof SuppressedError
      ? { errors: hideValue([error.suppressed, error.error], depth) }
      : {}),
  };
}

/** PostgreSQL and the parsers quote their input: a value of a row, a piece of a body. */
function messageOf(error: Error): string {
  const quotesInput = error instanceof DatabaseError || error instanceof SyntaxError;
  const message = quotesInput ? error.message.replaceAll(/(["'`]).*\1/gs, hidden) : error.message;
  return cut(message);
}

/**
 * Processes the whole line, so that nothing that reaches the log in another way gets through. It removes whatever
 * follows a question mark or a hash in an address, tokens in three parts, API keys, and what follows the name of an
 * authentication scheme.
 */
function cutSecrets(line: string): string {
  return line
    .replaceAll(/([^\s"'?#]{2})[?#][^\s"'\\<>]*=[^\s"'\\<>]*/g, "$1?[hidden]")
    .replaceAll(/\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)*/g, hidden)
    .replaceAll(/\bsvc_(?:live|test|mgmt|issuer)_\w+/g, hidden)
    .replaceAll(/\b(Basic|Bearer|DPoP) [\w+/=.~-]{8,}/gi, `$1 ${hidden}`);
}
