// Receivers for tests of the guarded client: the internet as one machine.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, RequestListener } from "node:http";
import { createServer as createHttps } from "node:https";
import { createServer as createTcp } from "node:net";
import type { Server, Socket } from "node:net";
import type { TestContext } from "node:test";
import type { Profile } from "../config/config.ts";
import { createOutbound, type OutboundResult } from "./outbound.ts";
import type { FakeInternet, OutboundRequest } from "./outbound.ts";
import type { Resolver } from "./resolver.ts";

// The receiver of these tests, valid until 2120 for hooks.example.com and other.example.com. It
// guards nothing; the certificate is trusted by FakeInternet below and nowhere else.
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjG8EXdW9YFIRm3YH
ZOG6PaaO5i39QgJiEmqFBqao9MehRANCAATv3Wtv1Bsc1/d5pAQQz5F5rnZfId9H
sjr/THKpZtq+v1CnLc7ZzoO1b+G9elX8PeYqotNXm1i8BmtRNUSAhXwH
-----END PRIVATE KEY-----
`;
const cert = `-----BEGIN CERTIFICATE-----
MIIBuDCCAV+gAwIBAgIUbMZgq+CAr53y2aoY9TNnf+4uJEkwCgYIKoZIzj0EAwIw
KTEnMCUGA1UEAwwecmVjZWl2ZXIgb2YgdGhlIG91dGJvdW5kIHRlc3RzMCAXDTIw
MDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjApMScwJQYDVQQDDB5yZWNlaXZl
ciBvZiB0aGUgb3V0Ym91bmQgdGVzdHMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AATv3Wtv1Bsc1/d5pAQQz5F5rnZfId9Hsjr/THKpZtq+v1CnLc7ZzoO1b+G9elX8
PeYqotNXm1i8BmtRNUSAhXwHo2MwYTAvBgNVHREEKDAmghFob29rcy5leGFtcGxl
LmNvbYIRb3RoZXIuZXhhbXBsZS5jb20wDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4E
FgQUuRo1eRTR31GJjfl/QQbanoSg4gMwCgYIKoZIzj0EAwIDRwAwRAIgD1ek69Zc
TmVOk8lJ84kyYNXYrNgno63CD3jb0BXzEV8CIHzZcqgGGKu2fRikrjFJdUENk1KM
hLR7yTm/HQxWBde8
-----END CERTIFICATE-----
`;

export const publicAddress = "93.184.215.14";
export const limits = { timeoutMs: 60_000, responseBytesMax: 1_024 };
export const get = (url: string, over: Partial<OutboundRequest> = {}): OutboundRequest => ({
  method: "GET",
  url,
  ...limits,
  ...over,
});

/** Listens on loopback until the test ends, and remembers every connection. */
export async function listen(t: TestContext, server: Server, host = "127.0.0.1") {
  const sockets: Socket[] = [];
  server.on("connection", (socket: Socket) => {
    socket.on("error", () => undefined);
    sockets.push(socket);
  });
  server.listen(0, host);
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return { port: address.port, sockets };
}

/** A resolver that gives its answers in turn, the last one for ever, and counts the questions. */
export function answering(...answers: string[][]): Resolver & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    async addresses(name) {
      asked.push(name);
      return answers[Math.min(asked.length, answers.length) - 1] ?? [];
    },
    txt: () => Promise.reject(new Error("not asked here")),
  };
}

/**
 * The internet as one machine: every checked address leads to loopback; `reached` records the addresses that were
 * dialled.
 */
export function fakeInternet(): FakeInternet & { reached: string[] } {
  const reached: string[] = [];
  return {
    ca: cert,
    reached,
    addressOf(address) {
      reached.push(address);
      return "127.0.0.1";
    },
  };
}

export const open = (
  t: TestContext,
  profile: Profile,
  rest: { resolve?: Resolver; connect?: FakeInternet } = {},
) => {
  const outbound = createOutbound({ profile, ownHosts: ["login.example.com"], ...rest });
  t.after(() => outbound.close());
  return outbound;
};

export async function openReceiver(t: TestContext, listener: RequestListener) {
  const requests: IncomingMessage[] = [];
  const server = createHttps({ key, cert }, (request, response) => {
    requests.push(request);
    listener(request, response);
  });
  // By default it closes connections that are idle for 5 s, and announces that to clients.
  server.keepAliveTimeout = 0;
  const { port, sockets } = await listen(t, server);
  return { url: `https://hooks.example.com:${port}/in`, port, sockets, requests };
}

/** A receiver in dev that answers these bytes to whatever comes, and keeps the connection open. */
export async function openRaw(t: TestContext, answer: (socket: Socket) => void) {
  const server = createTcp((socket) => socket.once("data", () => answer(socket)));
  const { port, sockets } = await listen(t, server);
  return { url: `http://127.0.0.1:${port}/`, sockets };
}

/** Far longer than anything here takes on a machine that stalls, and short enough to wait for. */
const endsWithinMs = 60_000;

/** Settles as the work does; if the work hangs, fails by naming it. */
export async function ending<T>(what: string, work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`it never ended: ${what}`)), endsWithinMs);
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

export const failed = (reason: string) => ({ kind: "failed", reason });

/** A failure without the beginning of its answer. */
export function withoutHead(result: OutboundResult): OutboundResult {
  if (result.kind === "answered") return result;
  const { head: _, ...rest } = result;
  return rest;
}
