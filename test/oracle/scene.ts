// The state of a row while it runs: a browser, its login, and the tokens that came of it.
import { randomUUID } from "node:crypto";
import { type Jar, openJar } from "../cookie-jar.ts";
import { makePkce, type Pkce } from "../login-flow.ts";
import { newKey } from "./jwt.ts";
import { type ClientKey, type OracleClient, callback, type Party } from "./party.ts";
import type { ClientKind, Row } from "./row.ts";

export interface GivenTokens {
  readonly access_token: string;
  readonly id_token?: string;
  readonly refresh_token?: string;
}

export interface Scene {
  readonly party: Party;
  readonly row: Row;
  readonly jar: Jar;
  readonly pkce: Pkce;
  /** Key of the DPoP proofs. */
  readonly key: ClientKey;
  /** Each scene has an address of its own, so that no row uses up the limits of another. */
  readonly address: string;
  code: string;
  /** Newest last. */
  readonly tokens: GivenTokens[];
  requestUri: string;
  /** What was last sent as proof, to be sent again. */
  lastAssertion: string;
  lastProof: string;
}

let opened = 0;

export function openScene(party: Party, row: Row): Scene {
  opened += 1;
  return {
    party,
    row,
    jar: openJar(),
    pkce: makePkce(),
    key: newKey(),
    address: `198.18.${opened >> 8}.${opened & 255}`,
    code: "",
    tokens: [],
    requestUri: "",
    lastAssertion: "",
    lastProof: "",
  };
}

export function clientOf(scene: Scene, kind: ClientKind | undefined): OracleClient {
  return scene.party.clients[kind ?? scene.row.by ?? "basic"];
}

/** A token of the latest answer, or of the one at `index`; empty when it was not given. */
export function tokenOf(scene: Scene, name: keyof GivenTokens, index = -1): string {
  return scene.tokens.at(index)?.[name] ?? "";
}

/** The document's authorization request (service.md, OAuth 2.0 / OIDC). */
export function goodRequest(scene: Scene, client: OracleClient): Record<string, string> {
  return {
    client_id: client.id,
    redirect_uri: callback,
    response_type: "code",
    scope: "openid offline offline_access",
    state: "state-of-the-browser",
    code_challenge: scene.pkce.challenge,
    code_challenge_method: "S256",
    prompt: "consent",
    access_type: "offline",
  };
}

export function newJti(): string {
  return randomUUID();
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
