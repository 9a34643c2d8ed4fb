import { Type } from "./schema.ts";
import { isClockRight } from "./clock.ts";
import type { Ctx } from "./context.ts";
import type { Http } from "./http.ts";
import { Problem } from "./problems.ts";
import { refusals } from "./refusals.ts";

const ReadyBody = Type.Object(
  {
    status: Type.Literal("ok"),
    now: Type.Integer({ description: "The service's time, Unix seconds." }),
  },
  { description: "It can answer." },
);

/** A balancer gives up after a few seconds, and a statement only after half a minute. */
const databaseWithinMs = 3_000;

/** @throws also when the database hangs */
async function isClockRightInTime({ db, clock }: Ctx): Promise<boolean> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("the database hangs")), databaseWithinMs);
  try {
    return await Promise.race([isClockRight(db, clock), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** `alive`: the process runs. `ready`: it can answer now; carries the service's time, which in `dev` can be moved. */
export function addHealthRoutes(ctx: Ctx, http: Http): void {
  const tags = ["operations"];
  const alive = {
    response: { 200: Type.Object({ status: Type.Literal("ok") }, { description: "It runs." }) },
    tags,
    summary: "The process runs",
  };
  let isDraining = false;
  http.addHook("preClose", (done) => {
    isDraining = true;
    done();
  });
  // Many monitors and balancers ask by HEAD.
  const exposeHeadRoute = true;
  http.get("/health/alive", { exposeHeadRoute, schema: alive }, () => ({ status: "ok" as const }));
  http.get(
    "/health/ready",
    {
      exposeHeadRoute,
      schema: {
        response: { 200: ReadyBody, ...refusals("unavailable") },
        tags,
        summary:
          "The process can answer; 503 while it drains, the database is away or the clocks disagree",
      },
    },
    async (_request, reply) => {
      if (isDraining) throw new Problem("unavailable", { message: "the process is about to end" });
      let isRight: boolean;
      try {
        isRight = await isClockRightInTime(ctx);
      } catch {
        throw new Problem("unavailable", { message: "the database cannot be reached" });
      }
      if (!isRight)
        throw new Problem("unavailable", {
          message: "this machine's clock differs from the database's by more than 2 s",
        });
      return reply.header("cache-control", "no-store").send({ status: "ok", now: ctx.clock.now() });
    },
  );
}
