/** Languages of what persons read: the pages (decisions section 2, rule 8) and the messages. */
export const locales = ["en", "de", "fr", "it", "es"] as const;
export type Locale = (typeof locales)[number];

/**
 * Chooses the language: the first of `ui_locales` that is available (OpenID Connect Core 3.1.2.1), else the best of
 * `Accept-Language` (RFC 9110 section 12.5.4), else English. Anything malformed counts as absent.
 */
export function pickLocale(
  uiLocales: string | undefined,
  acceptLanguage: string | undefined,
): Locale {
  const asked = (uiLocales ?? "").slice(0, languageListMax).split(" ");
  return firstKnown(asked) ?? firstKnown(rankedLanguages(acceptLanguage ?? "")) ?? "en";
}

/** How many characters are read; a browser sends fewer than 100. */
const languageListMax = 500;

function rankedLanguages(header: string): string[] {
  return header
    .slice(0, languageListMax)
    .split(",")
    .map((entry) => {
      const [tag = "", ...parameters] = entry.split(";").map((part) => part.trim());
      const quality = parameters.find((parameter) => parameter.startsWith("q="));
      return { tag, quality: quality === undefined ? 1 : Number(quality.slice(2)) };
    })
    .filter(({ quality }) => quality > 0 && quality <= 1)
    .toSorted((a, b) => b.quality - a.quality)
    .map(({ tag }) => tag);
}

function firstKnown(tags: readonly string[]): Locale | undefined {
  for (const tag of tags) {
    const [language = ""] = tag.toLowerCase().split("-");
    const known = locales.find((locale) => locale === language);
    if (known !== undefined) return known;
  }
  return undefined;
}
