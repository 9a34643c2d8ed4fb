import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from "fastify";
import type { Ctx } from "../context.ts";
import { refuseBeyond } from "./limit-refusal.ts";
import { callerAddressOf, isUnlimited, limitNetworkOf } from "./client-address.ts";
import type { Http } from "./http.ts";

type NameCaller = (request: FastifyRequest) => string;

declare module "fastify" {
  interface FastifyContextConfig {
    /** The answer may take megabytes. Names the caller, who may have a few under way until their last byte is sent. */
    readonly largeAnswerOf?: NameCaller;
    /** The answer takes long to make. Names the caller, for whom only a few are made at the same time. */
    readonly costlyAnswerOf?: NameCaller;
  }
}

/** Names a caller by its network, because anybody can make any number of identities. */
export function networkOfCaller(ctx: Pick<Ctx, "config">): NameCaller {
  return (request) => `network:${limitNetworkOf(callerAddressOf(ctx, request))}`;
}

/** Answers of one caller at once, in one process. */
const atOnceMax = 4;
/** The most requests of one caller that wait; each holds its connection, and its body if the route takes one. */
const waitingMax = 1_000;
const patienceMs = 10_000;

/** The answers of one caller. */
interface Line {
  underWay: number;
  /** Functions that each let one waiting request proceed. */
  readonly waiting: Set<() => void>;
}

/**
 * Bounds the large and the costly answers that one caller has under way in this process. Each holds a database
 * connection while it is made, and a large one its size in memory while the caller reads it. More of them wait for
 * their turn, without holding up other callers.
 */
export function boundLargeAnswers(ctx: Pick<Ctx, "config" | "metrics">, http: Http): void {
  const lines = new Map<string, Line>();
  http.addHook("onRoute", (route) => {
    const { largeAnswerOf, costlyAnswerOf } = route.config ?? {};
    const nameCaller = largeAnswerOf ?? costlyAnswerOf;
    if (nameCaller === undefined) return;
    const make = route.handler;
    const handler: RouteHandlerMethod = async function handle(request, reply) {
      if (isUnlimited(ctx, callerAddressOf(ctx, request))) return make.call(this, request, reply);
      const leave = await enter(lines, { name: nameCaller(request), reply });
      if (leave === null)
        refuseBeyond(ctx, "large-answers", { burst: atOnceMax, retryAfterSeconds: 1 });
      try {
        const answer: unknown = await make.call(this, request, reply);
        return answer;
      } finally {
        // If the caller has already gone, the `close` event does not fire again.
        if (largeAnswerOf === undefined || reply.raw.destroyed) leave();
        else reply.raw.once("close", leave);
      }
    };
    route.handler = handler;
  });
}

/** @returns a function that gives the place up again; null if there was none in time */
async function enter(
  lines: Map<string, Line>,
  { name, reply }: { name: string; reply: FastifyReply },
): Promise<(() => void) | null> {
  const line = lines.get(name) ?? { underWay: 0, waiting: new Set() };
  lines.set(name, line);
  if (line.underWay < atOnceMax) line.underWay += 1;
  else if (line.waiting.size >= waitingMax || !(await waitIn(line, reply))) return null;
  return () => {
    const [next] = line.waiting;
    // The place passes to the request that has waited longest.
    if (next !== undefined) return next();
    line.underWay -= 1;
    if (line.underWay === 0) lines.delete(name);
  };
}

/** @returns whether its turn came while its caller was there */
async function waitIn(line: Line, reply: FastifyReply): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const end = (isItsTurn: boolean): void => {
    line.waiting.delete(goOn);
    clearTimeout(timer);
    reply.raw.off("close", giveUp);
    resolve(isItsTurn);
  };
  const goOn = (): void => end(true);
  const giveUp = (): void => end(false);
  const timer = setTimeout(giveUp, patienceMs);
  line.waiting.add(goOn);
  reply.raw.once("close", giveUp);
  return promise;
}
