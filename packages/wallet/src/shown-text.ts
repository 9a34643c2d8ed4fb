/**
 * Characters that no screen shows as what they are: controls, formats (bidirectional controls, zero-width characters,
 * tags), private use, lone surrogates, line and paragraph separators, and what is drawn as nothing (joiners, fillers,
 * variation selectors, those of emoji among them).
 */
export const unshowable =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * A text that other people wrote, as one line that shows everything it holds: a character that could
 * reorder, hide or fake something becomes its name, such as `<U+202E>`.
 */
export function shownText(text: string): string {
  return text.replaceAll(
    unshowable,
    (character) =>
      `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`,
  );
}
