import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { createMetrics, serveMetrics } from "./metrics.ts";

async function read(port: number, path: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`);
  return { status: answer.status, text: await answer.text() };
}

test("metrics are served as Prometheus text on a port of their own", async () => {
  const metrics = createMetrics();
  let callsTotal = 3;
  metrics.countDatabaseCalls({
    get callsTotal() {
      return callsTotal;
    },
  });
  metrics.httpRequestDuration.observe({ route: "/w/l/:id", method: "GET", status: "200" }, 0.004);
  metrics.logins.inc({ outcome: "finished" });
  metrics.outboundRequests.inc({ outcome: "answered" });
  await using server = await serveMetrics(metrics, { host: "127.0.0.1", port: 0 });

  const first = await read(server.port, "/metrics");
  assert.equal(first.status, 200);
  const expected = [
    'http_request_duration_seconds_bucket{le="0.005",route="/w/l/:id",method="GET",status="200"} 1',
    'logins_total{outcome="finished"} 1',
    'outbound_requests_total{outcome="answered"} 1',
    "database_calls_total 3",
    "process_resident_memory_bytes ",
  ];
  for (const line of expected) assert.ok(first.text.includes(line), line);

  callsTotal = 5;
  assert.match((await read(server.port, "/metrics")).text, /^database_calls_total 5$/m);
});

test("outcomes that have not occurred yet are counted from zero", async () => {
  const text = await createMetrics().registry.metrics();
  assert.match(text, /^outbound_requests_total\{outcome="answered"\} 0$/m);
  assert.match(text, /^push_hints_total\{outcome="taken"\} 0$/m);
});

test("nothing but the metrics is served at their port", async () => {
  await using server = await serveMetrics(createMetrics(), { host: "127.0.0.1", port: 0 });
  assert.equal((await read(server.port, "/")).status, 404);
  const posted = await fetch(`http://127.0.0.1:${server.port}/metrics`, { method: "POST" });
  assert.equal(posted.status, 404);
});

const isV6There = Object.values(networkInterfaces())
  .flat()
  .some((each) => each?.address === "::1");

for (const host of isV6There ? ["localhost", "::1"] : ["localhost"])
  test(`the metrics on ${host} are reported with an address that answers`, async () => {
    await using server = await serveMetrics(createMetrics(), { host, port: 0 });
    assert.equal((await fetch(server.url)).status, 200);
  });

test("metrics name the version of their text format", async () => {
  await using server = await serveMetrics(createMetrics(), { host: "127.0.0.1", port: 0 });
  const { headers } = await fetch(server.url);
  assert.match(headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
});

test("two servers of one process share Node's metrics, and no counter", async () => {
  const [one, two] = [createMetrics(), createMetrics()];
  one.logins.inc({ outcome: "finished" });
  const text = await two.registry.metrics();
  assert.match(text, /^logins_total\{outcome="finished"\} 0$/m);
  const lag = "nodejs_eventloop_lag_seconds";
  assert.equal(two.registry.getSingleMetric(lag), one.registry.getSingleMetric(lag));
});
