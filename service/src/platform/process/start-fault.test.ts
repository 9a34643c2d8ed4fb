import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { describeStartFault } from "./start-fault.ts";

test("a host that was tried at several addresses is named by the first", () => {
  const refused = ["::1", "127.0.0.1"].map((address) =>
    Object.assign(new Error(`connect ECONNREFUSED ${address}:5432`), { code: "ECONNREFUSED" }),
  );
  assert.equal(describeStartFault(new AggregateError(refused)), "connect ECONNREFUSED ::1:5432");
});

for (const fault of [
  Object.assign(new Error("getaddrinfo EAI_AGAIN db"), { code: "EAI_AGAIN" }),
  new Error("timeout exceeded when trying to connect"),
])
  test(`of a database that cannot be reached it is said: ${fault.message}`, () => {
    assert.equal(describeStartFault(fault), fault.message);
  });

test("of a port that somebody else has it is said which one, and what to do", async () => {
  await using first = createServer().listen(0, "127.0.0.1");
  await once(first, "listening");
  const { port } = first.address() as AddressInfo;
  const second = createServer().listen(port, "127.0.0.1");
  const [fault] = await once(second, "error");
  const said = describeStartFault(fault) ?? "";
  assert.ok(said.startsWith(`port ${port} is already in use at 127.0.0.1: `), said);
  assert.match(said, /\bPORT\b.*METRICS_PORT/);
});

test("a fault of ours is not foreseen", () => {
  assert.equal(describeStartFault(new TypeError("x is not a function")), null);
  const ours = Object.assign(new Error("unknown column"), { code: "42703" });
  assert.equal(describeStartFault(ours), null);
});
