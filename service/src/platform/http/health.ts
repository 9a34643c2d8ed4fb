import { Type } from "./schema.ts";
import { type Clock, isClockRight, skewLimitMs } from "../clock.ts";
import type { Ctx } from "../context.ts";
import { isWritable } from "./health-store.ts";
import type { Http } from "./http.ts";
import { Problem } from "./problems.ts";
import { refusals } from "./refusals.ts";

const ReadyBody = Type.Object(
  {
    status: Type.Literal("ok", {
      description: "With every 200; a process that is not ready answers 503.",
    }),
    now: Type.Integer({ description: "The service's time, Unix seconds." }),
  },
  { description: "The process can answer." },
);

/** Load balancers give up after a few seconds, a statement only after half a minute. */
const databaseWithinMs = 3_000;

/** Why the process is not ready, in words; null if it is. */
async function faultOf({ db, clock }: Ctx): Promise<string | null> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("the database hangs")), databaseWithinMs);
  try {
    const looks = Promise.all([isClockRight(db, clock), isWritable(db)]);
    const [isRight, canWrite] = await Promise.race([looks, late]);
    if (!canWrite) return "the database takes no changes";
    return isRight ? null : faultOfClock(clock);
  } catch {
    return "the database cannot be reached";
  } finally {
    clearTimeout(timer);
  }
}

/** A machine's clock that was set right again shows nothing wrong, yet the process is still ahead of it. */
function faultOfClock(clock: Clock): string {
  const aheadMs = clock.leadMs?.() ?? 0;
  if (aheadMs <= skewLimitMs)
    return "this machine's clock differs from the database's by more than 2 s";
  const seconds = Math.round(aheadMs / 1000);
  return `this machine's clock was set back, and the process is ${seconds} s ahead of it: restart the process`;
}

/** `alive`: the process runs. `ready`: it can answer now; carries the service's time, which in `dev` can be moved. */
export function addHealthRoutes(ctx: Ctx, http: Http): void {
  const tags = ["operations"];
  const alive = {
    response: {
      200: Type.Object(
        { status: Type.Literal("ok", { description: "With every answer of a running process." }) },
        { description: "The process runs." },
      ),
    },
    tags,
    operationId: "checkAlive",
    summary: "Check that the process runs",
  };
  let isDraining = false;
  http.addHook("preClose", (done) => {
    isDraining = true;
    done();
  });
  // Many monitors and balancers ask by HEAD, each every few seconds.
  const probed = { exposeHeadRoute: true, logLevel: "debug" } as const;
  http.get("/health/alive", { ...probed, schema: alive }, () => ({ status: "ok" as const }));
  http.get(
    "/health/ready",
    {
      ...probed,
      schema: {
        response: { 200: ReadyBody, ...refusals("unavailable") },
        tags,
        operationId: "checkReady",
        summary:
          "Check that the process can answer; 503 while it drains, while the database is away or read-only, or while the clocks disagree",
      },
    },
    async (_request, reply) => {
      if (isDraining) throw new Problem("unavailable", { message: "the process is about to end" });
      const fault = await faultOf(ctx);
      if (fault !== null) throw new Problem("unavailable", { message: fault });
      return reply.send({ status: "ok", now: ctx.clock.now() });
    },
  );
}
