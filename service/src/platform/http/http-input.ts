import { hasTooManyValues, jsonValuesMax, textOfBytes } from "@svc/protocol";
import { Problem } from "./problems.ts";

/**
 * Refuses a body that was compressed: it would have to be unpacked before its size is known.
 *
 * @throws {Problem} unsupported_media_type, with what is accepted (RFC 9110 section 12.5.3)
 */
export function refuseCoding(contentEncoding: string | undefined): void {
  if (contentEncoding === undefined) return;
  const codings = contentEncoding.split(",").map((coding) => coding.trim().toLowerCase());
  if (codings.every((coding) => coding === "" || coding === "identity")) return;
  throw new Problem("unsupported_media_type", {
    message: "the body must be sent without a Content-Encoding",
    headers: { "accept-encoding": "identity" },
  });
}

/** Values by name; a name that was given more than once holds a list, which only the routes that allow it accept. */
export type Form = Readonly<Record<string, string | string[]>>;

/** One value of a form by name; an empty or repeated one counts as absent (RFC 6749 section 3.1). */
export function valueOf(form: Form, name: string): string | undefined {
  const value = form[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

const depthMax = 32;
/** More than the names that `verified` may be asked for at once. */
const parametersMax = 200;

/** Parses a query string or form body. PostgreSQL cannot hold U+0000, so no value may. @throws {Problem} malformed_request */
export function parseForm(text: string): Form {
  const form = Object.create(null) as Record<string, string | string[]>;
  if (text === "") return form;
  let count = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    count += 1;
    if (count > parametersMax) throw malformed(`more than ${parametersMax} parameters`);
    if (value.includes("\0") || name.includes("\0")) throw malformed("a parameter holds U+0000");
    const known = form[name];
    form[name] = known === undefined ? value : [known, value].flat();
  }
  return form;
}

const queryFault = Symbol("queryFault");

/**
 * As {@link parseForm}, but for the router, which must not be given a parser that throws: the fault is part of the
 * result.
 */
export function parseQuery(text: string): Form {
  try {
    return parseForm(text);
  } catch (error) {
    return Object.assign(Object.create(null) as Form, { [queryFault]: error });
  }
}

/** The fault that {@link parseQuery} found, for the first hook of a request to throw; null for a good query. */
export function queryFaultOf(query: unknown): Problem | null {
  const fault = (query as { [queryFault]?: unknown } | null)?.[queryFault];
  return fault instanceof Problem ? fault : null;
}

/**
 * Parses a JSON body: UTF-8 (RFC 8259 section 8.1), at most 65,536 values in 32 levels, no U+0000, no lone surrogates, no
 * `__proto__`.
 *
 * @throws {Problem} malformed_request
 */
export function parseJson(bytes: Uint8Array): unknown {
  const text = textOfBytes(bytes);
  // Replacing invalid bytes would make a text that nobody wrote, to be stored, shown and signed.
  if (text === null) throw malformed("the body is not UTF-8");
  if (hasTooManyValues(bytes)) throw malformed(`the body holds more than ${jsonValuesMax} values`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw malformed("the body is not valid JSON");
  }
  checkValue(value, 0);
  return value;
}

function checkValue(value: unknown, depth: number): void {
  if (typeof value === "string") checkText(value);
  if (typeof value !== "object" || value === null) return;
  if (depth === depthMax) throw malformed(`the body is nested deeper than ${depthMax}`);
  if (Array.isArray(value)) value.forEach((each) => checkValue(each, depth + 1));
  else {
    for (const [name, each] of Object.entries(value)) {
      if (name === "__proto__") throw malformed("a member is named __proto__");
      checkText(name);
      checkValue(each, depth + 1);
    }
  }
}

function checkText(text: string): void {
  if (text.includes("\0") || !text.isWellFormed()) {
    throw malformed("a text holds U+0000 or a lone surrogate");
  }
}

function malformed(what: string): Problem {
  return new Problem("malformed_request", { message: `Invalid Request: ${what}` });
}
