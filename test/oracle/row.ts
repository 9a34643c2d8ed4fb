// What one row of the table says. Rows are data: a change to a good request, and what became of it.
import type { Scene } from "./scene.ts";

/**
 * The clients that both sides know, named after how they prove themselves; `other` is a second one with a secret, and
 * `pushing` one that demands pushed requests.
 */
export type ClientKind = "basic" | "post" | "key" | "browser" | "other" | "pushing";

/** Where a call goes, and which good request it starts from. */
export type Target =
  | "authorize"
  | "push"
  | "code"
  | "refresh"
  | "machine"
  | "userinfo"
  | "introspect"
  | "revoke";

/** A text, or one that only exists once the row runs. */
export type Text = string | ((scene: Scene) => string);

/** Parameters to replace, to repeat (a list) or to leave out (undefined). */
export type Changes = Readonly<Record<string, Text | readonly Text[] | undefined>>;

/** A change to a good JWT: members of header and claims; undefined leaves one out. */
export interface JwtChange {
  readonly header?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>> | ((scene: Scene) => Record<string, unknown>);
  /** Who signs; `public` misuses the public key as a shared secret, `nobody` signs nothing. */
  readonly signedBy?: "owner" | "stranger" | "public" | "nobody";
  /** A proof of a key that was not used before. */
  readonly isOtherKey?: boolean;
  /** Sends the JWT of the call before once more. */
  readonly isRepeated?: boolean;
  /** Sends this instead. */
  readonly text?: string;
}

export interface Call {
  readonly to: Target;
  readonly by?: ClientKind;
  readonly set?: Changes;
  readonly headers?: Readonly<Record<string, Text | undefined>>;
  readonly method?: "GET" | "POST";
  /** How the parameters travel; a form unless said otherwise. */
  readonly as?: "form" | "json" | "text" | "query";
  /** How the client proves itself, when not as registered. */
  readonly proof?: "basic" | "post" | "key" | "none";
  readonly assertion?: JwtChange;
  /** Adds a DPoP proof. */
  readonly dpop?: JwtChange;
}

export interface Row extends Omit<Call, "to"> {
  readonly name: string;
  /** The login that a code, tokens or a session of this row come from; by the row's own client unless said otherwise. */
  readonly login?: { readonly by?: ClientKind; readonly set?: Changes };
  /** Calls before the one that is judged; their outcomes do not matter. */
  readonly before?: readonly Call[];
  /** What oidc-provider makes of it. */
  readonly theirs: string;
  /** What this service makes of it, if that differs on purpose. */
  readonly ours?: string;
  /** Why it differs, with the clause. */
  readonly reason?: string;
}

/** Rows that start from the same good request. */
export interface Section {
  readonly title: string;
  readonly to: Target;
  readonly rows: readonly Row[];
}
