import assert from "node:assert/strict";
import { test } from "node:test";

import { html } from "./html.ts";

test("a value ends neither a text nor an attribute, in whatever quotes it stands", () => {
  const value = `"'><script>alert(1)</script>&amp;`;
  const { markup } = html`<a title="${value}">${value}</a>`;
  assert.equal(markup.split(`"`).length, 3);
  assert.doesNotMatch(markup, /'|<script|&amp;/);
  const inner = html`<b>${"<"}</b>`;
  assert.equal(html`<p>${inner}${[inner, inner]}</p>`.markup, `<p>${"<b>&#60;</b>".repeat(3)}</p>`);
});
