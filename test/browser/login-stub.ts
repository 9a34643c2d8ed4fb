import { EventEmitter, once } from "node:events";
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { renderLoginPage } from "../../service/src/login/page/login-page.ts";
import type { LoginView } from "../../service/src/login/page/login-view.ts";
import { pageAssets } from "../../service/src/login/page/page-assets.ts";
import { pageHeaders } from "../../service/src/login/page/page-headers.ts";

/** What the page is told about its login, as the status channel words it. */
interface Told {
  readonly kind: LoginView["state"]["kind"];
  readonly digits?: string | null;
  readonly identity?: string;
  readonly contested?: boolean;
  readonly failure?: string;
  readonly canRestart?: boolean;
  readonly location?: string;
}

/** The far end of the login page, without a service behind it: tests say what happens to the login. */
export interface LoginStub extends AsyncDisposable {
  readonly url: string;
  /** Method and path of every call, in order. */
  readonly calls: readonly string[];
  /** The view that the next request is shown. */
  view: LoginView;
  /** How the status stream reaches the page: `held` by a proxy from the start, after the headers or the first message. */
  stream: "open" | "refused" | "held" | "held after headers" | "held after a word";
  /** How streams and polls are refused: by a reason of the service, or in a proxy's own words; null while they are not. */
  refusal: { status: number; reason?: string } | null;
  /** How far its clock, which stands still otherwise, is ahead of what the view says. */
  aheadMs: number;
  /** Answers of the next requests to finish, `broken` for one that breaks off; the last one stays. */
  finishes: readonly (number | string)[];
  tell(told: Told): void;
  /** What the service sends on an idle stream. */
  keepAlive(): void;
  /** Resolves when a page holds a stream or a poll. */
  busy(): Promise<void>;
  /** Resolves when no page holds a stream or a poll. */
  idle(): Promise<void>;
}

const macsTotal = 31;

/** A login that waits and ends in 120 s, of a client on `example.com`. */
function waitingView(base: string, changes: Partial<LoginView> = {}): LoginView {
  const nowMs = Date.now();
  const loginId = randomBytes(16).toString("base64url");
  return {
    loginId,
    clientName: "Alpine Books",
    clientDomain: "books.example.com",
    scopes: ["openid", "offline"],
    locale: "en",
    nowMs,
    expiresAt: Math.floor(nowMs / 1000) + 120,
    base,
    isStatic: false,
    isCodeOver: false,
    firstStep: Math.floor(nowMs / 4000),
    macs: Array.from({ length: macsTotal }, () => randomBytes(16).toString("base64url")),
    sameDeviceLink: `svc:login?sess=${loginId}&conn=${encodeURIComponent(`${base}/w/b/${loginId}`)}&type=app-link`,
    state: { kind: "waiting" },
    backUrl: `${base}/callback?error=access_denied`,
    isBusiness: false,
    isSameDeviceOnly: false,
    canRestart: true,
    ...changes,
  };
}

export async function openLoginStub(changes: Partial<LoginView> = {}): Promise<LoginStub> {
  const calls: string[] = [];
  const waiting = new Set<(told: Told) => void>();
  const streams = new Set<ServerResponse>();
  const moves = new EventEmitter();
  const enter = (send: (told: Told) => void): void => {
    waiting.add(send);
    moves.emit("entered");
  };
  const leave = (send: (told: Told) => void): void => {
    waiting.delete(send);
    moves.emit("left");
  };
  let told: Told = { kind: "waiting" };
  const server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url}`);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://localhost:${(server.address() as AddressInfo).port}`;
  const stub: LoginStub = {
    url,
    calls,
    view: waitingView(url, changes),
    stream: "open",
    refusal: null,
    aheadMs: 0,
    finishes: [`${url}/callback?code=1`],
    tell(next) {
      told = next;
      for (const tellOne of waiting) tellOne(next);
    },
    keepAlive() {
      for (const response of streams) response.write("event: alive\ndata\n\n");
    },
    async busy() {
      if (waiting.size === 0) await once(moves, "entered");
    },
    async idle() {
      while (waiting.size > 0) await once(moves, "left");
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? "", url);
    const asset = pageAssets.get(pathname);
    if (asset !== undefined)
      response
        .writeHead(200, { "content-type": asset.contentType, "content-encoding": "gzip" })
        .end(asset.gzip);
    else if (pathname.endsWith("/events")) stream(response);
    else if (pathname.endsWith("/status")) status(response, searchParams.get("after"));
    else if (pathname.endsWith("/finish")) finish(response);
    else if (pathname === "/callback")
      response.writeHead(200, { "content-type": "text/html" }).end("<title>shop</title>");
    else if (pathname === "/oauth2/auth" || pathname.startsWith("/oauth2/login/"))
      response.writeHead(200, pageHeaders({ leadsTo: url })).end(renderLoginPage(stub.view));
    else response.writeHead(404).end();
  }

  function stream(response: ServerResponse): void {
    if (stub.refusal !== null) return refuse(response, stub.refusal.status, stub.refusal.reason);
    if (stub.stream === "refused") return void response.writeHead(503).end();
    if (stub.stream === "held") return;
    const send = (next: Told): void => void response.write(`data: ${JSON.stringify(next)}\n\n`);
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    if (stub.stream === "held after headers") return;
    send(told);
    if (stub.stream === "held after a word") return;
    streams.add(response);
    enter(send);
    response.on("close", () => leave(send));
  }

  function status(response: ServerResponse, after: string | null): void {
    if (stub.refusal !== null) return refuse(response, stub.refusal.status, stub.refusal.reason);
    const send = (next: Told): void => {
      waiting.delete(send);
      const nowMs = String(stub.view.nowMs + stub.aheadMs);
      response
        .writeHead(200, { "content-type": "application/json", "svc-now-ms": nowMs })
        .end(JSON.stringify(next));
    };
    const name = told.contested === true ? "contested" : told.kind;
    if (name !== after) send(told);
    else enter(send);
    response.on("close", () => leave(send));
  }

  function finish(response: ServerResponse): void {
    const [next = 500, ...rest] = stub.finishes;
    if (rest.length > 0) stub.finishes = rest;
    if (next === 409) refuse(response, next, "login_over");
    else if (typeof next === "number") refuse(response, next);
    else if (next === "broken")
      response
        .writeHead(200, { "content-type": "application/json", "content-length": 100 })
        .write("{", () => response.destroy());
    else
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ location: next }));
  }

  return stub;
}

/** Refuses as the service does, or, without a reason, as a proxy does. */
function refuse(response: ServerResponse, code: number, reason?: string): void {
  if (reason === undefined)
    return void response.writeHead(code, { "content-type": "text/html" }).end("<p>proxy</p>");
  const error = { code, reason, message: "refused", requestId: "req_stub" };
  response
    .writeHead(code, { "content-type": "application/json" })
    .end(JSON.stringify({ success: false, error }));
}
