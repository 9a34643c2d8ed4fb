import assert from "node:assert/strict";
import { test } from "node:test";
import { quotedName, shownText } from "./shown-text.ts";

test("a text is shown with all that it holds: what is drawn as nothing has its name", () => {
  const invisible = [
    ["\u034f", "<U+034F>"],
    ["\ufe0f", "<U+FE0F>"],
    ["\u{e0100}", "<U+E0100>"],
    ["\u{e01ef}", "<U+E01EF>"],
    ["\u115f", "<U+115F>"],
    ["\u3164", "<U+3164>"],
    ["\u200d", "<U+200D>"],
    ["\u202e", "<U+202E>"],
    ["\n", "<U+000A>"],
    ["\ud800", "<U+D800>"],
    ["\u2800", "<U+2800>"],
  ];
  for (const [character, name] of invisible)
    assert.equal(shownText(`pay${character}ee`), `pay${name}ee`);
});

test("letters of any script, accents and emoji are shown as they are", () => {
  for (const text of ["Zoë 東京 🦊", "e\u0301", "אבג", "नमस्ते"]) assert.equal(shownText(text), text);
});

test("a name cannot look as if its quotes had ended", () => {
  const quotes =
    "\u00ab\u00bb\u02ba\u02dd\u02ee\u02f6\u05f4\u1cd3\u201c\u201d\u201e\u201f\u2033\u2034\u2036\u2037\u2057\u275d\u275e\u2760\u301d\u301e\u301f\u3003\uff02\u{1f676}\u{1f677}\u{1f678}";
  for (const quote of quotes)
    assert.match(
      quotedName(`Bank${quote} (bank.example`),
      /^"Bank<U\+[0-9A-F]{4,5}> \(bank\.example"$/,
    );
  assert.equal(quotedName('Joe\u2019s "Shop"'), '"Joe\u2019s \\"Shop\\""');
});
