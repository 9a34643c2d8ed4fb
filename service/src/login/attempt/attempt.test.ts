import assert from "node:assert/strict";
import { test } from "node:test";
import { errorLocation } from "./attempt.ts";

test("an answer joins the query that a redirect URI has, to the letter", () => {
  const answers = [
    ["https://shop.example/cb", "?"],
    ["https://shop.example/cb?a=%7e", "&"],
    ["https://shop.example/cb?", ""],
    ["https://shop.example/cb?a=1&", ""],
    ["com.example.app:/cb", "?"],
  ] as const;
  const error = { code: "access_denied", description: "no" };
  for (const [redirectUri, joint] of answers)
    assert.equal(
      errorLocation({ redirectUri, state: "s" }, "https://id.example", error),
      `${redirectUri}${joint}error=access_denied&error_description=no&state=s&iss=https%3A%2F%2Fid.example`,
    );
});
