import assert from "node:assert/strict";
import { test } from "node:test";
import { randomId, ulid, uuidv7 } from "./ids.ts";
import { createRandom } from "./cryptography/random.ts";

const random = createRandom();
const at = (ms: number): { now: () => number; nowMs: () => number } => ({
  now: () => Math.floor(ms / 1000),
  nowMs: () => ms,
});
const ones = { ...random, bytes: (length: number) => Buffer.alloc(length, 0xff) };

test("a UUIDv7 has the time, the version and the variant of RFC 9562", () => {
  // The example of RFC 9562, appendix A.6.
  const bytes = Buffer.from("0cc318c4dc0c0c07398f", "hex");
  const id = uuidv7(at(0x017f22e279b0), { ...random, bytes: () => bytes });
  assert.equal(id, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
  assert.equal(uuidv7(at(0), ones), "00000000-0000-7fff-bfff-ffffffffffff");
});

test("a ULID has the time first and sorts by it", () => {
  assert.equal(ulid(at(1_469_918_176_385), ones).slice(0, 10), "01ARYZ6S41");
  assert.equal(ulid(at(0), ones), "0000000000ZZZZZZZZZZZZZZZZ");
  assert.ok(ulid(at(1000), ones) < ulid(at(1001), random));
  assert.match(ulid(at(Date.now()), random), /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
});

test("a fraction of a millisecond does no harm", () => {
  assert.equal(uuidv7(at(1000.7), ones), uuidv7(at(1000), ones));
});

test("ids of one millisecond differ", () => {
  const clock = at(Date.now());
  assert.equal(new Set(Array.from({ length: 1000 }, () => uuidv7(clock, random))).size, 1000);
  assert.equal(new Set(Array.from({ length: 1000 }, () => ulid(clock, random))).size, 1000);
});

test("a random id never begins with a hyphen, which a command would take for an option", () => {
  const drawn = [0xf8, 0xfb, 0x00].map((byte) => Buffer.alloc(16, byte));
  const bytes = (): Buffer => drawn.shift() ?? assert.fail("one id too many");
  assert.equal(randomId({ ...random, bytes }, 16), "A".repeat(22));
  assert.deepEqual(drawn, []);
});

test("a random id has at least 128 bits", () => {
  assert.match(randomId(random, 16), /^[\w-]{22}$/);
  assert.throws(() => randomId(random, 15));
});

test("a random number stays below its bound, and each below it comes", () => {
  const drawn = new Set<number>();
  for (let round = 0; round < 1000; round += 1) {
    drawn.add(random.below(3));
    const fraction = random.fraction();
    assert.ok(fraction >= 0 && fraction < 1);
  }
  assert.deepEqual(drawn, new Set([0, 1, 2]));
});
