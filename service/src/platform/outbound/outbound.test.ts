import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer as createHttp } from "node:http";
import { createServer as createTcp } from "node:net";
import type { Socket } from "node:net";
import { test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { holdTimers } from "../../../../test/held-timers.ts";
import { createOutbound } from "./outbound.ts";
import { type Resolver, resolveTxt } from "./resolver.ts";
import {
  answering,
  ending,
  failed,
  fakeInternet,
  get,
  listen,
  open,
  openRaw,
  openReceiver,
  publicAddress,
  withoutHead,
} from "./test-receivers.ts";

test("production reaches a public receiver by https, under its own name", async (t) => {
  const receiver = await openReceiver(t, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      response.writeHead(201, { "X-Seen": ["a", "b"], "set-cookie": "s=1" });
      response.end(Buffer.concat(chunks));
    });
  });
  const connect = fakeInternet();
  const outbound = open(t, "production", { resolve: answering([publicAddress]), connect });
  const body = Uint8Array.from([0, 255, 10, 13]);
  const result = await outbound.send({
    ...get(`${receiver.url}?a=1`),
    method: "POST",
    headers: { "Content-Type": "application/json", "svc-signature": "t=1,s=00" },
    body,
  });
  assert.ok(result.kind === "answered");
  assert.equal(result.status, 201);
  assert.deepEqual(Uint8Array.from(result.body), body);
  assert.equal(result.headers["x-seen"], "a, b");
  assert.equal(result.headers["set-cookie"], undefined);

  const [seen] = receiver.requests;
  assert.ok(seen);
  assert.equal(seen.url, "/in?a=1");
  const { host, connection, ...headers } = seen.headers;
  assert.equal(host, `hooks.example.com:${receiver.port}`);
  assert.equal(connection, "close");
  assert.deepEqual(headers, {
    "content-type": "application/json",
    "svc-signature": "t=1,s=00",
    "accept-encoding": "identity",
    "content-length": "4",
  });
  assert.equal(Reflect.get(seen.socket, "servername"), "hooks.example.com");
  assert.deepEqual(connect.reached, [publicAddress]);

  const again = await outbound.send(get(receiver.url));
  assert.equal(again.kind, "answered");
  assert.equal(receiver.requests[1]?.headers.cookie, undefined);
  assert.equal(receiver.sockets.length, 2, "each request has a connection of its own");
});

test("a receiver whose certificate names another host gets no request", async (t) => {
  const receiver = await openReceiver(t, (_request, response) => response.end());
  const outbound = open(t, "production", {
    resolve: answering([publicAddress]),
    connect: fakeInternet(),
  });
  const url = `https://elsewhere.example.com:${receiver.port}/`;
  assert.deepEqual(await outbound.send(get(url)), failed("unreachable"));
  assert.equal(receiver.sockets.length, 1);
  assert.equal(receiver.requests.length, 0);
});

test("no form of a loopback address reaches this machine in production", async (t) => {
  const canary = await listen(t, createTcp());
  const hosts = `localhost 127.0.0.1 127.1 127.0.1 127.0.0.1. 2130706433 0x7f000001 0x7f.0.0.1 0x7f.1 017700000001
    0177.0.0.1 0 0.0.0.0 %31%32%37.0.0.1 １２７.０.０.１ ①②⑦.⓪.⓪.① 127。0。0。1 [::1] [::] [::ffff:127.0.0.1]
    [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b:1::7f00:1] [2002:7f00:1::1] user@127.0.0.1
    a.localhost localhost. localhost.localdomain`;
  const outbound = open(t, "production", { resolve: answering(["127.0.0.1"]) });
  for (const host of hosts.split(/\s+/)) {
    for (const scheme of ["https", "http"]) {
      const result = await outbound.send(get(`${scheme}://${host}:${canary.port}/`));
      assert.deepEqual(result, failed("blocked"), host);
    }
  }
  assert.equal(canary.sockets.length, 0);
});

test("one address that is not public blocks the whole name", async (t) => {
  const canary = await listen(t, createTcp());
  const answers = `127.0.0.1 127.0.0.2 0.0.0.0 10.0.0.1 169.254.169.254 192.168.1.1 100.64.0.1 ::1 :: ::ffff:127.0.0.1
    ::ffff:7f00:1 ::ffff:93.184.215.14 64:ff9b::7f00:1 64:ff9b:1::7f00:1 2002:7f00:1::1 fe80::1 fe80::1%lo fd00::1
    localhost 127.1 hooks.example.com`;
  const url = `https://hooks.example.com:${canary.port}/`;
  for (const address of answers.split(/\s+/)) {
    for (const answer of [[address], [publicAddress, address], [address, publicAddress]]) {
      const outbound = open(t, "production", { resolve: answering(answer) });
      assert.deepEqual(await outbound.send(get(url)), failed("blocked"), answer.join());
    }
    const inDev = open(t, "dev", { resolve: answering([address]) });
    assert.deepEqual(await inDev.send(get(url)), failed("blocked"), address);
  }
  assert.equal(canary.sockets.length, 0);
});

test("a name that moves to a private address between two requests is blocked", async (t) => {
  const receiver = await openReceiver(t, (_request, response) => response.end());
  const resolve = answering([publicAddress], ["127.0.0.1"]);
  const connect = fakeInternet();
  const outbound = open(t, "production", { resolve, connect });
  assert.equal((await outbound.send(get(receiver.url))).kind, "answered");
  assert.deepEqual(await outbound.send(get(receiver.url)), failed("blocked"));
  assert.deepEqual(connect.reached, [publicAddress]);
  assert.equal(receiver.sockets.length, 1);
});

test("each request asks once and connects to what was answered then", async (t) => {
  const receiver = await openReceiver(t, (_request, response) => response.end());
  const resolve = answering([publicAddress, "2606:4700::1"], ["8.8.8.8"]);
  const connect = fakeInternet();
  const outbound = open(t, "production", { resolve, connect });
  await outbound.send(get(receiver.url));
  await outbound.send(get(receiver.url));
  assert.deepEqual(resolve.asked, ["hooks.example.com", "hooks.example.com"]);
  assert.deepEqual(connect.reached, [publicAddress, "2606:4700::1", "8.8.8.8"]);
  assert.equal(receiver.sockets.length, 2);
});

test("a redirect is an answer and leads nowhere", async (t) => {
  const canary = await listen(t, createTcp());
  const location = `http://127.0.0.1:${canary.port}/`;
  for (const status of [301, 302, 303, 307, 308]) {
    const receiver = await openReceiver(t, (_request, response) =>
      response.writeHead(status, { location, refresh: `0;url=${location}` }).end(),
    );
    const resolve = answering([publicAddress]);
    const outbound = open(t, "production", { resolve, connect: fakeInternet() });
    const result = await outbound.send(get(receiver.url));
    assert.ok(result.kind === "answered");
    assert.equal(result.status, status);
    assert.equal(result.headers["location"], location);
  }
  assert.equal(canary.sockets.length, 0);
});

test("dev reaches this machine by its two names, and not its own port", async (t) => {
  const server = createHttp((request, response) => response.end(request.headers.host));
  const { port } = await listen(t, server);
  const resolve = answering(["10.0.0.1"]);
  const outbound = createOutbound({ profile: "dev", ownHosts: ["localhost:4000"], resolve });
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`]) {
    const result = await outbound.send(get(`http://${host}/in`));
    assert.ok(result.kind === "answered");
    assert.equal(Buffer.from(result.body).toString(), host);
  }
  assert.deepEqual(resolve.asked, [], "no resolver decides what localhost is");
  assert.deepEqual(await outbound.send(get("http://localhost:4000/")), failed("blocked"));
  assert.deepEqual(await outbound.send(get(`http://127.1:${port}/`)), failed("blocked"));
});

/** Passes a moment after the receiver was asked, however long the machine stalls before. */
const limitMs = 100;

test("a receiver that hangs at any step ends at the time limit, and so does its connection", async (t) => {
  const header = "HTTP/1.1 200 OK\r\n";
  const steps: Record<string, (socket: Socket) => void> = {
    "says nothing": () => undefined,
    "stops in the headers": (socket) => socket.write(header),
    "stops before the body": (socket) => socket.write(`${header}content-length: 5\r\n\r\n`),
    "stops in the body": (socket) => socket.write(`${header}content-length: 5\r\n\r\nabc`),
    "sends one interim answer after the other": (socket) => {
      const timer = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n"), 5);
      socket.on("close", () => clearInterval(timer));
    },
    "drips for ever": (socket) => {
      socket.write(`${header}transfer-encoding: chunked\r\n\r\n`);
      const timer = setInterval(() => socket.write("1\r\nx\r\n"), 5);
      socket.on("close", () => clearInterval(timer));
    },
  };
  const outbound = open(t, "dev");
  for (const [name, answer] of Object.entries(steps)) {
    using limit = holdTimers(limitMs);
    const raw = await openRaw(t, (socket) => {
      answer(socket);
      setTimeout(() => limit.pass(), limitMs + 10);
    });
    const startMs = performance.now();
    const result = await ending(name, outbound.send(get(raw.url, { timeoutMs: limitMs })));
    const tookMs = performance.now() - startMs;
    assert.deepEqual(withoutHead(result), failed("timeout"), name);
    assert.ok(tookMs >= 95 && tookMs < 60_000, `${name}: ${tookMs}`);
    await closed(raw);
  }
});

const firstOf = async (sockets: readonly Socket[]): Promise<Socket> => {
  for (;;) {
    const [socket] = sockets;
    if (socket !== undefined) return socket;
    await new Promise(setImmediate);
  }
};

const closed = async ({ sockets }: { sockets: readonly Socket[] }): Promise<void> => {
  const socket = await firstOf(sockets);
  if (socket.closed) return;
  await ending("its connection", new Promise((resolve) => socket.once("close", resolve)));
};

test("a TLS handshake that hangs ends at the time limit, and so does its connection", async (t) => {
  using limit = holdTimers(limitMs);
  const silent = await listen(
    t,
    createTcp((socket) => {
      socket.resume();
      setTimeout(() => limit.pass(), limitMs + 10);
    }),
  );
  const resolve = answering([publicAddress]);
  const outbound = open(t, "production", { resolve, connect: fakeInternet() });
  const url = `https://hooks.example.com:${silent.port}/`;
  const sent = outbound.send(get(url, { timeoutMs: limitMs }));
  assert.deepEqual(await ending("the handshake", sent), failed("timeout"));
  await closed(silent);
});

const never = () => new Promise<string[]>(() => undefined);

test("a name server that never answers ends at the time limit", async (t) => {
  const outbound = open(t, "production", { resolve: { addresses: never, txt: never } });
  const sent = outbound.send(get("https://hooks.example.com/", { timeoutMs: 50 }));
  const result = await ending("the look for its address", sent);
  assert.deepEqual(withoutHead(result), failed("timeout"));
});

test("the system's name servers are asked within the time limit", async (t) => {
  // `.example` resolves nowhere (RFC 6761), with a network or without.
  const result = await open(t, "production").send(get("https://a.example/", { timeoutMs: 200 }));
  assert.equal(result.kind, "failed");
  assert.deepEqual(await resolveTxt("a.example", { timeoutMs: 200 }), []);
});

test("a body up to the limit is kept, one byte more is too large", async (t) => {
  const size = 1_024;
  for (const framing of ["content-length", "chunked"]) {
    for (const bytes of [0, size, size + 1, 50 * size]) {
      const server = createHttp((_request, response) => {
        if (framing === "content-length") response.setHeader("content-length", bytes);
        response.write("");
        response.end(Buffer.alloc(bytes));
      });
      const { port } = await listen(t, server);
      const outbound = open(t, "dev");
      const result = await outbound.send(
        get(`http://127.0.0.1:${port}/`, { responseBytesMax: size }),
      );
      if (bytes > size) {
        assert.deepEqual(withoutHead(result), failed("too_large"));
        assert.equal(result.kind === "failed" && result.head?.status, 200, "as far as it came");
      } else assert.equal(result.kind === "answered" && result.body.length, bytes);
    }
  }
});

const flood = (start: string, piece: string) => (socket: Socket) => {
  const pump = (): void => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", pump);
  socket.write(start);
  pump();
};

test("a flood is cut off by its size, long before the time limit", async (t) => {
  const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
  const chunk = `400\r\n${"x".repeat(1024)}\r\n`;
  const headerLine = `x-more: ${"y".repeat(500)}\r\n`;
  const interim = `HTTP/1.1 103 Early Hints\r\n${headerLine}\r\n`;
  const outbound = open(t, "dev");
  for (const answer of [
    flood(chunked, chunk),
    flood("HTTP/1.1 200 OK\r\n", headerLine),
    flood("HTTP/1.1 200 OK\r\nx-endless: ", "z".repeat(1024)),
    flood(`${chunked}0\r\n`, headerLine),
    flood("HTTP/1.1 200 ", "z".repeat(1024)),
    flood(`${chunked}1;`, "z".repeat(1024)),
    flood("", interim),
    flood("", "HTTP/1.1 100 Continue\r\n\r\n"),
  ]) {
    for (const keepAlive of [false, true]) {
      const raw = await openRaw(t, answer);
      const sent = outbound.send(get(raw.url, { timeoutMs: 60_000, keepAlive }));
      const result = await ending("the flood", sent);
      assert.deepEqual(withoutHead(result), failed("too_large"));
      await closed(raw);
    }
  }
});

test("the headers of an answer take 16 KiB, beside its body, and its connection ends with it", async (t) => {
  const outbound = open(t, "dev");
  for (const [bytes, kind] of [
    [15 * 1024, "answered"],
    [17 * 1024, "failed"],
  ] as const) {
    const kept = "connection: keep-alive\r\nkeep-alive: timeout=600";
    const header = `x-more: ${"y".repeat(bytes)}\r\n${kept}\r\ncontent-length: 2`;
    const raw = await openRaw(t, (socket) =>
      socket.write(`HTTP/1.1 200 OK\r\n${header}\r\n\r\nok`),
    );
    const result = await outbound.send(get(raw.url, { timeoutMs: 60_000, responseBytesMax: 2 }));
    assert.equal(result.kind, kind);
    if (kind === "failed") assert.deepEqual(result, failed("too_large"));
    await closed(raw);
  }
});

const inBytes = (answer: string) => (socket: Socket) => {
  socket.setNoDelay(true);
  const writeFrom = (at: number): void => {
    if (at < answer.length) socket.write(answer.slice(at, at + 1), () => writeFrom(at + 1));
  };
  writeFrom(0);
};

test("interim answers are skipped, in whatever pieces they arrive", async (t) => {
  const again = "HTTP/1.1 100 Continue\r\n\r\n";
  const hints = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
  const final = "HTTP/1.1 202 Accepted\r\ncontent-length: 12\r\n\r\nHTTP/1.1 100";
  const outbound = open(t, "dev");
  for (const interim of ["", again, again.replace("1.1", "1.0"), hints, again + hints + again]) {
    for (const answer of [
      (socket: Socket) => void socket.write(interim + final),
      (socket: Socket) => void socket.write(interim, () => socket.write(final)),
      inBytes(interim + final),
    ]) {
      for (const keepAlive of [false, true]) {
        const raw = await openRaw(t, answer);
        const result = await outbound.send({ ...get(raw.url, { keepAlive }), method: "POST" });
        assert.ok(result.kind === "answered", interim);
        assert.equal(result.status, 202);
        assert.equal(Buffer.from(result.body).toString(), "HTTP/1.1 100");
      }
    }
  }
});

test("a compressed body is handed over as it came", async (t) => {
  const bomb = gzipSync(Buffer.alloc(200_000));
  const server = createHttp((_request, response) =>
    response.writeHead(200, { "content-encoding": "gzip" }).end(bomb),
  );
  const { port } = await listen(t, server);
  const result = await open(t, "dev").send(get(`http://127.0.0.1:${port}/`));
  assert.ok(result.kind === "answered");
  assert.deepEqual(Buffer.from(result.body), bomb);
});

test("what cannot be reached, breaks off or is no HTTP is unreachable, and its connection ends", async (t) => {
  const outbound = open(t, "dev");
  for (const answer of [
    (socket: Socket) => socket.destroy(),
    (socket: Socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"),
    (socket: Socket) => socket.end("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc"),
    (socket: Socket) =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    (socket: Socket) => socket.write("SSH-2.0-OpenSSH_9\r\n"),
    (socket: Socket) =>
      socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno length\r\n"),
  ]) {
    const raw = await openRaw(t, answer);
    assert.deepEqual(withoutHead(await outbound.send(get(raw.url))), failed("unreachable"));
    await closed(raw);
  }
  const gone = createTcp();
  const { port } = await listen(t, gone);
  gone.close();
  assert.deepEqual(await outbound.send(get(`http://127.0.0.1:${port}/`)), failed("unreachable"));

  const unknown = { addresses: () => Promise.reject(new Error("ENOTFOUND")), txt: async () => [] };
  for (const resolve of [unknown, answering([])]) {
    const production = open(t, "production", { resolve });
    const result = await production.send(get("https://hooks.example.com/"));
    assert.deepEqual(withoutHead(result), failed("unreachable"));
  }
});

test("of a name with many addresses the first eight are tried", async (t) => {
  const addresses = Array.from({ length: 9 }, (_, at) => `93.184.215.${at + 1}`);
  const connect = fakeInternet();
  const resolve = answering(addresses);
  const receiver = await openReceiver(t, (_request, response) => void response.end("ok"));
  const outbound = open(t, "production", { resolve, connect });
  for (const keepAlive of [false, true])
    assert.equal((await outbound.send(get(receiver.url, { keepAlive }))).kind, "answered");
  assert.deepEqual(new Set(connect.reached), new Set(addresses.slice(0, 8)));
});

test("a request that would frame, name or authenticate itself otherwise is thrown back", async (t) => {
  const outbound = open(t, "dev");
  const url = "http://localhost:4999/";
  const reserved = "Host Cookie Content-Length Transfer-Encoding Accept-Encoding Connection Expect";
  for (const name of reserved.split(" ")) {
    await assert.rejects(outbound.send(get(url, { headers: { [name]: "x" } })), /reserved/);
  }
  await assert.rejects(
    outbound.send(get(url, { headers: { "x-a": "1\r\nhost: b" } })),
    /malformed/,
  );
  await assert.rejects(outbound.send(get(url, { headers: { "x-a: 1\r\nb": "" } })), /malformed/);
  await assert.rejects(outbound.send(get(url, { body: "x" })), /no body/);
  await assert.rejects(outbound.send(get(url, { timeoutMs: 60_001 })), /timeoutMs/);
  await assert.rejects(outbound.send(get(url, { timeoutMs: Number.NaN })), /timeoutMs/);
  await assert.rejects(outbound.send(get(url, { responseBytesMax: 2 ** 30 })), /responseBytesMax/);
  await assert.rejects(outbound.send(get(url, { responseBytesMax: -1 })), /responseBytesMax/);
});

test("closing cuts off what is under way without blaming the receiver", async (t) => {
  const raw = await openRaw(t, () => undefined);
  const outbound = open(t, "dev");
  const result = outbound.send(get(raw.url, { timeoutMs: 60_000 }));
  const rejected = assert.rejects(result, /was closed/);
  await firstOf(raw.sockets);
  const askedMs = performance.now();
  await ending("what was under way", outbound.close());
  assert.ok(performance.now() - askedMs < 30_000, "long before the time limit");
  await rejected;
  await closed(raw);
  await assert.rejects(outbound.send(get(raw.url)), /is closed/);
});

test("proxies and a disabled TLS check in the environment have no effect", async (t) => {
  const proxy = await listen(t, createTcp());
  const server = createHttp((_request, response) => response.end("direct"));
  const { port } = await listen(t, server);
  const receiver = await openReceiver(t, (_request, response) => response.end());
  const script = `
    import { createOutbound } from ${JSON.stringify(import.meta.resolve("./outbound.ts"))};
    const resolve = { addresses: async () => ["${publicAddress}"] };
    const connect = { ca: "", addressOf: () => "127.0.0.1" };
    const outbound = createOutbound({ profile: "dev", ownHosts: [], resolve, connect });
    for (const url of ["http://localhost:${port}/", "${receiver.url}"]) {
      const result = await outbound.send({ method: "GET", url, timeoutMs: 60_000, responseBytesMax: 99 });
      console.log(result.kind, result.reason ?? Buffer.from(result.body).toString());
    }`;
  const address = `http://127.0.0.1:${proxy.port}`;
  const names = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
  const env = {
    ...Object.fromEntries(names.map((name) => [name, address])),
    NODE_USE_ENV_PROXY: "1",
    NODE_TLS_REJECT_UNAUTHORIZED: "0",
    NODE_NO_WARNINGS: "1",
  };
  const flags = ["--conditions=source", "--input-type=module", "--eval", script];
  const { stdout } = await promisify(execFile)(process.execPath, flags, { env });
  assert.equal(stdout, "answered direct\nfailed unreachable\n");
  assert.equal(proxy.sockets.length, 0);
  assert.equal(receiver.requests.length, 0);
});

test("TXT records come joined, bounded in number and time, and only for public names", async () => {
  const asked: string[] = [];
  const resolver = (answer: () => Promise<string[]>): Resolver => ({
    addresses: () => Promise.reject(new Error("not asked here")),
    txt: (name) => {
      asked.push(name);
      return answer();
    },
  });
  const options = { timeoutMs: 50, resolve: resolver(async () => ["svc=1", "other"]) };
  assert.deepEqual(await resolveTxt("_svc.example.com", options), ["svc=1", "other"]);
  assert.deepEqual(await resolveTxt("example.com", options), ["svc=1", "other"]);
  assert.deepEqual(asked, ["_svc.example.com", "example.com"]);
  for (const name of "localhost _svc.localhost db.internal _svc a,b.com 8.8.8.8".split(" ")) {
    assert.deepEqual(await resolveTxt(name, options), [], name);
  }
  assert.equal(asked.length, 2);

  const many = resolver(async () => Array.from({ length: 5_000 }, () => "x"));
  assert.equal((await resolveTxt("example.com", { ...options, resolve: many })).length, 100);
  const silent = resolver(never);
  const unanswered = resolveTxt("example.com", { ...options, resolve: silent });
  assert.deepEqual(await ending("the look for its TXT records", unanswered), []);
  const broken = resolver(() => Promise.reject(new Error("ESERVFAIL")));
  assert.deepEqual(await resolveTxt("example.com", { ...options, resolve: broken }), []);
});
