import assert from "node:assert/strict";
import { test } from "node:test";
import { ConcernsRefusal, type Concern, isConcern, sayConcern } from "./concern.ts";

const concerns = {
  "other-network": /another network/,
  "unknown-requester": /no broker you trust/,
  "contract-call": /calls a contract/,
  "paid-before": /pays again/,
  "token-approval": /somebody else spend your tokens/,
  permit: /somebody else spend your tokens/,
  "transfer-with-authorization": /moves your tokens/,
  "receive-with-authorization": /somebody else collect your tokens/,
  order: /your tokens or collectibles for sale/,
  "safe-transaction": /transaction of a shared account/,
  "user-operation": /an account of yours act/,
  delegation: /somebody else act for you/,
  "blind-hash": /a bare hash/,
} satisfies Record<Concern, RegExp>;

test("every concern can be accepted by its name, and says what is at stake", () => {
  for (const [name, stake] of Object.entries(concerns)) {
    assert.ok(isConcern(name), name);
    assert.match(sayConcern(name), stake);
    assert.match(new ConcernsRefusal([name, "blind-hash"], "Shop").message, stake);
  }
  for (const none of ["", "toString", "Permit", "permit "]) assert.ok(!isConcern(none), none);
});
