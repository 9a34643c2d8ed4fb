import type { FastifyReply, FastifyRequest } from "fastify";
import type { Ctx } from "../context.ts";
import { refuseBeyond } from "./limit-refusal.ts";
import { callerAddressOf, isUnlimited, limitNetworkOf } from "./client-address.ts";
import type { Http } from "./http.ts";

/** Large bodies under way from one network, in one process. */
const atOnceMax = 16;

/**
 * Bounds the large bodies that one network has under way in this process, from the first byte to the end of the answer:
 * each takes several times its size in memory, and may take a minute to arrive. Routes that accept no more than
 * `ordinaryBytes`, and requests that announce no more, are not counted.
 */
export function boundLargeBodies(
  ctx: Pick<Ctx, "config" | "metrics">,
  http: Http,
  ordinaryBytes: number,
): void {
  const underWay = new Map<string, number>();
  const admit = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    // A caller who left during authentication would be counted for ever, since the `close` event has already fired.
    if (reply.raw.closed) return;
    const announced = Number(request.headers["content-length"] ?? Infinity);
    const address = callerAddressOf(ctx, request);
    if (isUnlimited(ctx, address) || announced <= ordinaryBytes) return;
    const network = limitNetworkOf(address);
    const count = underWay.get(network) ?? 0;
    if (count >= atOnceMax)
      refuseBeyond(ctx, "large-bodies", { burst: atOnceMax, retryAfterSeconds: 1 });
    underWay.set(network, count + 1);
    reply.raw.once("close", () => {
      const left = (underWay.get(network) ?? 1) - 1;
      if (left === 0) underWay.delete(network);
      else underWay.set(network, left);
    });
  };
  http.addHook("onRoute", (route) => {
    if ((route.bodyLimit ?? 0) <= ordinaryBytes) return;
    // After the scope and the route have asked who calls: 401 comes before 429.
    const own = [route.onRequest ?? []].flat();
    route.onRequest = [...own, admit];
  });
}
