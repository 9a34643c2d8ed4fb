import type { Client } from "../../accounts/index.ts";
import { type Form, valueOf } from "../../platform/http/http-input.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import {
  type Disproved,
  type PresentedAssertion,
  checkAssertion,
  readAssertion,
} from "./client-assertion.ts";
import { countFailure, refuseBlocked } from "./failed-secrets.ts";
import type { TokenContext } from "../token-context.ts";
import { clientMembers } from "../token/token-schemas.ts";
import { type OneTimeValue, spendOnce } from "../token/used-once-store.ts";

/** A call to an endpoint where clients prove themselves, reduced to what that takes. */
export interface ClientCall {
  readonly form: Form;
  /** The `Authorization` header. */
  readonly authorization: string | undefined;
  /** Network address of the caller, for the limit on failed secrets. */
  readonly address: string;
}

export interface AuthenticatedClient {
  readonly client: Client;
  /** Whether it proved itself by a secret or key; a browser-only client has neither. */
  readonly isConfidential: boolean;
  /** Must be spent in the statement that does what the client asked for; see {@link refuseReplayedAssertion}. */
  readonly oneTime: readonly OneTimeValue[];
}

/** The proof that a call presents, before anything about it is known to be true. */
type Presented =
  | {
      readonly method: "client_secret_basic" | "client_secret_post";
      readonly clientId: string;
      readonly secret: string;
    }
  | {
      readonly method: "private_key_jwt";
      readonly clientId: string;
      readonly assertion: PresentedAssertion;
    }
  | { readonly method: "none"; readonly clientId: string };

/**
 * Finds out which client calls, by the one method it is registered for (RFC 6749 section 2.3, RFC 7523 section 3).
 *
 * @throws {OAuthProblem} invalid_request (several methods, or unreadable ones), invalid_client
 * @throws {Problem} rate_limited after 10 failures per client and address in 10 minutes
 */
export async function authenticateClient(
  ctx: TokenContext,
  call: ClientCall,
): Promise<AuthenticatedClient> {
  const presented = readPresented(call);
  refuseBlocked(ctx, presented.clientId, call.address);
  const client = await ctx.clients.find(presented.clientId);
  if (client === null) return refuse("the client is unknown");
  const proved = await prove(ctx, client, presented);
  if (!("fault" in proved)) return proved;
  // While the host of the client's keys is down, its calls must not add up to a lockout that outlasts the outage.
  if (proved.isGuess) await countFailure(ctx, client.id, call.address);
  return refuse(proved.fault);
}

/**
 * As {@link authenticateClient}, for an endpoint without a statement that could spend the assertion: spends it here.
 *
 * @throws {OAuthProblem} | {Problem} as there; invalid_client also for a replayed assertion
 */
export async function authenticateClientOnce(ctx: TokenContext, call: ClientCall): Promise<Client> {
  const { client, oneTime } = await authenticateClient(ctx, call);
  await spendAssertion(ctx, oneTime);
  return client;
}

/** Spends a client's assertion where no other statement does. @throws {OAuthProblem} invalid_client when it was used before */
export async function spendAssertion(
  ctx: TokenContext,
  oneTime: AuthenticatedClient["oneTime"],
): Promise<void> {
  if (oneTime.length === 0) return;
  const spent = await spendOnce(ctx.db, oneTime);
  if (spent.length < oneTime.length) refuseReplayedAssertion();
}

/** The assertion was good but has been seen before. */
export function refuseReplayedAssertion(): never {
  throw new OAuthProblem("invalid_client", "this client assertion was used before");
}

/**
 * Null if the call does not use the method. Its credentials are parsed only afterwards, so that two methods are
 * reported as such even if one is malformed.
 */
type Reader = (call: ClientCall) => (() => Presented) | null;

const readBasic: Reader = ({ authorization, form }) => {
  if (authorization === undefined) return null;
  return () => {
    const text = textOfBasic(authorization);
    const at = text.indexOf(":");
    if (at < 0)
      throw new OAuthProblem(
        "invalid_client",
        "the Authorization header is not Basic with base64 of id, colon and secret",
      );
    const clientId = formDecode(text.slice(0, at));
    const named = valueOf(form, "client_id");
    if (named !== undefined && named !== clientId)
      throw new OAuthProblem(
        "invalid_request",
        "client_id is not that of the Authorization header",
      );
    return { method: "client_secret_basic", clientId, secret: formDecode(text.slice(at + 1)) };
  };
};

/** The credentials of a `Basic` header, decoded from base64 (RFC 7617 section 2); empty if it is none. */
function textOfBasic(authorization: string): string {
  const encoded = /^Basic +([\w+/-]+={0,2})$/i.exec(authorization)?.[1];
  return encoded === undefined ? "" : Buffer.from(encoded, "base64").toString("utf8");
}

/** The client that a Basic header names, without proof; undefined where it names none. */
export function clientIdOfBasic(authorization: string): string | undefined {
  const [encoded, ...others] = textOfBasic(authorization).split(":");
  if (encoded === undefined || others.length === 0) return undefined;
  try {
    return formDecode(encoded);
  } catch {
    return undefined;
  }
}

const readPost: Reader = ({ form }) => {
  const secret = valueOf(form, "client_secret");
  if (secret === undefined) return null;
  return () => {
    const clientId = valueOf(form, "client_id");
    if (clientId === undefined) throw new OAuthProblem("invalid_request", "client_id is missing");
    return { method: "client_secret_post", clientId, secret };
  };
};

const readKeyJwt: Reader = ({ form }) => {
  const text = valueOf(form, "client_assertion");
  const type = valueOf(form, "client_assertion_type");
  if (text === undefined && type === undefined) return null;
  return () => {
    const assertion = readAssertion(text, type);
    const named = valueOf(form, "client_id");
    if (named !== undefined && named !== assertion.clientId)
      throw new OAuthProblem("invalid_request", "client_id is not that of the client assertion");
    return { method: "private_key_jwt", clientId: assertion.clientId, assertion };
  };
};

function sayMethodOf({ authenticationMethod }: Client): string {
  return authenticationMethod === "none"
    ? "this client has no secret and no key: it sends its client_id alone"
    : `this client must authenticate with ${authenticationMethod}`;
}

/** Every way to present a proof; a call must use exactly one (RFC 6749 section 2.3), or name itself alone. */
const readers: readonly Reader[] = [readBasic, readPost, readKeyJwt];

function readPresented(call: ClientCall): Presented {
  refuseRepeated(call.form);
  let found: (() => Presented) | null = null;
  for (const read of readers) {
    const presented = read(call);
    if (presented === null) continue;
    if (found !== null)
      throw new OAuthProblem("invalid_request", "authenticate the client by one method only");
    found = presented;
  }
  if (found !== null) return found();
  const clientId = valueOf(call.form, "client_id");
  if (clientId === undefined)
    throw new OAuthProblem(
      "invalid_client",
      "the client did not authenticate, not even by client_id",
    );
  return { method: "none", clientId };
}

const memberNames = Object.keys(clientMembers);

/**
 * RFC 6749 section 3.2. Some routes accept any form, and {@link valueOf} would take a repeated value for an absent one.
 */
function refuseRepeated(form: Form): void {
  const repeated = memberNames.find((name) => Array.isArray(form[name]));
  if (repeated !== undefined)
    throw new OAuthProblem("invalid_request", `${repeated} is given more than once`);
}

/** RFC 6749 section 2.3.1: id and secret are form-encoded before they are joined. */
function formDecode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new OAuthProblem(
      "invalid_request",
      "id and secret must be form-encoded before they are joined for the Authorization header",
    );
  }
}

/**
 * Judges the proof by the client as remembered and, if that fails, as stored: its method, secret or keys may have
 * changed meanwhile. Only what fails both is refused, and may count as a guess.
 */
async function prove(
  ctx: TokenContext,
  remembered: Client,
  presented: Presented,
): Promise<AuthenticatedClient | Disproved> {
  const proved = await proveAs(ctx, remembered, presented);
  if (!("fault" in proved)) return proved;
  const client = await ctx.clients.findAnew(remembered.id);
  return client === null ? proved : proveAs(ctx, client, presented);
}

async function proveAs(
  ctx: TokenContext,
  client: Client,
  presented: Presented,
): Promise<AuthenticatedClient | Disproved> {
  if (client.authenticationMethod !== presented.method)
    return { fault: sayMethodOf(client), isGuess: false };
  if (presented.method === "none") return { client, isConfidential: false, oneTime: [] };
  if (presented.method === "private_key_jwt") {
    const proved = await checkAssertion(ctx, client, presented.assertion);
    return "fault" in proved ? proved : { client, isConfidential: true, oneTime: proved.oneTime };
  }
  return ctx.clients.verifySecret(client, presented.secret)
    ? { client, isConfidential: true, oneTime: [] }
    : { fault: "the client secret is wrong", isGuess: true };
}

function refuse(fault: string): never {
  throw new OAuthProblem("invalid_client", fault);
}
