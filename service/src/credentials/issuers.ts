import { issuerIdentity } from "@svc/protocol";
import { type Environment, makeApiKey, parseEnvironment, parseName } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import { parseUuid, uuidv7 } from "../platform/ids.ts";
import { readAddress } from "../platform/http/address-input.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import { type BuiltInKind, builtInIssuers, type Issuer } from "./issuer.ts";
import { makeRecordsDue } from "./company-store.ts";
import * as store from "./issuer-store.ts";

/** A new key, with its text, which is shown only once. */
export interface ShownIssuerKey extends store.IssuerKeyRow {
  readonly key: string;
}

/** The most live keys of one issuer. */
const keysMax = 20;

/**
 * Creates an issuer. A running service then obtains its role on chain; what it issues before that is attested
 * afterwards.
 *
 * @param given.address its identity in the registry; by default derived from its id
 * @throws {Problem} invalid_request, also when another issuer has the address
 */
export async function createIssuer(
  ctx: Ctx,
  given: { name: string; environment: string; address?: string },
  actor: string,
): Promise<Issuer> {
  const id = uuidv7(ctx.clock, ctx.random);
  const address =
    given.address === undefined ? issuerIdentity(id) : readAddress("address", given.address);
  if (/^0x0+$/.test(address)) throw invalidRequest("the address zero names no issuer");
  const issuer = {
    id,
    kind: "api" as const,
    name: parseName(given.name),
    address,
    environment: parseEnvironment(given.environment),
    createdAt: ctx.clock.now(),
  };
  await ctx.db.transaction(async (tx) => {
    if (!(await store.insertIssuer(tx, issuer)))
      throw invalidRequest("another issuer has this address");
    const { name, environment } = issuer;
    const details = { name, address, environment };
    await ctx.audit.record(tx, { actor, action: "issuer.create", subject: id, details });
  });
  return { ...issuer, roleGrantedAt: null, distrustedFrom: null };
}

/** All issuers, including built-in ones, in the order of their creation. */
export async function listIssuers(ctx: Ctx): Promise<Issuer[]> {
  return store.listIssuers(ctx.db);
}

/** @throws {Problem} issuer_not_found */
export async function getIssuer(ctx: Ctx, id: string): Promise<Issuer> {
  const parsed = parseUuid(id);
  const issuer = parsed === null ? null : await store.findIssuer(ctx.db, parsed);
  if (issuer === null) throw new Problem("issuer_not_found");
  return issuer;
}

/** The service's own issuer of that kind. @throws {Problem} issuer_not_found */
export async function getBuiltInIssuer(
  ctx: Ctx,
  kind: BuiltInKind,
  environment: Environment,
): Promise<Issuer> {
  const issuer = await store.findBuiltInIssuer(ctx.db, kind, environment);
  if (issuer === null) throw new Problem("issuer_not_found");
  return issuer;
}

/**
 * Creates the built-in issuers that are missing. In `production`, also distrusts a demo issuer that is left over from
 * `dev`, with everything that it ever attested.
 */
export async function ensureBuiltInIssuers(ctx: Ctx): Promise<void> {
  const actor = "system";
  const { profile } = ctx.config;
  const known = await store.listIssuers(ctx.db);
  for (const { kind, environment, name } of builtInIssuers(profile)) {
    if (known.some((each) => each.kind === kind && each.environment === environment)) continue;
    const id = uuidv7(ctx.clock, ctx.random);
    const address = issuerIdentity(id);
    const issuer = { id, kind, name, address, environment, createdAt: ctx.clock.now() };
    await ctx.db.transaction(async (tx) => {
      // Another process may have been faster.
      if (!(await store.insertIssuer(tx, issuer))) return;
      const details = { name, address, environment };
      await ctx.audit.record(tx, { actor, action: "issuer.create", subject: id, details });
    });
  }
  if (profile !== "production") return;
  await ctx.db.transaction(async (tx) => {
    const distrusted = await store.distrustDemoIssuers(tx);
    if (distrusted.length > 0) await makeRecordsDue(tx, distrusted);
    for (const id of distrusted) {
      const details = { from: 1 };
      await ctx.audit.record(tx, { actor, action: "issuer.distrust", subject: id, details });
    }
  });
}

/**
 * Makes a key of the issuer API; its text is shown only this once.
 *
 * @throws {Problem} invalid_request (for a distrusted issuer too), issuer_not_found, too_many (20 live keys)
 */
export async function createIssuerKey(
  ctx: Ctx,
  given: { issuerId: string; name: string },
  actor: string,
): Promise<ShownIssuerKey> {
  const issuer = await getIssuer(ctx, given.issuerId);
  if (issuer.kind !== "api") throw invalidRequest("a built-in issuer has no keys");
  if (issuer.distrustedFrom !== null) throw invalidRequest("a distrusted issuer may issue no more");
  const made = makeApiKey("issuer", (bound) => ctx.random.below(bound));
  const key = {
    id: made.id,
    issuerId: issuer.id,
    name: parseName(given.name),
    createdAt: ctx.clock.now(),
  };
  await ctx.db.transaction(async (tx) => {
    await store.lockIssuer(tx, issuer.id);
    if ((await store.listIssuerKeys(tx, issuer.id)).length >= keysMax)
      throw new Problem("too_many", {
        message: `an issuer has at most ${keysMax} live keys; revoke one first`,
      });
    await store.insertIssuerKey(tx, { ...key, mac: ctx.keys.mac("issuer-key", made.text) });
    const details = { issuerId: issuer.id, name: key.name };
    await ctx.audit.record(tx, { actor, action: "issuer-key.create", subject: key.id, details });
  });
  return { ...key, lastUsedAt: null, key: made.text };
}

/** Live keys of the issuer, with their last use. @throws {Problem} issuer_not_found */
export async function listIssuerKeys(ctx: Ctx, issuerId: string): Promise<store.IssuerKeyRow[]> {
  const { id } = await getIssuer(ctx, issuerId);
  return store.listIssuerKeys(ctx.db, id);
}

/** Ends a key at once. @throws {Problem} apikey_not_found */
export async function revokeIssuerKey(ctx: Ctx, id: string, actor: string): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const revoked = await store.revokeIssuerKey(tx, id, ctx.clock.now());
    if (revoked === null) throw new Problem("apikey_not_found");
    const details = { issuerId: revoked.issuerId };
    await ctx.audit.record(tx, { actor, action: "issuer-key.revoke", subject: id, details });
  });
}

/**
 * Distrusts an issuer: what it attested at or after `from` is invalid at once, and it may not issue any more. A running
 * service then writes that to the chain, and notifies merchants who were given values. This cannot be undone; the time
 * can only be moved further back.
 *
 * @param given.from Unix seconds, above zero, at most now
 * @returns `distrustedFrom`: the time that applies, which may be earlier than `from`
 * @throws {Problem} invalid_request, issuer_not_found
 */
export async function distrustIssuer(
  ctx: Ctx,
  given: { issuerId: string; from: number },
  actor: string,
): Promise<Issuer> {
  const { issuer, from } = await findDistrusted(ctx, given);
  return ctx.db.transaction(async (tx) => {
    const distrustedFrom = await store.distrustIssuer(tx, issuer.id, from);
    await makeRecordsDue(tx, [issuer.id]);
    const details = { from, distrustedFrom };
    await ctx.audit.record(tx, { actor, action: "issuer.distrust", subject: issuer.id, details });
    return { ...issuer, distrustedFrom };
  });
}

/** The dry run of {@link distrustIssuer}: what it would invalidate now. @throws {Problem} as `distrustIssuer` does */
export async function foreseeDistrust(
  ctx: Ctx,
  given: { issuerId: string; from: number },
): Promise<Issuer & store.Discounted> {
  const { issuer, from } = await findDistrusted(ctx, given);
  const distrustedFrom = Math.min(issuer.distrustedFrom ?? from, from);
  const discounted = await store.countDiscounted(ctx.db, {
    issuerId: issuer.id,
    from: distrustedFrom,
    now: ctx.clock.now(),
  });
  return { ...issuer, distrustedFrom, ...discounted };
}

async function findDistrusted(
  ctx: Ctx,
  { issuerId, from }: { issuerId: string; from: number },
): Promise<{ issuer: Issuer; from: number }> {
  const issuer = await getIssuer(ctx, issuerId);
  if (!Number.isSafeInteger(from) || from < 1 || from > ctx.clock.now())
    throw invalidRequest("from must be a time in Unix seconds, not in the future");
  return { issuer, from };
}
