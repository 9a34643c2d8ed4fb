import assert from "node:assert/strict";
import { test } from "node:test";
import { failedSecretLimit, perMinute, type RateLimiter } from "../rate-limit.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { limitHeaders, takeOrRefuse } from "./limit-refusal.ts";

const limit = { perSecond: 100, burst: 400 };

test("a refusal counts by its kind, which names nobody", async () => {
  const metrics = createMetrics();
  const never: RateLimiter = { take: async () => ({ ok: false, retryAfterSeconds: 3 }) };
  const refused = takeOrRefuse({ metrics, limits: never }, "login:address:192.0.2.7", limit);
  await assert.rejects(refused, { reason: "rate_limited" });
  const { values } = await metrics.refusals.get();
  assert.deepEqual(values, [{ labels: { limit: "login-address" }, value: 1 }]);
});

test("whatever a limit lets through in a minute, its window is told as a minute", () => {
  const windows = Array.from({ length: 3000 }, (_, at) => {
    const counted = perMinute(at + 1, "127.0.0.1");
    return limitHeaders({ ok: true, remaining: 0 }, counted)["ratelimit-policy"]?.split(";w=")[1];
  });
  assert.deepEqual([...new Set(windows)], ["60"]);
});

test("the answer names the limit, what is left and when to come back", () => {
  assert.deepEqual(limitHeaders({ ok: true, remaining: 399 }, limit), {
    "ratelimit-policy": '"default";q=400;w=4',
    ratelimit: '"default";r=399',
  });
  assert.deepEqual(limitHeaders({ ok: false, retryAfterSeconds: 60 }, failedSecretLimit), {
    "ratelimit-policy": '"default";q=10;w=600',
    ratelimit: '"default";r=0;t=60',
    "retry-after": "60",
  });
});
