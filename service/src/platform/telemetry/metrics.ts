import { once } from "node:events";
import { type AddressInfo, isIPv6 } from "node:net";
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

// An import of `node:http` reads all of its exports, and so loads Node's own `fetch`, which nothing here uses.
const { createServer } = process.getBuiltinModule("node:http");

/** The metrics of this process. No label ever holds an id, an address or anything else that a caller chooses. */
export interface Metrics {
  readonly registry: Registry;
  /** Seconds; `route` is the pattern, never the requested path. */
  readonly httpRequestDuration: Histogram<"route" | "method" | "status">;
  /** Requests to hosts that callers chose, by outcome. */
  readonly outboundRequests: Counter<"outcome">;
  /** Push hints to devices, by the answers of their push services. */
  readonly pushHints: Counter<"outcome">;
  /** Delivery attempts of webhooks, by outcome. */
  readonly webhookAttempts: Counter<"outcome">;
  /** Events that wait for a try. */
  readonly webhookBacklog: Gauge;
  readonly webhookOldestDueSeconds: Gauge;
  /** Logins that ended, by outcome. */
  readonly logins: Counter<"outcome">;
  /** Requests refused by a limit; `limit` is the kind of limit, never whom it affected. */
  readonly refusals: Counter<"limit">;
  /** Reports the calls that the database object counts itself. */
  countDatabaseCalls(db: { readonly callsTotal: number }): void;
}

/** In seconds, from the time of a cached answer to that of a long poll. */
const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * How often the lag of the event loop is measured, and the least that it can be: each figure is the time between two
 * measurements. At the usual 10 ms it takes 0.3 % of a processor, and wakes an idle process a hundred times a second.
 */
const lagPrecisionMs = 100;

let ofProcess: Registry | undefined;

/** Node's metrics of this process, registered once, because their timer and observer can never be removed. */
function processRegistry(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess, eventLoopMonitoringPrecision: lagPrecisionMs });
  }
  return ofProcess;
}

/** All outcomes of each counter that counts by outcome. */
const outcomesOf = {
  outboundRequests: ["answered", "blocked", "unreachable", "timeout", "too_large"],
  pushHints: ["taken", "gone", "refused", "unanswered"],
  webhookAttempts: [
    "delivered",
    "refused",
    "redirect",
    "blocked",
    "unreachable",
    "timeout",
    "too_large",
    "error",
  ],
  logins: [
    "finished",
    "expired",
    "wrong_number",
    "declined",
    "not_started",
    "other_browser",
    "restarted",
  ],
};

export function createMetrics(): Metrics {
  const registry = Registry.merge([processRegistry()]);
  const registers = [registry];
  return {
    registry,
    httpRequestDuration: new Histogram({
      name: "http_request_duration_seconds",
      help: "Time to answer a request, by route pattern.",
      labelNames: ["route", "method", "status"] as const,
      buckets: durationBuckets,
      registers,
    }),
    outboundRequests: countOutcomes({
      name: "outbound_requests_total",
      help: "Requests to hosts that callers chose, by outcome.",
      outcomes: outcomesOf.outboundRequests,
      registers,
    }),
    pushHints: countOutcomes({
      name: "push_hints_total",
      help: "Push hints to devices, by what their push services said.",
      outcomes: outcomesOf.pushHints,
      registers,
    }),
    webhookAttempts: countOutcomes({
      name: "webhook_attempts_total",
      help: "Delivery attempts of webhooks, by outcome.",
      outcomes: outcomesOf.webhookAttempts,
      registers,
    }),
    webhookBacklog: new Gauge({
      name: "webhook_backlog",
      help: "Events that wait for a try.",
      registers,
    }),
    webhookOldestDueSeconds: new Gauge({
      name: "webhook_oldest_due_seconds",
      help: "How long the oldest event that is due has been waiting.",
      registers,
    }),
    logins: countOutcomes({
      name: "logins_total",
      help: "Logins that ended, by outcome.",
      outcomes: outcomesOf.logins,
      registers,
    }),
    refusals: new Counter({
      name: "rate_limited_total",
      help: "Requests refused by a limit, by kind of limit.",
      labelNames: ["limit"] as const,
      registers,
    }),
    countDatabaseCalls(db) {
      const counter = new Counter({
        name: "database_calls_total",
        help: "Statements sent to the database.",
        registers,
        collect() {
          counter.reset();
          counter.inc(db.callsTotal);
        },
      });
    },
  };
}

/**
 * A counter that has each of its outcomes from zero on: Prometheus sees no increase in a series that begins with its
 * first count, and no standstill of one that never began.
 */
function countOutcomes({
  outcomes,
  ...about
}: {
  readonly name: string;
  readonly help: string;
  readonly outcomes: readonly string[];
  readonly registers: Registry[];
}): Counter<"outcome"> {
  const counter = new Counter({ ...about, labelNames: ["outcome"] as const });
  for (const outcome of outcomes) counter.inc({ outcome }, 0);
  return counter;
}

/** Prometheus gives up after ten seconds, and then has nothing of the process at all. */
const readWithinMs = 3_000;

/** Reads from the database for a gauge; null if it is down or hangs, when the other metrics are needed most. */
export async function readInTime<T>(read: () => Promise<T>): Promise<T | null> {
  const late = Promise.withResolvers<null>();
  const timer = setTimeout(() => late.resolve(null), readWithinMs);
  const found = await Promise.race([read().catch(() => null), late.promise]);
  clearTimeout(timer);
  return found;
}

/** The Prometheus endpoint `/metrics`, on a port of its own so that it is never public by mistake. */
export interface MetricsServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  close(): Promise<void>;
}

/** @param options.port 0 picks a free one */
export async function serveMetrics(
  metrics: Metrics,
  options: { host: string; port: number },
): Promise<MetricsServer> {
  const server = createServer({ requestTimeout: 10_000 }, (request, response) => {
    const path = request.url?.split("?", 1)[0];
    if (request.method !== "GET" || path !== "/metrics") {
      response.writeHead(404).end();
      return;
    }
    metrics.registry.metrics().then(
      (text) => response.writeHead(200, { "content-type": metrics.registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  server.listen(options.port, options.host);
  await once(server, "listening");
  const close = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  const { port } = server.address() as AddressInfo;
  const host = isIPv6(options.host) ? `[${options.host}]` : options.host;
  return { port, url: `http://${host}:${port}/metrics`, close, [Symbol.asyncDispose]: close };
}
