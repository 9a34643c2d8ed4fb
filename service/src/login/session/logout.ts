import type { Address } from "@svc/protocol";
import type { Client } from "../../accounts/index.ts";
import { type Form, valueOf } from "../../platform/http/http-input.ts";
import { equalBytes } from "../../platform/cryptography/mac.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import { withQuery } from "../attempt/attempt.ts";
import { sessionSecretHash } from "../attempt/browser-cookies.ts";
import { type IdTokenHint, readIdTokenHint } from "../authorization/id-token-hint.ts";
import * as store from "./session-store.ts";
import { endSession } from "./session-end.ts";
import type { TokenContext } from "../token-context.ts";

/** A browser that was sent here to log out. */
export interface LogoutCall {
  readonly method: "GET" | "POST";
  readonly form: Form;
  readonly cookieHeader: string | undefined;
}

export type LogoutOutcome =
  /** The person must say whether it wants this. */
  | {
      readonly kind: "ask";
      readonly client: Client | null;
      readonly user: Address;
      readonly hidden: Readonly<Record<string, string>>;
    }
  /** A POST from another site carries no cookie: the same request comes back as a GET that does. */
  | { readonly kind: "again"; readonly query: string }
  | { readonly kind: "stayed" }
  /**
   * Logged out, or nobody was logged in. `location`: where the client wants the browser. `cookieEnded`: the browser
   * sent a cookie, and its session is over. One that sent none (a POST from another site) may still hold that of a live
   * session.
   */
  | { readonly kind: "done"; readonly location: string | null; readonly cookieEnded: boolean };

export const logoutPath = "/oauth2/sessions/logout";

/** A logout request after the checks that concern the client (OpenID Connect RP-Initiated Logout section 2). */
interface Asked {
  readonly hint: IdTokenHint | null;
  readonly client: Client | null;
  readonly returnUri: string | null;
  readonly state: string | null;
}

/**
 * Logs a browser out. A valid `id_token_hint` of the session in this browser is enough; without one the person is
 * asked, by a form that no other site can fill in.
 *
 * @throws {OAuthProblem} invalid_request, shown as a page: nothing is ever sent to an address that is not registered
 */
export async function logOut(ctx: TokenContext, call: LogoutCall): Promise<LogoutOutcome> {
  const asked = await readRequest(ctx, call.form);
  const secretSha256 = sessionSecretHash(ctx.config, call.cookieHeader);
  const session =
    secretSha256 === null ? null : await store.findSessionBySecret(ctx.db, secretSha256);
  const done = finish(asked, { cookieEnded: secretSha256 !== null });
  const confirmation = valueOf(call.form, "confirm");
  if (call.method === "POST" && confirmation !== undefined) {
    if (session === null) return done;
    return decide(ctx, { call, asked, session, confirmation });
  }
  if (asked.hint !== null) {
    // The hint lets the client end its own login, whoever has logged in to this browser since.
    await end(ctx, asked.hint.sessionId);
    if (session === null || session.id === asked.hint.sessionId) return done;
  }
  if (session !== null) {
    const { client } = asked;
    const hidden = {
      ...parametersOf(call.form),
      // The hint does not come along, so the form has to name the client.
      ...(client === null ? {} : { client_id: client.id }),
      confirm: confirmationOf(ctx, session, asked),
    };
    return { kind: "ask", client, user: session.user, hidden };
  }
  if (call.method === "POST")
    return { kind: "again", query: new URLSearchParams(parametersOf(call.form)).toString() };
  return done;
}

async function decide(
  ctx: TokenContext,
  given: { call: LogoutCall; asked: Asked; session: store.LiveSession; confirmation: string },
): Promise<LogoutOutcome> {
  const expected = Buffer.from(confirmationOf(ctx, given.session, given.asked));
  if (!equalBytes(expected, Buffer.from(given.confirmation)))
    throw new OAuthProblem(
      "invalid_request",
      "this form is not of this browser's session; log out again",
    );
  if (valueOf(given.call.form, "decision") !== "logout") return { kind: "stayed" };
  await end(ctx, given.session.id);
  return finish(given.asked, { cookieEnded: true });
}

async function end(ctx: TokenContext, sessionId: string | null): Promise<void> {
  if (sessionId === null) return;
  await ctx.db.transaction(async (tx) => endSession(tx, sessionId, ctx.clock.now()));
}

function finish(
  { returnUri, state }: Asked,
  { cookieEnded }: { cookieEnded: boolean },
): LogoutOutcome {
  const location =
    returnUri === null || state === null ? returnUri : withQuery(returnUri, { state });
  return { kind: "done", location, cookieEnded };
}

const carriedNames = ["client_id", "post_logout_redirect_uri", "state", "ui_locales"] as const;

/** The parameters for the next step. The hint is left out, since it would end up in an address. */
function parametersOf(form: Form): Record<string, string> {
  const entries = carriedNames.map((name) => [name, valueOf(form, name)] as const);
  const given = entries.filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as Record<string, string>;
}

/** Binds the form to this session and to where it leads, so that no other site can submit or redirect it. */
function confirmationOf(ctx: TokenContext, session: store.LiveSession, asked: Asked): string {
  const parts = [session.id, asked.client?.id ?? "", asked.returnUri ?? "", asked.state ?? ""];
  return ctx.keys.mac("session", `logout ${JSON.stringify(parts)}`).toString("base64url");
}

async function readRequest(ctx: TokenContext, form: Form): Promise<Asked> {
  const text = valueOf(form, "id_token_hint");
  // A hint that is not ours is as good as none: the person is asked.
  const hint = text === undefined ? null : readIdTokenHint(ctx, text);
  const clientId = valueOf(form, "client_id") ?? hint?.clientId;
  if (hint !== null && clientId !== hint.clientId)
    throw new OAuthProblem("invalid_request", "client_id is not that of the id_token_hint");
  const client = clientId === undefined ? null : await ctx.clients.find(clientId);
  if (client === null && valueOf(form, "client_id") !== undefined)
    throw new OAuthProblem("invalid_request", "the client is unknown");
  return {
    hint,
    client,
    returnUri: await readReturnUri(ctx, form, client),
    state: valueOf(form, "state") ?? null,
  };
}

/** Exact match, no exception. */
async function readReturnUri(
  { clients }: Pick<TokenContext, "clients">,
  form: Form,
  client: Client | null,
): Promise<string | null> {
  const uri = valueOf(form, "post_logout_redirect_uri");
  if (uri === undefined) return null;
  if (client === null)
    throw new OAuthProblem(
      "invalid_request",
      "post_logout_redirect_uri needs a client_id, or an id_token_hint that is an id token of this service",
    );
  const isRegistered = ({ postLogoutRedirectUris }: Client): boolean =>
    postLogoutRedirectUris.includes(uri);
  if ((await clients.findFitting(client, isRegistered)) === null)
    throw new OAuthProblem(
      "invalid_request",
      "post_logout_redirect_uri is not registered for this client, character by character",
    );
  return uri;
}
