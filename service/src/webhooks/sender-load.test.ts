import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delivery } from "./delivery-store.ts";
import { roomBeside } from "./sender-load.ts";

const of = (clientDomainId: string, count: number, isLarge = false): Delivery[] =>
  Array.from({ length: count }, () => ({ clientDomainId, isLarge }) as Delivery);

const limitBeside = (underWay: number, underWayMax: number): number =>
  roomBeside(of("a", underWay), underWayMax).limit;

test("a claim takes half of what is free, and 512 deliveries at most", () => {
  assert.equal(limitBeside(0, 4096), 512);
  assert.equal(limitBeside(0, 64), 32);
  assert.equal(limitBeside(61, 64), 2);
  assert.equal(limitBeside(64, 64), 0);
  assert.equal(limitBeside(70, 64), 0);
});

const fullBeside = (a: number, b: number): readonly string[] =>
  roomBeside([...of("a", a), ...of("b", b)], 64).fullDomains;

test("a client domain gets no more once it has as many under way as are free", () => {
  assert.deepEqual(fullBeside(31, 0), []);
  assert.deepEqual(fullBeside(32, 0), ["a"]);
  assert.deepEqual(fullBeside(31, 16), ["a"]);
});

test("a process holds 16 large bodies, of which a claim takes half of those that are free, or what makes a client domain full", () => {
  assert.equal(roomBeside([...of("a", 8, true), ...of("a", 5)], 4096).large, 4);
  assert.equal(roomBeside([...of("a", 5, true), ...of("a", 5)], 4096).large, 3);
  assert.equal(roomBeside(of("a", 15, true), 4096).large, 1);
  assert.equal(roomBeside(of("a", 20, true), 4096).large, 0);
});

const fullOfLargeBeside = (a: number, b: number): readonly string[] =>
  roomBeside([...of("a", a, true), ...of("b", b, true), ...of("c", 20)], 4096).fullOfLarge;

test("a client domain gets no more large bodies once it has as many under way as are free", () => {
  assert.deepEqual(fullOfLargeBeside(7, 0), []);
  assert.deepEqual(fullOfLargeBeside(8, 0), ["a"]);
  assert.deepEqual(fullOfLargeBeside(7, 4), ["a"]);
});

test("a client domain never has more large bodies under way than half of the places that the others leave", () => {
  for (const others of [0, 4, 8, 12]) {
    const share = (16 - others) / 2;
    let own = 0;
    for (let claims = 0; claims < 64; claims++) {
      const room = roomBeside([...of("a", own, true), ...of("b", others, true)], 4096);
      // In the worst case a claim takes only deliveries of one domain; then one attempt ends.
      if (!room.fullOfLarge.includes("a")) own += room.large;
      assert.ok(own <= share, `${own} beside ${others}`);
      if (room.fullOfLarge.includes("a")) own -= 1;
    }
  }
});
