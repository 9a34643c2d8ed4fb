import assert from "node:assert/strict";
import { test } from "node:test";

import { type ApiOptions, callKyb } from "./api-call.ts";

test("a call says what it sends and takes, and is left after ten seconds, or when it was told", async (t) => {
  const limit = new AbortController();
  const { mock } = t.mock.method(AbortSignal, "timeout", () => limit.signal);
  const inits: (RequestInit | undefined)[] = [];
  const send: typeof fetch = async (_, init) => {
    inits.push(init);
    init?.signal?.throwIfAborted();
    return Response.json({});
  };
  const options: ApiOptions = { issuer: "https://id.example.com", apiKey: "key", fetch: send };
  const call = { path: "/api/v1/kyb/pricing" };
  await callKyb(options, call);
  await callKyb({ ...options, timeoutMs: 500 }, { ...call, body: {} });
  limit.abort();
  await assert.rejects(callKyb(options, call), { code: "issuer_unreachable" });
  assert.deepEqual(
    mock.calls.map((each) => each.arguments[0]),
    [10_000, 500, 10_000],
  );
  const sent = inits.map((init) => {
    const headers = new Headers(init?.headers);
    return [init?.method, init?.redirect, headers.get("accept"), headers.get("content-type")];
  });
  assert.deepEqual(sent.slice(0, 2), [
    ["GET", "error", "application/json", null],
    ["POST", "error", "application/json", "application/json"],
  ]);
});

const sayNothing: typeof fetch = async () => new Response("OK", { status: 201 });

test("an answer that is no JSON comes with its status", async () => {
  const options = { issuer: "https://id.example.com", apiKey: "key", fetch: sayNothing };
  await assert.rejects(callKyb(options, { path: "/" }), { code: "response_invalid", status: 201 });
});
