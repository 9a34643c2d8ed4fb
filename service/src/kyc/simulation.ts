// Plays the user of a sandbox order (decisions section 8, Sandbox): only identities that the service made for its
// domain.
import {
  type Address,
  commitmentOf,
  declineDigest,
  encodeInfos,
  type FieldName,
  fieldsHash,
  fieldsOfName,
  type Hex32,
  hexOfBytes,
  isRecord,
  leafOf,
  leavesHash,
  requestObjectHash,
  shareDigest,
  signDigest,
} from "@svc/protocol";
import {
  type AskedName,
  getBuiltInIssuer,
  type InvalidLeaf,
  revokeCredential,
} from "../credentials/index.ts";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { Problem } from "../platform/http/problems.ts";
import { announceInvalidated } from "./handed-over.ts";
import { openConnection } from "./order-connection.ts";
import { mismatchesForgiven, steps } from "./order.ts";
import type { Order } from "./order-row.ts";
import { findNewestLink, findOrder } from "./order-store.ts";
import { findSyntheticUser, type HeldField, type SyntheticUser } from "./synthetic-identity.ts";
import { moveOrders } from "./transitions.ts";

export const plays = ["approve", "decline", "expire", "wrong-data", "revoke"] as const;
export type Play = (typeof plays)[number];

/** What a simulation needs: the context, and `fetch` to reach the running service as a wallet does. */
export interface SimulationContext extends Ctx {
  readonly fetch: typeof fetch;
}

export interface Played {
  readonly referenceKey: string;
  readonly play: Play;
  /** HTTP status of the service's answer to the wallet; absent for plays without a wallet. */
  readonly status?: number;
}

/**
 * Acts for the user of a sandbox order.
 *
 * @throws {Problem} order_not_found; simulation_refused for a live order, an identity that the service did not make for
 * that domain, or an answer that the service refuses; unavailable
 */
export async function simulate(
  ctx: SimulationContext,
  referenceKey: string,
  play: Play,
): Promise<Played> {
  const order = await findOrder(ctx.db, referenceKey);
  if (order === null) throw new Problem("order_not_found");
  const user = order.environment === "sandbox" ? await findSyntheticUser(ctx, order) : null;
  if (user === null) throw new Problem("simulation_refused");
  if (play === "expire") await expire(ctx, order);
  else if (play === "revoke") await revoke(ctx, order, user);
  else {
    const { status, message } = await answer(ctx, { order, user, play });
    const isTaken = play === "wrong-data" ? await hasMismatched(ctx, order) : status === 200;
    if (!isTaken)
      throw new Problem("simulation_refused", { message: `the service refuses it: ${message}` });
    return { referenceKey, play, status };
  }
  return { referenceKey, play };
}

/** Whether wrong data has ended the attempt, in this play or an earlier one that is repeated because it broke off. */
async function hasMismatched({ db }: Pick<Ctx, "db">, order: Order): Promise<boolean> {
  const now = await findOrder(db, order.referenceKey);
  return now?.attempt === order.attempt && now.failureReason === steps.mismatched.failureReason;
}

async function expire(ctx: Ctx, order: Order): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const at = ctx.clock.now();
    const moved = await moveOrders(ctx, tx, {
      orders: [order],
      step: steps.expired,
      at,
    });
    if (moved.length === 0)
      throw new Problem("simulation_refused", { message: "only a PENDING order runs out of time" });
  });
}

/** Revokes the user's credentials that hold what the order asks for; a job then revokes them on chain. */
async function revoke(ctx: Ctx, order: Order, { held }: SyntheticUser): Promise<void> {
  const asked = new Set(
    [...order.required, ...order.optional].flatMap((name) => fieldsOfName(name)),
  );
  const ids = new Set(
    held.filter(({ field }) => asked.has(field)).map(({ credentialId }) => credentialId),
  );
  const issuer = await getBuiltInIssuer(ctx, "sandbox", "sandbox");
  const ending = {
    ...ctx,
    onInvalidated: async (tx: Queryable, leaves: readonly InvalidLeaf[]) =>
      announceInvalidated(ctx, tx, leaves),
  };
  for (const id of ids) await revokeCredential(ending, issuer, id);
}

/** A link to the order, like those that its merchant gives out. */
interface Link {
  readonly connection: string;
  readonly requester: string;
  readonly offered: readonly AskedName[];
}

/** Answers the order over HTTP, through a link of its own, as the wallet does. @returns the last answer */
async function answer(
  ctx: SimulationContext,
  { order, user, play }: { order: Order; user: SyntheticUser; play: Play },
): Promise<Said> {
  const link = await makeLink(ctx, order);
  const { connection } = link;
  if (play === "decline") {
    const digest = declineDigest({ request: order.referenceKey, connection });
    const signature = signDigest(digest, user.key);
    const { referenceKey: id, user: svcID } = order;
    return post(ctx, connection, { error: "access_denied", id, svcID, signature });
  }
  const opened = await send(ctx, `${connection}/open`, {});
  if (opened.status !== 200) return read(ctx, opened);
  const object = opened.text;
  // If nothing is required, optional names are shared: the service refuses an empty result.
  const names = order.required.length > 0 ? order.required : link.offered;
  const fields = chosenFields(names, user);
  if (play === "approve") {
    const data = leavesHash(leavesOf(order.user, fields));
    return post(ctx, connection, resultOf(order, user, { ...link, object, fields, data }));
  }
  // Validly signed results over values that were never issued: as many as are forgiven, and one more.
  const data = hexOfBytes(ctx.random.bytes(32));
  const wrong = resultOf(order, user, { ...link, object, fields, data });
  // Some may have been counted before: results of the user's wallet, or of a play that broke off.
  for (let counted = order.mismatches; counted < mismatchesForgiven; counted++)
    await post(ctx, connection, wrong);
  return post(ctx, connection, wrong);
}

/** Makes a link with the requester and the offered names of the merchant's newest one. */
async function makeLink(ctx: Ctx, order: Order): Promise<Link> {
  const { requester, offered } = (await findNewestLink(ctx.db, order.id)) ?? {
    requester: "",
    offered: [],
  };
  const connection = await openConnection(ctx, ctx.db, { order, requester, offered });
  return { connection, requester, offered };
}

/** One held field for each name, sorted by field; one field may answer several names. */
function chosenFields(names: readonly AskedName[], { held }: SyntheticUser): HeldField[] {
  const chosen = names.flatMap((name) => {
    const fields: readonly FieldName[] = fieldsOfName(name);
    const found = held.find(({ field }) => fields.includes(field));
    return found === undefined ? [] : [found];
  });
  return [...new Set(chosen)].toSorted((a, b) => (a.field < b.field ? -1 : 1));
}

function leavesOf(user: Address, fields: readonly HeldField[]): Hex32[] {
  return fields.map(({ field, data, pepper, expiresAt }) =>
    leafOf({ user, field, commitment: commitmentOf({ data, pepper }), expiresAt }),
  );
}

/** What a result is made of. */
interface Answer extends Link {
  readonly object: string;
  readonly fields: readonly HeldField[];
  /** `data` of the signed `Share`. */
  readonly data: Hex32;
}

function resultOf(order: Order, user: SyntheticUser, given: Answer): object {
  const { fields, data } = given;
  const digest = shareDigest({
    request: order.referenceKey,
    connection: given.connection,
    requester: given.requester,
    object: requestObjectHash(given.object),
    fields: fieldsHash(fields.map(({ field }) => field)),
    data,
    deadline: order.expiration,
  });
  return {
    svcID: order.user,
    id: order.referenceKey,
    infos: encodeInfos(fields),
    data,
    signature: signDigest(digest, user.key),
  };
}

/** The service's answer to the wallet. */
interface Said {
  readonly status: number;
  /** Of the error; empty without one. */
  readonly message: string;
}

async function post(ctx: SimulationContext, url: string, body: object): Promise<Said> {
  return read(ctx, await send(ctx, url, body));
}

const answerWithinMs = 30_000;

interface Answered {
  readonly status: number;
  readonly text: string;
}

async function send(ctx: SimulationContext, url: string, body: object): Promise<Answered> {
  try {
    const response = await ctx.fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(answerWithinMs),
    });
    return { status: response.status, text: await response.text() };
  } catch {
    throw noService(ctx);
  }
}

/** Anything but JSON comes from a proxy in front of a service that is down. @throws {Problem} unavailable */
function read(ctx: SimulationContext, { status, text }: Answered): Said {
  const body = parseJson(text);
  if (!isRecord(body)) throw noService(ctx);
  const { error } = body;
  return { status, message: isRecord(error) ? String(error["message"]) : "" };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function noService({ config }: SimulationContext): Problem {
  return new Problem("unavailable", { message: `no service answers at ${config.baseUrl}` });
}
