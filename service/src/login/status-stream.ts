import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import type { BrowserCall } from "./authorize.ts";
import { type LoginState, getBrowserAttempt, stateOf } from "./browser.ts";
import type { LoginContext } from "./login-context.ts";
import type { LoginFeed } from "./login-feed.ts";

/** Proxies close silent connections after 30 s or more. */
const keepAliveMs = 15_000;
const longPollMs = 25_000;

/** The open status streams of this process. A waiting page costs one socket and its share of one timer. */
export interface StatusStreams {
  open(
    loginId: string,
    reply: FastifyReply,
    follow: { browser: BrowserCall; state: LoginState; expiresAt: number },
  ): void;
  /** Answers as soon as the state is another than `after`, at the latest after 25 s. */
  wait(
    loginId: string,
    { after, browser }: { after: string; browser: BrowserCall },
  ): Promise<LoginState>;
  /** Ends every stream; browsers reconnect to another process. */
  close(): void;
}

interface Stream {
  readonly response: ServerResponse;
  readonly expiresAt: number;
}

export function createStatusStreams(ctx: LoginContext, feed: LoginFeed): StatusStreams {
  const streams = new Set<Stream>();
  const pending = new Set<() => void>();
  const timer = setInterval(() => {
    const now = ctx.clock.now();
    for (const { response, expiresAt } of streams) {
      // A page whose login ran out asks once more by itself and is told so.
      if (expiresAt <= now) response.end();
      else response.write(":\n\n");
    }
  }, keepAliveMs);
  timer.unref();
  const read = async (loginId: string, browser: BrowserCall): Promise<LoginState> => {
    const { attempt, client } = await getBrowserAttempt(ctx, loginId, browser);
    return stateOf(ctx, attempt, client);
  };
  return {
    open(loginId, reply, { browser, state, expiresAt }) {
      void reply.hijack();
      const response = reply.raw;
      response.writeHead(200, {
        "content-type": "text/event-stream",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
        "x-request-id": reply.request.id,
      });
      response.write(`retry: 1000\ndata: ${JSON.stringify(state)}\n\n`);
      const stream: Stream = { response, expiresAt };
      streams.add(stream);
      const stop = feed.follow(loginId, ({ isApproved }) => {
        const next = isApproved
          ? Promise.resolve<LoginState>({ kind: "approved" })
          : read(loginId, browser);
        next.then(
          (told) => response.write(`data: ${JSON.stringify(told)}\n\n`),
          () => response.end(),
        );
      });
      response.on("close", () => {
        stop();
        streams.delete(stream);
      });
    },
    async wait(loginId, { after, browser }) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const wake = (): void => resolve(undefined);
      // Listening starts before the first look, so a change in between is not missed.
      const stop = feed.follow(loginId, wake);
      const timeout = setTimeout(wake, longPollMs);
      pending.add(wake);
      try {
        const state = await read(loginId, browser);
        if (state.kind !== after) return state;
        await promise;
        return await read(loginId, browser);
      } finally {
        stop();
        clearTimeout(timeout);
        pending.delete(wake);
      }
    },
    close() {
      clearInterval(timer);
      for (const { response } of streams) response.end();
      for (const wake of pending) wake();
    },
  };
}
