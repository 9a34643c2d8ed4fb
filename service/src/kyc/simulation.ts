// Plays the user in a sandbox (decisions section 8, Sandbox), only for identities that the service made for it.
import {
  type Address,
  addressOfPrivateKey,
  commitmentOf,
  declineDigest,
  encodeInfos,
  type FieldName,
  fieldsHash,
  fieldsOfName,
  type Hex32,
  hexOfBytes,
  type Info,
  leafOf,
  leavesHash,
  requestObjectHash,
  shareDigest,
  signDigest,
} from "@svc/protocol";
import { getDomain } from "../accounts/index.ts";
import {
  collectCredential,
  getBuiltInIssuer,
  type InvalidLeaf,
  issueCredential,
  listOwnCredentials,
  revokeCredential,
} from "../credentials/index.ts";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/db.ts";
import { Problem } from "../platform/problems.ts";
import { sha256 } from "../platform/sha256.ts";
import { announceInvalidated } from "./handed-over.ts";
import { mismatchesForgiven, onlyStepOf } from "./order.ts";
import type { Order } from "./order-row.ts";
import { findOrder, insertToken } from "./order-store.ts";
import { connectionOf } from "./orders.ts";
import * as store from "./simulation-store.ts";
import { moveOrders } from "./transitions.ts";

export const plays = ["approve", "decline", "expire", "wrong-data", "revoke"] as const;
export type Play = (typeof plays)[number];

/** What plays, besides the context: how it reaches the running service, as a wallet would. */
export interface SimulationContext extends Ctx {
  readonly fetch: typeof fetch;
}

/** A field as a wallet holds it. */
interface HeldField extends Info {
  readonly expiresAt: number;
  readonly credentialId: string;
}

const yearSeconds = 365 * 86_400;

const documents = [
  {
    document: "IDCARD",
    fields: [
      { field: "IDCARD_NAME", data: "Sandra Sandbox" },
      { field: "IDCARD_FIRST_NAME", data: "Sandra" },
      { field: "IDCARD_LAST_NAME", data: "Sandbox" },
      { field: "IDCARD_DOB", data: "1985-01-31" },
      { field: "IDCARD_NATIONALITY", data: "CHE" },
      { field: "IDCARD_COUNTRY", data: "CHE" },
      { field: "IDCARD_DOCUMENT_NUMBER", data: "X0000000" },
    ],
  },
  {
    document: "ADDRESS",
    fields: [
      { field: "ADDRESS_STREET", data: "Teststrasse" },
      { field: "ADDRESS_ZIP_CODE", data: "8000" },
      { field: "ADDRESS_CITY", data: "Zürich" },
      { field: "ADDRESS_COUNTRY", data: "CHE" },
    ],
  },
  {
    document: "CONTACT",
    fields: [
      { field: "EMAIL", data: "sandra@example.com" },
      { field: "PHONE", data: "+41790000000" },
    ],
  },
] as const;

const placeOf = (user: Address, column: "key_sealed" | "held_sealed") => ({
  table: "synthetic_identity",
  id: user,
  column,
});

/**
 * Makes an identity with verified fields for a sandbox domain. They count as soon as a running service has attested
 * them.
 *
 * @throws {Problem} client_domain_not_found, simulation_refused for a live domain
 */
export async function makeSyntheticIdentity(
  ctx: Ctx,
  clientDomainId: string,
  actor: string,
): Promise<{ user: Address; fields: FieldName[] }> {
  const domain = await getDomain(ctx, clientDomainId);
  if (domain.environment !== "sandbox") throw new Problem("simulation_refused");
  const key = ctx.random.bytes(32);
  const user = addressOfPrivateKey(key);
  const issuer = await getBuiltInIssuer(ctx, "sandbox", "sandbox");
  const expiresAt = ctx.clock.now() + yearSeconds;
  for (const { document, fields } of documents)
    await issueCredential(ctx, issuer, { user, document, fields, expiresAt });
  const held = await collectAll(ctx, user);
  const heldSealed = ctx.seal.seal(Buffer.from(JSON.stringify(held)), placeOf(user, "held_sealed"));
  const keySealed = ctx.seal.seal(key, placeOf(user, "key_sealed"));
  await ctx.db.transaction(async (tx) => {
    const identity = { user, clientDomainId: domain.id, keySealed, heldSealed };
    await store.insertIdentity(tx, identity, ctx.clock.now());
    await ctx.audit.record(tx, { actor, action: "simulate.identity", subject: domain.id });
  });
  return { user, fields: held.map(({ field }) => field) };
}

async function collectAll(ctx: Ctx, user: Address): Promise<HeldField[]> {
  const { items } = await listOwnCredentials(ctx, user, { before: null, limit: documents.length });
  const held = items.flatMap(({ id, fields }) =>
    fields.flatMap(({ field, data, pepper, expiresAt }): HeldField[] =>
      data === undefined || pepper === undefined
        ? []
        : [{ field, data, pepper, expiresAt, credentialId: id }],
    ),
  );
  for (const { id } of items) await collectCredential(ctx, user, id);
  return held;
}

/** What came of a play: the answer of the service to the wallet, or the end of the order. */
export interface Played {
  readonly referenceKey: string;
  readonly play: Play;
  /** HTTP status of the service's answer, where the wallet would have asked it. */
  readonly status?: number;
}

/**
 * Plays the user of a sandbox order.
 *
 * @throws {Problem} order_not_found; simulation_refused for an order of the live side, or of an identity that the
 *   service did not make for that domain, and where the service does not take what the user would say;
 *   unavailable
 */
export async function simulate(
  ctx: SimulationContext,
  referenceKey: string,
  play: Play,
): Promise<Played> {
  const order = /^[0-9a-f]{64}$/.test(referenceKey) ? await findOrder(ctx.db, referenceKey) : null;
  if (order === null) throw new Problem("order_not_found");
  const identity =
    order.environment === "sandbox"
      ? await store.findIdentity(ctx.db, order.user, order.clientDomainId)
      : null;
  if (identity === null) throw new Problem("simulation_refused");
  const user = openUser(ctx, identity);
  if (play === "expire") await expire(ctx, order);
  else if (play === "revoke") await revoke(ctx, order, user);
  else {
    const { status, message } = await answer(ctx, { order, user, play });
    if (status !== (play === "wrong-data" ? 422 : 200))
      throw new Problem("simulation_refused", { message: `the service refuses it: ${message}` });
    return { referenceKey, play, status };
  }
  return { referenceKey, play };
}

interface User {
  readonly key: Buffer;
  readonly held: readonly HeldField[];
}

function openUser(ctx: Ctx, identity: store.SyntheticIdentity): User {
  const { user } = identity;
  const held = ctx.seal.open(identity.heldSealed, placeOf(user, "held_sealed"));
  return {
    key: ctx.seal.open(identity.keySealed, placeOf(user, "key_sealed")),
    held: JSON.parse(held.toString()) as HeldField[],
  };
}

async function expire(ctx: Ctx, order: Order): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const at = ctx.clock.now();
    const moved = await moveOrders(ctx, tx, {
      orders: [order],
      step: onlyStepOf("expired"),
      at,
    });
    if (moved.length === 0) throw new Problem("order_not_cancellable");
  });
}

/** Ends the credentials behind what the order asks for; the chain follows. */
async function revoke(ctx: Ctx, order: Order, { held }: User): Promise<void> {
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

/** Opens a link of its own and answers it over HTTP, as the wallet does. @returns the last answer */
async function answer(
  ctx: SimulationContext,
  { order, user, play }: { order: Order; user: User; play: Play },
): Promise<Said> {
  const token = ctx.random.bytes(16).toString("base64url");
  const shown = await store.findOffered(ctx.db, order.id);
  await insertToken(ctx.db, {
    tokenSha256: sha256(token),
    orderId: order.id,
    attempt: order.attempt,
    expiration: order.expiration,
    callback: order.callback,
    requester: shown?.requester ?? "",
    offered: shown?.offered ?? [],
    createdAt: ctx.clock.now(),
  });
  const connection = connectionOf(ctx.config.baseUrl, token);
  if (play === "decline") {
    const digest = declineDigest({ request: order.referenceKey, connection });
    const signature = signDigest(digest, user.key);
    const { referenceKey: id, user: svcID } = order;
    return post(ctx, connection, { error: "access_denied", id, svcID, signature });
  }
  const opened = await send(ctx, `${connection}/open`, {});
  if (!opened.ok) return read(opened);
  const link = { connection, object: await opened.text(), requester: shown?.requester ?? "" };
  const fields = chosenFields(order, user);
  if (play === "approve") {
    const data = leavesHash(leavesOf(order.user, fields));
    return post(ctx, connection, resultOf(order, user, { ...link, fields, data }));
  }
  // Validly signed for what was never issued, once more than is forgiven.
  const data = hexOfBytes(ctx.random.bytes(32));
  const wrong = resultOf(order, user, { ...link, fields, data });
  for (let time = 0; time < mismatchesForgiven; time++) await post(ctx, connection, wrong);
  return post(ctx, connection, wrong);
}

/** One held field for each name that is required, by field; the same may answer several. */
function chosenFields(order: Order, { held }: User): HeldField[] {
  const chosen = order.required.flatMap((name) => {
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

/** A result that the user signed. */
interface Answer {
  readonly connection: string;
  readonly object: string;
  readonly requester: string;
  readonly fields: readonly HeldField[];
  /** What it is signed for. */
  readonly data: Hex32;
}

function resultOf(order: Order, user: User, given: Answer): object {
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

/** What the service says to the wallet. */
interface Said {
  readonly status: number;
  /** Empty where nothing was refused. */
  readonly message: string;
}

async function post(ctx: SimulationContext, url: string, body: object): Promise<Said> {
  return read(await send(ctx, url, body));
}

async function send(ctx: SimulationContext, url: string, body: object): Promise<Response> {
  try {
    return await ctx.fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    const message = `no service answers at ${ctx.config.baseUrl}`;
    throw new Problem("unavailable", { message });
  }
}

async function read(answered: Response): Promise<Said> {
  const { error } = (await answered.json()) as { error?: { message: string } };
  return { status: answered.status, message: error?.message ?? "" };
}
