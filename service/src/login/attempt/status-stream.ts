import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { invalidRequest } from "../../platform/http/problems.ts";
import type { BrowserCall } from "./new-attempt.ts";
import { getBrowserAttempt } from "./browser-attempt.ts";
import type { LoginContext } from "../login-context.ts";
import type { LoginFeed } from "./login-feed.ts";
import { type LoginState, stateOf } from "./login-state.ts";

/** Proxies close silent connections after 30 s or more; the page gives a stream up after 20 s of silence. */
const keepAliveMs = 15_000;
const longPollMs = 25_000;

/** The open status streams of this process. A waiting page costs one socket and its share of one timer. */
export interface StatusStreams {
  /** Begins with the present state. @throws {Problem} login_not_found for another browser */
  open(loginId: string, reply: FastifyReply, browser: BrowserCall): Promise<void>;
  /** Answers as soon as the state is another than the one that `after` names, at the latest after 25 s. */
  wait(
    loginId: string,
    { after, browser }: { after: string; browser: BrowserCall },
  ): Promise<LoginState>;
  /** Ends every stream; browsers reconnect to another process. */
  close(): void;
}

/** A person has fewer tabs of one login open than this; one more ends the oldest. */
const followersMax = 8;

interface Stream {
  readonly response: ServerResponse;
  readonly expiresAt: number;
  /** The state that was sent last, as text. */
  sent: string;
  end(): void;
}

export function createStatusStreams(ctx: LoginContext, feed: LoginFeed): StatusStreams {
  const streams = new Set<Stream>();
  const followers = createFollowers();
  const keepAlive = (): void => {
    const nowMs = ctx.clock.nowMs();
    // An event, because scripts cannot see comments in the stream. The page picks the code to show by this time.
    const alive = `event: alive\ndata: ${nowMs}\n\n`;
    for (const stream of streams) {
      // A page whose login has expired asks once more by itself, and is told.
      if (stream.expiresAt * 1000 <= nowMs) stream.end();
      else send(stream.response, alive);
    }
  };
  const timer = setInterval(keepAlive, keepAliveMs);
  timer.unref();
  const stopFollowing = ctx.clock.onMoved?.(keepAlive);
  const read = async (loginId: string, browser: BrowserCall): Promise<LoginState> => {
    const { attempt } = await getBrowserAttempt(ctx, loginId, browser);
    return stateOf(ctx, attempt);
  };
  return {
    async open(loginId, reply, browser) {
      const gap = watchGap(feed, loginId);
      const { attempt } = await getBrowserAttempt(ctx, loginId, browser).finally(gap.stop);
      const { expiresAt } = attempt;
      const response = beginStream(reply);
      const sent = JSON.stringify(stateOf(ctx, attempt));
      send(response, `retry: 1000\ndata: ${sent}\n\n`);
      const sendWhenRead = (next: Promise<LoginState>): void => {
        next.then((state) => sendIfNew(stream, state), end);
      };
      const stop = feed.follow(loginId, ({ isApproved }) =>
        sendWhenRead(isApproved ? approved : read(loginId, browser)),
      );
      // Forgotten at once: a caller that reads nothing could delay the `close` event for long.
      const end = (): void => {
        stop();
        leave();
        streams.delete(stream);
        response.end();
      };
      const leave = followers.admit(loginId, end);
      const stream: Stream = { response, expiresAt, sent, end };
      streams.add(stream);
      response.on("close", end);
      if (gap.isChanged()) sendWhenRead(read(loginId, browser));
    },
    wait: async (loginId, { after, browser }) =>
      readOther(after, {
        read: async () => read(loginId, browser),
        follow: (wake) => feed.follow(loginId, wake),
        admit: (end) => followers.admit(loginId, end),
      }),
    close() {
      clearInterval(timer);
      stopFollowing?.();
      followers.endAll();
    },
  };
}

/**
 * The name that a page gives in `after`. A second wallet's attempt is news to a page that knows of the claim, so it has
 * its own.
 */
const nameOf = (state: LoginState): string =>
  state.kind === "claimed" && state.contested ? "contested" : state.kind;

/**
 * Reads until the state is another one than `after`: a late notification may announce a state that was seen already.
 */
async function readOther(
  after: string,
  given: {
    read: () => Promise<LoginState>;
    /** Both return what undoes them. */
    follow: (wake: () => void) => () => void;
    admit: (end: () => void) => () => void;
  },
): Promise<LoginState> {
  let [news, isOver] = [Promise.withResolvers<void>(), false];
  const end = (): void => {
    isOver = true;
    news.resolve();
  };
  // Listening starts before the first look, so a change in between is not missed.
  const stop = given.follow(() => news.resolve());
  const timeout = setTimeout(end, longPollMs);
  let leave: (() => void) | undefined;
  try {
    for (;;) {
      const state = await given.read();
      if (nameOf(state) !== after || isOver) return state;
      // Only now: a caller who may not read the state must not end another one's stream.
      leave ??= given.admit(end);
      await news.promise;
      news = Promise.withResolvers();
    }
  } finally {
    stop();
    leave?.();
    clearTimeout(timeout);
  }
}

const approved = Promise.resolve<LoginState>({ kind: "approved" });

/** Listens while the state is read for the first time, so that a change in between is not missed. */
function watchGap(feed: LoginFeed, loginId: string): { stop: () => void; isChanged(): boolean } {
  let changed = false;
  const stop = feed.follow(loginId, () => {
    changed = true;
  });
  return { stop, isChanged: () => changed };
}

/** The followers of each login in this process, each with the function that ends it. */
function createFollowers() {
  const byLogin = new Map<string, Set<() => void>>();
  let isClosed = false;
  return {
    /** Adds a follower; after {@link endAll}, one is ended at once. Returns what removes it. */
    admit(loginId: string, end: () => void): () => void {
      if (isClosed) queueMicrotask(end);
      const known = byLogin.get(loginId) ?? new Set();
      byLogin.set(loginId, known.add(end));
      const [oldest] = known;
      if (known.size > followersMax && oldest !== undefined) {
        known.delete(oldest);
        oldest();
      }
      return () => {
        known.delete(end);
        if (known.size === 0 && byLogin.get(loginId) === known) byLogin.delete(loginId);
      };
    },
    endAll(): void {
      isClosed = true;
      for (const known of byLogin.values()) for (const end of known) end();
    },
  };
}

function beginStream(reply: FastifyReply): ServerResponse {
  const response = reply.raw;
  refuseWithoutSocket(response);
  void reply.hijack();
  // Without a listener, the error of one stream would end the process.
  response.on("error", () => response.destroy());
  return response.writeHead(200, {
    "content-type": "text/event-stream",
    // A proxy that compresses may hold an event back until the next one.
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
    "x-content-type-options": "nosniff",
    "x-request-id": reply.request.id,
  });
}

/** A late notification or the poll may lead to a state that was sent already. */
function sendIfNew(stream: Stream, state: LoginState): void {
  const text = JSON.stringify(state);
  if (text === stream.sent) return;
  stream.sent = text;
  send(stream.response, `data: ${text}\n\n`);
}

/** A stream may have ended while its next state was read. */
function send(response: ServerResponse, text: string): void {
  if (!response.writableEnded && !response.destroyed) response.write(text);
}

/**
 * Refuses a response without a socket. If a caller sends requests before their answers arrive (no browser does), a
 * response has no socket until the earlier ones are sent: events for it would pile up, and nothing would tell that the
 * connection is gone. The same holds if the caller has left already.
 */
function refuseWithoutSocket(response: ServerResponse): void {
  if (response.socket === null || response.destroyed)
    throw invalidRequest("a status stream needs a connection of its own");
}
