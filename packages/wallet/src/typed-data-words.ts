import type { TypedDataDocument } from "@svc/protocol";
import { shownText } from "./shown-text.ts";

/**
 * Every member of an EIP-712 document as one line each: path, type, value. The document has been hashed before, so
 * nothing in it is untyped and nothing typed is missing.
 */
export function sayTypedData(document: TypedDataDocument): readonly string[] {
  const { domain, primaryType, message } = document;
  const lines = Object.entries(domain).map(
    ([name, value]) => `domain.${name}: ${sayDomainValue(document, name, value)}`,
  );
  if (lines.length === 0) lines.push("domain: empty");
  // A bare domain has no message, and its own members are listed above.
  if (primaryType !== "EIP712Domain")
    collect(document, { type: primaryType, value: message, at: "message" }, lines);
  return lines.map(shownText);
}

interface Place {
  readonly type: string;
  readonly value: unknown;
  readonly at: string;
}

function collect(document: TypedDataDocument, place: Place, lines: string[]): void {
  const { type, value, at } = place;
  const element = /^(.*)\[\d*\]$/s.exec(type)?.[1];
  if (element !== undefined) {
    const elements: readonly unknown[] = Array.isArray(value) ? value : [];
    if (elements.length === 0) lines.push(`${at} (${type}): empty`);
    for (const [index, each] of elements.entries())
      collect(document, { type: element, value: each, at: `${at}[${index}]` }, lines);
    return;
  }
  const fields = Object.hasOwn(document.types, type) ? document.types[type] : undefined;
  if (fields === undefined) {
    lines.push(`${at} (${type}): ${sayValue(type, value)}`);
    return;
  }
  if (fields.length === 0) lines.push(`${at} (${type}): empty`);
  const members = value as Readonly<Record<string, unknown>>;
  for (const { name, type: inner } of fields)
    collect(document, { type: inner, value: members[name], at: `${at}.${name}` }, lines);
}

/** Anything that is not a number is quoted: if `types` leave out the domain's type, only the chain id is a number. */
function sayDomainValue({ types }: TypedDataDocument, name: string, value: unknown): string {
  const declared = Object.hasOwn(types, "EIP712Domain") ? types["EIP712Domain"] : undefined;
  const fields = declared ?? [{ name: "chainId", type: "uint256" }];
  const type = fields.find((field) => field.name === name)?.type;
  return sayValue(type !== undefined && isInteger(type) ? type : undefined, value);
}

const isInteger = (type: string): boolean => /^u?int\d+$/.test(type);

/**
 * Numbers in decimal, however they were spelled; texts in quotes, so that none can be mistaken for the wallet's words.
 */
function sayValue(type: string | undefined, value: unknown): string {
  const isNumber = type !== undefined && isInteger(type);
  if (isNumber && (typeof value === "string" || typeof value === "number"))
    return BigInt(value).toString();
  if (type === "string" || type === undefined) return JSON.stringify(value) ?? "nothing";
  return String(value);
}
