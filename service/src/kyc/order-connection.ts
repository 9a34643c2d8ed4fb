import type { AskedName } from "../credentials/index.ts";
import type { Ctx } from "../platform/context.ts";
import { sha256 } from "../platform/cryptography/sha256.ts";
import type { Queryable } from "../platform/database/db.ts";
import type { Order } from "./order-row.ts";
import { insertLink } from "./order-store.ts";

const tokenBytes = 16;
const tokenPattern = /^[A-Za-z0-9_-]{22}$/;

/** `conn` of an order's link: where the wallet gets the request object, and sends its answer. */
export function connectionOf(baseUrl: string, token: string): string {
  return `${baseUrl}/w/o/${token}`;
}

/** The hash under which the secret of a link is stored; null for a text that is no such secret. */
export function hashOfToken(text: string): Buffer | null {
  return tokenPattern.test(text) ? sha256(text) : null;
}

/** Makes a `conn` for the present attempt of the order, of which only a hash is stored. */
export async function openConnection(
  ctx: Pick<Ctx, "random" | "clock" | "config">,
  tx: Queryable,
  given: { order: Order; requester: string; offered: readonly AskedName[] },
): Promise<string> {
  const { order, requester, offered } = given;
  const token = ctx.random.bytes(tokenBytes).toString("base64url");
  await insertLink(tx, {
    tokenSha256: sha256(token),
    orderId: order.id,
    attempt: order.attempt,
    expiration: order.expiration,
    callback: order.callback,
    requester,
    offered,
    createdAt: ctx.clock.now(),
  });
  return connectionOf(ctx.config.baseUrl, token);
}
