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
  for (const quote of ["\u201c", "\u201d", "\u00bb", "\u2033", "\uff02"])
    assert.match(
      quotedName(`Bank${quote} (bank.example`),
      /^"Bank<U\+[0-9A-F]{4}> \(bank\.example"$/,
    );
  assert.equal(quotedName('Joe\u2019s "Shop"'), '"Joe\u2019s \\"Shop\\""');
});
