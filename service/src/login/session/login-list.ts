import type { Address } from "@svc/protocol";
import { getClient } from "../../accounts/index.ts";
import * as store from "./login-list-store.ts";
import type { LoginContext } from "../login-context.ts";
import { endSession } from "./session-end.ts";
import { invalidRequest } from "../../platform/http/problems.ts";

/** A login that still holds, as its user sees it: tokens are good or can be refreshed, or a browser is still logged in. */
export interface LiveLogin {
  /** Of the token family or, if there is none any more, of the session; a UUID. */
  readonly id: string;
  readonly clientName: string;
  readonly domain?: string;
  /** Unix seconds. */
  readonly at: number;
  readonly acr: string;
}

/** The user's logins, newest first. @throws {Problem} invalid_request for a cursor that is not ours */
export async function listLogins(
  ctx: LoginContext,
  user: Address,
  page: { limit: number; cursor?: string },
): Promise<{ items: LiveLogin[]; nextCursor?: string }> {
  const after = page.cursor === undefined ? null : parseCursor(page.cursor);
  const rows = await store.listLogins(ctx.db, user, {
    now: ctx.clock.now(),
    accessSeconds: ctx.config.accessTokenLifetimeSeconds,
    sessionIdleSeconds: ctx.config.sessionIdleSeconds,
    sessionAbsoluteSeconds: ctx.config.sessionAbsoluteSeconds,
    limit: page.limit + 1,
    after,
  });
  const shown = rows.slice(0, page.limit);
  const items = await Promise.all(
    shown.map(async (row) => {
      const { name, domain } = await describeClient(ctx, row.clientId);
      return {
        id: row.id,
        clientName: name,
        ...(domain === null ? {} : { domain }),
        at: row.createdAt,
        acr: row.acr ?? "",
      };
    }),
  );
  const last = shown.at(-1);
  return {
    items,
    ...(rows.length > page.limit && last !== undefined
      ? { nextCursor: `${last.createdAt}.${last.id}` }
      : {}),
  };
}

/** A disabled client keeps its name: a session that began with it may still answer for others, and can be ended. */
async function describeClient(
  ctx: LoginContext,
  id: string,
): Promise<{ name: string; domain: string | null }> {
  const client = await ctx.clients.find(id);
  return client ?? { name: (await getClient(ctx, id)).settings.name, domain: null };
}

function parseCursor(cursor: string): { createdAt: number; id: string } {
  const [, createdAt, id] =
    /^(\d{1,12})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(cursor) ?? [];
  if (createdAt === undefined || id === undefined)
    throw invalidRequest("cursor is not one of ours");
  return { createdAt: Number(createdAt), id };
}

/**
 * Ends a login of this user, with its session and everything that came from that session. One that has ended already is
 * no error: a wallet that did not get our answer asks again. False when there is none.
 */
export async function endLogin(ctx: LoginContext, user: Address, id: string): Promise<boolean> {
  return ctx.db.transaction(async (tx) => {
    const now = ctx.clock.now();
    const found = await store.findLoginOf(tx, user, { id, now });
    if (found === null) return store.wasLoginOf(tx, user, id);
    // The session first, as everywhere: locking the family first could deadlock with a logout.
    const isSessionEnded = found.sessionId !== null && (await endSession(tx, found.sessionId, now));
    const isEnded = isSessionEnded || (await store.revokeFamily(tx, id, now));
    // Another call was faster, and has written the audit entry.
    if (!isEnded) return true;
    await ctx.audit.record(tx, { actor: user, action: "login.end", subject: id });
    return true;
  });
}
