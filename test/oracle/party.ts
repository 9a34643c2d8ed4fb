import type { KeyObject } from "node:crypto";
import type { Jar } from "../cookie-jar.ts";
import type { ClientKind } from "./row.ts";

export interface OracleClient {
  readonly id: string;
  /** Empty for a client without one. */
  readonly secret: string;
}

/** Key of the client that proves itself by assertions. */
export interface ClientKey {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly kid: string;
}

/** One of the two servers that are asked the same. */
export interface Party extends AsyncDisposable {
  readonly issuer: string;
  readonly clients: Readonly<Record<ClientKind, OracleClient>>;
  readonly key: ClientKey;
  /** Whether this answer of the authorization endpoint asks the user to log in. */
  isPage(response: Response, html: string): boolean;
  /** Logs the user in from that answer on; resolves to where the browser ends: the redirect URI with a code. */
  approve(jar: Jar, page: Response, html: string): Promise<URL>;
}

export const callback = "http://localhost:4999/callback";
export const callbackWithQuery = "http://localhost:4999/callback?shop=1";
export const redirectUris = [callback, callbackWithQuery];
export const audience = "https://api.example.com";
export const otherAudience = "https://files.example.com";
export const audiences = [audience, otherAudience];
