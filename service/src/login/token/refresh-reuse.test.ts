import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeRefreshUse } from "./refresh-reuse.ts";

const [newest, previous, older] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [
  Buffer,
  Buffer,
  Buffer,
];
const family = {
  refreshSha256: newest,
  previousSha256: previous,
  rotatedAtMs: 1000,
  dpopJkt: null,
};
const call = { dpopJkt: null, nowMs: 10_999, graceMs: 10_000 };
const rotated = { previousSha256: null, rotatedAtMs: null };

const cases = [
  ["the newest token", newest, family, call, "newest"],
  [
    "the newest token of a family that was never rotated",
    newest,
    { ...family, ...rotated },
    call,
    "newest",
  ],
  ["the token before the newest, within the grace,", previous, family, call, "repeated"],
  [
    "the token before the newest, after the grace,",
    previous,
    family,
    { ...call, nowMs: 11_000 },
    "reused",
  ],
  [
    "the token before the newest, without a grace,",
    previous,
    family,
    { ...call, nowMs: 1000, graceMs: 0 },
    "reused",
  ],
  [
    "the token before the newest, with another key,",
    previous,
    family,
    { ...call, dpopJkt: "other" },
    "reused",
  ],
  ["a token from before both", older, family, call, "reused"],
  [
    "a token of a family that has none any more",
    older,
    { ...family, ...rotated, refreshSha256: null },
    call,
    "reused",
  ],
] as const;

for (const [what, sha256, of, given, expected] of cases) {
  test(`a refresh with ${what} is judged as ${expected}`, () => {
    assert.equal(judgeRefreshUse(of, { sha256 }, given), expected);
  });
}

test("a token is the newest or the last one by every byte of its hash", () => {
  for (let at = 0; at < 32; at += 1)
    for (const hash of [newest, previous]) {
      const sha256 = Buffer.from(hash);
      sha256[at] = 9;
      assert.equal(judgeRefreshUse(family, { sha256 }, call), "reused", `byte ${at}`);
    }
});
