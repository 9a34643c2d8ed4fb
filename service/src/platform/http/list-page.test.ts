import assert from "node:assert/strict";
import { test } from "node:test";
import { parseUlid, parseUuid } from "../ids.ts";
import { pageOf, readPage } from "./list-page.ts";
import { Problem } from "./problems.ts";

const rows = (count: number) => Array.from({ length: count }, (_, index) => ({ id: `${index}` }));
const show = ({ id }: { id: string }): string => id;

test("a page names the next one only where another row was read", () => {
  assert.deepEqual(pageOf(rows(0), 2, show), { items: [] });
  assert.deepEqual(pageOf(rows(2), 2, show), { items: ["0", "1"] });
  assert.deepEqual(pageOf(rows(3), 2, show), { items: ["0", "1"], nextCursor: "1" });
});

test("the first page of a list has 20 items where nobody says how many", () => {
  assert.deepEqual(readPage({}, parseUlid), { limit: 20, before: null });
  assert.deepEqual(readPage({ limit: "100" }, parseUlid), { limit: 100, before: null });
});

test("a cursor is an id of the kind that the list has, and anything else is refused", () => {
  const ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  const uuid = "018f3c5e-7b2a-7c3d-9e4f-0123456789ab";
  assert.equal(readPage({ cursor: ulid }, parseUlid).before, ulid);
  assert.equal(readPage({ cursor: uuid }, parseUuid).before, uuid);
  for (const [cursor, parse] of [
    [uuid, parseUlid],
    [ulid, parseUuid],
    ["", parseUlid],
    [`${ulid}0`, parseUlid],
  ] as const)
    assert.throws(
      () => readPage({ cursor }, parse),
      (error) => error instanceof Problem && error.reason === "invalid_request",
    );
});
