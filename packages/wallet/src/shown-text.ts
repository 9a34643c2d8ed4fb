/**
 * Characters that screens do not show as what they are: controls, formats (bidirectional controls, zero-width
 * characters, tags), private use, lone surrogates, line and paragraph separators, and characters that are drawn as
 * nothing (joiners, fillers, variation selectors, including those of emoji; the empty braille pattern).
 */
export const unshowable =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** What looks like the quote that ends a name. */
const quotes =
  /[\u00ab\u00bb\u02ba\u02dd\u02ee\u02f6\u05f4\u1cd3\u201c-\u201f\u2033\u2034\u2036\u2037\u2057\u275d\u275e\u2760\u3003\u301d-\u301f\uff02\u{1f676}-\u{1f678}]/gu;

/**
 * A text that other people wrote, as one line that shows everything it holds: a character that could
 * reorder, hide or fake something becomes its name, such as `<U+202E>`.
 */
export function shownText(text: string): string {
  return text.replaceAll(unshowable, nameOfCharacter);
}

/** A name that other people chose, in quotes: nothing in it can look like the closing quote. */
export function quotedName(name: string): string {
  return JSON.stringify(name).replaceAll(quotes, nameOfCharacter);
}

const nameOfCharacter = (character: string): string =>
  `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`;
