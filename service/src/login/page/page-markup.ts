import type { Locale } from "../../platform/http/pick-locale.ts";
import { texts, type TextKey } from "./page-texts.ts";

/** Text that is HTML already. Only this file makes it, so nothing reaches a page unescaped. */
export interface Markup {
  readonly markup: string;
}

type Part = string | number | Markup | readonly Markup[] | null;

/** Puts values into HTML, escaped for both text and quoted attributes; `null` becomes nothing. */
export function markup(parts: TemplateStringsArray, ...values: readonly Part[]): Markup {
  const lines = withoutIndent(parts);
  let text = lines[0] ?? "";
  for (const [index, value] of values.entries()) text += toMarkup(value) + (lines[index + 1] ?? "");
  return { markup: text };
}

const withoutIndentCache = new WeakMap<TemplateStringsArray, readonly string[]>();

/** Removes the indentation of the sources, which would be a fifth of the page's bytes. */
function withoutIndent(parts: TemplateStringsArray): readonly string[] {
  const known = withoutIndentCache.get(parts);
  if (known !== undefined) return known;
  const lines = parts.map((part) => part.replaceAll(/\n\s+/g, "\n"));
  withoutIndentCache.set(parts, lines);
  return lines;
}

function toMarkup(value: Part): string {
  if (value === null) return "";
  if (typeof value === "string" || typeof value === "number") return escapeHtml(String(value));
  return "markup" in value ? value.markup : value.map((each) => each.markup).join("");
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
/**
 * Control characters, and the marks that change the reading direction: with them a name could look like another one.
 */
const misleading = /[\p{Bidi_Control}\p{Zl}\p{Zp}]|(?![\t\n])\p{Cc}/u;
/** Printable ASCII contains nothing misleading, and can be checked and escaped at a tenth of the cost. */
const plain = /^[\n -~]*$/;
const plainSpecial = /[&<>"']/g;
const special = new RegExp(`[&<>"']|${misleading.source}`, "gu");

/** The one place where foreign text becomes HTML, also of an attribute. Misleading characters become U+FFFD. */
export function escapeHtml(text: string): string {
  if (plain.test(text)) {
    return text.replaceAll(plainSpecial, (character) => entities[character] ?? character);
  }
  return text.replaceAll(special, (character) => entities[character] ?? "\ufffd");
}

/** Accepts markup that our own code has drawn, such as `qrSvg`. */
export function drawn(text: string): Markup {
  return { markup: text };
}

/** A text of the pages in one language, with its placeholders filled. */
export function say(
  locale: Locale,
  key: TextKey,
  values: Readonly<Record<string, string | Markup>> = {},
): Markup {
  const parts = partsOf(locale, key);
  let text = parts[0] ?? "";
  for (let index = 1; index < parts.length; index += 2) {
    const name = parts[index] ?? "";
    const value = values[name];
    if (value === undefined) throw new Error(`text ${key} needs ${name}`);
    text += toMarkup(value) + (parts[index + 1] ?? "");
  }
  return { markup: text };
}

const partsCache = new Map<string, readonly string[]>();

/** Escaped text and names of placeholders in turn. A page has 50 texts, so each is split only once. */
function partsOf(locale: Locale, key: TextKey): readonly string[] {
  const cacheKey = `${locale} ${key}`;
  const known = partsCache.get(cacheKey);
  if (known !== undefined) return known;
  const parts = texts[locale][key].split(/[{}]/).map(escapeHtml);
  partsCache.set(cacheKey, parts);
  return parts;
}

/** A name that somebody else chose: isolated from the direction of the text around it, and never translated. */
export function foreign(name: string): Markup {
  return markup`<bdi translate="no">${name}</bdi>`;
}

/** The blocks that Unicode keeps for scripts that run from right to left. */
const rightToLeft =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * As {@link foreign}, for places that allow no element, such as the title. Isolates only names that need it: old
 * desktops show the marks as boxes.
 */
export function foreignPlain(name: string): Markup {
  return rightToLeft.test(name) ? markup`\u2068${name}\u2069` : markup`${name}`;
}

/** Schemes that no link of ours may have. A registered redirect URI may have a scheme of its own (RFC 8252). */
const executable = /^\s*(?:javascript|data|vbscript|blob|file):/i;

/** Characters that a browser drops, or a reader does not see, at the beginning of an address. */
const ignored = new RegExp(`[\\t\\n]|${misleading.source}`, "gu");

/**
 * A link to an address that was checked when it was registered; this check is the second one.
 *
 * @throws {Error} for an address that would run in the page
 */
export function href(address: string): string {
  if (executable.test(address.replaceAll(ignored, "")))
    throw new Error("an address of a page must not be executable");
  return address;
}
