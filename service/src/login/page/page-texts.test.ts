import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { locales } from "../../platform/http/pick-locale.ts";
import { texts } from "./page-texts.ts";

const placeholders = (text: string): string[] => (text.match(/\{\w+\}/g) ?? []).toSorted();

test("every text exists in every language, with the same placeholders, and is used", () => {
  const sources = readdirSync(import.meta.dirname)
    .filter(
      (name) => name.endsWith(".ts") && !name.endsWith(".test.ts") && name !== "page-texts.ts",
    )
    .map((name) => readFileSync(`${import.meta.dirname}/${name}`, "utf8"))
    .join("\n");
  for (const [key, english] of Object.entries(texts.en)) {
    assert.ok(sources.includes(`"${key}"`), `${key} is not used`);
    for (const locale of locales) {
      const text = Object.entries(texts[locale]).find(([name]) => name === key)?.[1] ?? "";
      assert.ok(text.trim() !== "" && text === text.trim(), `${locale} ${key}`);
      assert.deepEqual(placeholders(text), placeholders(english), `${locale} ${key}`);
    }
  }
  for (const locale of locales) assert.deepEqual(Object.keys(texts[locale]), Object.keys(texts.en));
});

/** By the rules of each language: an apostrophe is curved, and no line begins with a sign that belongs to the one before. */
test("every text keeps the typography of its language", () => {
  for (const locale of locales) {
    for (const [key, text] of Object.entries(texts[locale])) {
      assert.doesNotMatch(text, /['"]|\.\.\.| [:;?!…]|\} s\b/, `${locale} ${key}`);
      if (locale === "fr") assert.doesNotMatch(text, /[^\u00a0]:|[^\u202f][;?!]/, `fr ${key}`);
      // Germany and Switzerland spell these words differently.
      if (locale === "de")
        assert.doesNotMatch(text, /ß|schliess|gross|gröss|ausser|heiss/i, `de ${key}`);
    }
  }
});

test("no text about the members of a business reads as if it were about the person who waits", () => {
  assert.doesNotMatch(texts.de.gatheringHint, /^Sie /);
  assert.match(texts.de.gatheringContinue, /, drücken Sie auf Weiter\.$/);
  assert.doesNotMatch(texts.es.gatheringHint, /^Encuentran|\bsus\b/);
});

test("no text takes the person for a man", () => {
  for (const locale of locales)
    for (const [key, text] of Object.entries(texts[locale]))
      assert.doesNotMatch(
        text,
        /\b(?:dé)?connecté(?!e)|\bconnesso|\bconectado/,
        `${locale} ${key}`,
      );
});

test("each language has one word for the wallet", () => {
  const words = { en: "wallet", de: "Wallet", fr: "portefeuille", it: "wallet", es: "monedero" };
  for (const [key, english] of Object.entries(texts.en)) {
    if (!english.includes("wallet")) continue;
    for (const locale of locales) {
      const text = Object.entries(texts[locale]).find(([name]) => name === key)?.[1] ?? "";
      assert.ok(text.includes(words[locale]), `${locale} ${key}: ${text}`);
    }
  }
});
