import assert from "node:assert/strict";
import { test } from "node:test";
import { pickLocale } from "./pick-locale.ts";

test("the language is the first that the request asks for and the service has", () => {
  const cases: [string | undefined, string | undefined, string][] = [
    [undefined, undefined, "en"],
    ["fr-CH de", "it", "fr"],
    ["rm de-CH", "fr", "de"],
    ["rm", "it-CH,it;q=0.9,en;q=0.8", "it"],
    ["", "en;q=0.3, es;q=0.9, *;q=0.1", "es"],
    [undefined, "de;q=0, fr;q=0.5", "fr"],
    [undefined, "zz, ;;;q=,q=1", "en"],
    ["DE", "fr", "de"],
    ["x".repeat(10_000), `${",".repeat(10_000)}de`, "en"],
  ];
  for (const [uiLocales, acceptLanguage, locale] of cases)
    assert.equal(pickLocale(uiLocales, acceptLanguage), locale, `${uiLocales} ${acceptLanguage}`);
});
