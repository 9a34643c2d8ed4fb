import type { Client } from "../../accounts/index.ts";
import { Problem } from "../../platform/http/problems.ts";
import type { LoginContext } from "../login-context.ts";
import { type Attempt, loginIdPattern } from "./attempt.ts";
import { findAttempt } from "./attempt-store.ts";

const loginIdForm = new RegExp(loginIdPattern);

/** The attempt as this process remembers it, else as stored. @throws {Problem} login_not_found */
export async function getAttempt(ctx: LoginContext, loginId: string): Promise<Attempt> {
  return ctx.recent.get(loginId) ?? readAttempt(ctx, loginId);
}

/** The attempt as stored. @throws {Problem} login_not_found */
export async function readAttempt(ctx: LoginContext, loginId: string): Promise<Attempt> {
  // Any other text is no id of ours, and PostgreSQL cannot even store some of them.
  if (!loginIdForm.test(loginId)) throw new Problem("login_not_found");
  const attempt = await findAttempt(ctx.db, loginId);
  if (attempt === null) throw new Problem("login_not_found");
  ctx.recent.put(attempt);
  return attempt;
}

/** @throws {Problem} login_over when the client was disabled meanwhile */
export async function getClient(ctx: LoginContext, attempt: Attempt): Promise<Client> {
  const client = await ctx.clients.find(attempt.clientId);
  if (client === null) throw new Problem("login_over");
  return client;
}
