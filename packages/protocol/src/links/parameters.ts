import { businessAttribute, isAttribute } from "../attributes.ts";
import { parseAddress } from "../address.ts";
import type { Address } from "../address.ts";
import { bytesOfHex, hexOfBytes, isShowable, secondsMax } from "../encoding.ts";
import type { Hex } from "../encoding.ts";

/** Why a link is refused. `parameter` is the name on the wire; null means the link as a whole. */
export interface LinkFault {
  parameter: string | null;
  reason: string;
}

/** Thrown while a link is read and turned into a `LinkFault` by `parseLink`; it never leaves this package. */
export class LinkRefused extends Error {
  override name = "LinkRefused";
  readonly fault: LinkFault;

  constructor(parameter: string | null, reason: string) {
    super(parameter === null ? reason : `${parameter}: ${reason}`);
    this.fault = { parameter, reason };
  }
}

/** The raw, still encoded values of a link by their decoded names. */
export type Parameters = ReadonlyMap<string, string>;
/** What a builder writes, in order: name and decoded value, or the decoded elements of an array. */
export type Pairs = readonly (readonly [
  name: string,
  value: string | readonly string[] | undefined,
])[];

const parametersMax = 64;
const attributesMax = 200;
const textMax = 4096;

/**
 * Splits a query by RFC 3986: `+` is a plus sign, a pair without `=` has the empty value. Values stay encoded, so that
 * the value of an unknown parameter can be ignored whatever it holds.
 */
export function readParameters(query: string): Parameters {
  const parameters = new Map<string, string>();
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const at = pair.indexOf("=");
    const name = decode(at < 0 ? pair : pair.slice(0, at), null);
    if (parameters.has(name)) throw new LinkRefused(name, "appears more than once");
    parameters.set(name, at < 0 ? "" : pair.slice(at + 1));
    if (parameters.size > parametersMax) {
      throw new LinkRefused(null, `has more than ${parametersMax} parameters`);
    }
  }
  return parameters;
}

/** Joins pairs as `readParameters` splits them; undefined values and empty arrays are left out. */
export function writeParameters(pairs: Pairs): string {
  const written: string[] = [];
  for (const [name, value] of pairs) {
    if (value === undefined || (typeof value !== "string" && value.length === 0)) continue;
    const encoded =
      typeof value === "string"
        ? encodeURIComponent(value)
        : value.map((element) => encodeURIComponent(element)).join(",");
    written.push(`${name}=${encoded}`);
  }
  return written.join("&");
}

function decode(raw: string, parameter: string | null): string {
  // The characters of RFC 3986 except "#": anything else must be percent-encoded.
  if (!/^[\w.~!$&'()*+,;=:@/?[\]%-]*$/.test(raw)) {
    throw new LinkRefused(parameter, "holds a character that must be percent-encoded");
  }
  try {
    return decodeURIComponent(raw);
  } catch {
    throw new LinkRefused(parameter, "is not percent-encoded UTF-8");
  }
}

/** The decoded value, or undefined if the parameter is absent. A parameter that is present is never empty. */
export function optionalText(parameters: Parameters, name: string): string | undefined {
  const raw = parameters.get(name);
  if (raw === undefined) return undefined;
  const text = decode(raw, name);
  if (text === "") throw new LinkRefused(name, "is empty");
  return text;
}

export function requiredText(parameters: Parameters, name: string): string {
  const text = optionalText(parameters, name);
  if (text === undefined) throw new LinkRefused(name, "is missing");
  return text;
}

/** An opaque text that the wallet may show and sign: `sess`, `id`, `aud`, `nonce`. */
export function optionalShowable(parameters: Parameters, name: string): string | undefined {
  const text = optionalText(parameters, name);
  if (text === undefined) return undefined;
  if (text.length > textMax) throw new LinkRefused(name, `is longer than ${textMax} characters`);
  if (!isShowable(text)) throw new LinkRefused(name, "holds control or bidirectional characters");
  return text;
}

export function requiredShowable(parameters: Parameters, name: string): string {
  const text = optionalShowable(parameters, name);
  if (text === undefined) throw new LinkRefused(name, "is missing");
  return text;
}

/** `attr`: elements split at the commas of the encoded value, so `%2C` belongs to an element. Repeats are dropped. */
export function optionalAttributes(parameters: Parameters, name: string): readonly string[] {
  const raw = parameters.get(name);
  if (raw === undefined) return [];
  const attributes = new Set<string>();
  for (const element of raw.split(",")) {
    const attribute = decode(element, name);
    if (!isAttribute(attribute)) {
      throw new LinkRefused(name, "is not a list of attribute names in lower-case kebab-case");
    }
    attributes.add(attribute);
  }
  if (attributes.size > attributesMax) {
    throw new LinkRefused(name, `names more than ${attributesMax} attributes`);
  }
  return [...attributes];
}

export function requiredAttributes(parameters: Parameters, name: string): readonly string[] {
  if (!parameters.has(name)) throw new LinkRefused(name, "is missing");
  return optionalAttributes(parameters, name);
}

/** The reserved name may only be the single element, and only in `request`. */
export function refuseBusiness(attributes: readonly string[], name: string): void {
  if (attributes.includes(businessAttribute)) {
    throw new LinkRefused(name, `holds the reserved name ${businessAttribute}`);
  }
}

export function requiredAddress(parameters: Parameters, name: string): Address {
  return readAddress(requiredText(parameters, name), name, "is not an address");
}

/** @param fault the reason for a text that is no address; a wrong checksum has its own, as the address looks right */
export function readAddress(text: string, name: string | null, fault: string): Address {
  const address = parseAddress(text);
  if (address !== null) return address;
  const isMistyped = parseAddress(text.toLowerCase()) !== null;
  throw new LinkRefused(name, isMistyped ? "has an address whose checksum is wrong" : fault);
}

/** Hex digits, with or without `0x`, as bytes in canonical spelling. */
export function optionalHex(parameters: Parameters, name: string): Hex | undefined {
  const text = optionalText(parameters, name);
  if (text === undefined) return undefined;
  const bytes = bytesOfHex(/^0x/i.test(text) ? `0x${text.slice(2)}` : `0x${text}`);
  if (bytes === null) throw new LinkRefused(name, "is not an even number of hex digits");
  return hexOfBytes(bytes);
}

/** A decimal integer from 0 to `max` in its one spelling, kept as text because it may not fit a number. */
export function optionalDecimal(
  parameters: Parameters,
  name: string,
  max: bigint,
): string | undefined {
  const text = optionalText(parameters, name);
  if (text === undefined) return undefined;
  if (!/^(?:0|[1-9][0-9]{0,77})$/.test(text)) throw new LinkRefused(name, "is not a whole number");
  if (BigInt(text) > max) throw new LinkRefused(name, `is larger than ${max}`);
  return text;
}

/** More than any number of 78 digits. */
const decimalMax = 10n ** 78n;

/** Unix seconds. Whether the moment has passed is for the caller, who has a clock. */
export function optionalSeconds(parameters: Parameters, name: string): number | undefined {
  const text = optionalDecimal(parameters, name, decimalMax);
  if (text === undefined) return undefined;
  const seconds = Number(text);
  // Most often these are milliseconds.
  if (seconds > secondsMax) throw new LinkRefused(name, "is not a time in Unix seconds");
  return seconds;
}

export function requiredSeconds(parameters: Parameters, name: string): number {
  const seconds = optionalSeconds(parameters, name);
  if (seconds === undefined) throw new LinkRefused(name, "is missing");
  return seconds;
}
