import assert from "node:assert/strict";
import { test } from "node:test";

import { parseCookies } from "./cookies.ts";

test("of two cookies of one name the first counts, and malformed ones are left out", () => {
  const jar = parseCookies("shop_session=own; other; shop_session=planted; a=b=c;");
  assert.deepEqual(
    [...jar],
    [
      ["shop_session", "own"],
      ["a", "b=c"],
    ],
  );
  assert.equal(parseCookies().size, 0);
});
