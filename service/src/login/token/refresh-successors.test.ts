import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { openTestLogin } from "../test-login.ts";
import { makeRefreshToken } from "./refresh-token.ts";

test("a sealed successor opens with the token that it replaced, and with no other genuine one", async () => {
  await using own = await openTestLogin();
  const { ctx } = own;
  const { successors } = ctx;
  const id = randomUUID();
  const make = (generation: number) =>
    makeRefreshToken(ctx.keys.hmac("refresh-token"), { id, generation }, ctx.random);
  const first = make(0);
  const second = make(1);
  const sealed = successors.seal(first, second);
  assert.equal(successors.open(first, sealed), second.text);
  for (const other of [make(0), second, make(2)])
    assert.equal(successors.open(other, sealed), null);
  assert.equal(sealed.includes(second.text), false);
});
