import assert from "node:assert/strict";
import { test } from "node:test";
import { spread } from "./test-order.ts";

test("every file is begun once, however many there are of which kind", () => {
  for (let long = 0; long <= 6; long += 1)
    for (let short = 0; short <= 25; short += 1) {
      const files = [
        ...Array.from({ length: long }, (_, at) => `test/faults/${at}.test.ts`),
        ...Array.from({ length: short }, (_, at) => `service/src/${at}.test.ts`),
      ];
      assert.deepEqual(spread(files).toSorted(), files.toSorted(), `${long} and ${short}`);
    }
});

test("files that take long are begun one after the other within the first two thirds", () => {
  const long = [
    "contracts/a",
    "test/browser/b",
    "test/faults/c",
    "test/journeys/d",
    "test/races/e",
  ];
  const short = Array.from({ length: 60 }, (_, at) => `service/${at}`);
  const places = spread([...long, ...short]).flatMap((file, at) =>
    long.includes(file) ? [at] : [],
  );
  assert.deepEqual(places, [0, 9, 18, 27, 36]);
});
