import { createHash, generateKeyPairSync } from "node:crypto";
import { why } from "./reasons.ts";
import type { Row, Section } from "./row.ts";
import { nowSeconds } from "./scene.ts";

const bound = "bound tokens: access, id, refresh";
const refused = "400 invalid_dpop_proof";
const privateJwk = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({
  format: "jwk",
});

const code: readonly Row[] = [
  { name: "a code with a proof", dpop: {}, theirs: bound },
  { name: "a code with a proof, browser-only client", by: "browser", dpop: {}, theirs: bound },
  { name: "a proof that is no JWT", dpop: { text: "garbage" }, theirs: refused },
  { name: "two proofs", headers: { dpop: "a.b.c, d.e.f" }, theirs: refused },
  { name: "typ JWT", dpop: { header: { typ: "JWT" } }, theirs: refused },
  { name: "typ missing", dpop: { header: { typ: undefined } }, theirs: refused },
  { name: "alg none", dpop: { header: { alg: "none" }, signedBy: "nobody" }, theirs: refused },
  { name: "alg HS256", dpop: { header: { alg: "HS256" }, signedBy: "public" }, theirs: refused },
  { name: "jwk missing", dpop: { header: { jwk: undefined } }, theirs: refused },
  { name: "jwk with the private key", dpop: { header: { jwk: privateJwk } }, theirs: refused },
  { name: "signed by another key", dpop: { signedBy: "stranger" }, theirs: refused },
  { name: "htm GET", dpop: { claims: { htm: "GET" } }, theirs: refused },
  { name: "htm missing", dpop: { claims: { htm: undefined } }, theirs: refused },
  {
    name: "htu of another server",
    dpop: { claims: { htu: "https://other.example/oauth2/token" } },
    theirs: refused,
  },
  {
    name: "htu of another endpoint",
    dpop: { claims: ({ party }) => ({ htu: `${party.issuer}/userinfo` }) },
    theirs: refused,
  },
  {
    name: "htu with query and fragment",
    dpop: { claims: ({ party }) => ({ htu: `${party.issuer}/oauth2/token?a=1#b` }) },
    theirs: bound,
  },
  {
    name: "htu with a user name",
    dpop: {
      claims: ({ party }) => ({ htu: `${party.issuer.replace("://", "://a@")}/oauth2/token` }),
    },
    theirs: refused,
  },
  {
    name: "htu with upper-case scheme and host",
    dpop: { claims: ({ party }) => ({ htu: `${party.issuer.toUpperCase()}/oauth2/token` }) },
    theirs: bound,
  },
  {
    name: "iat ten minutes old",
    dpop: { claims: () => ({ iat: nowSeconds() - 600 }) },
    theirs: refused,
  },
  {
    name: "iat two minutes old",
    dpop: { claims: () => ({ iat: nowSeconds() - 120 }) },
    theirs: bound,
    ours: "400 invalid_dpop_proof",
    reason: why.dpopWindow,
  },
  {
    name: "iat ten minutes ahead",
    dpop: { claims: () => ({ iat: nowSeconds() + 600 }) },
    theirs: refused,
  },
  { name: "iat missing", dpop: { claims: { iat: undefined } }, theirs: refused },
  { name: "jti missing", dpop: { claims: { jti: undefined } }, theirs: refused },
  {
    name: "a proof a second time",
    before: [{ to: "machine", dpop: {} }],
    dpop: { isRepeated: true },
    theirs: "400 invalid_grant",
    ours: "400 invalid_dpop_proof",
    reason: why.dpopReplay,
  },
  {
    name: "dpop_jkt of another key",
    login: { set: { dpop_jkt: "d".repeat(43) } },
    dpop: {},
    theirs: "400 invalid_grant",
  },
  {
    name: "dpop_jkt, but no proof",
    login: { set: { dpop_jkt: "d".repeat(43) } },
    theirs: "400 invalid_grant",
  },
];

const machine: readonly Row[] = [
  { name: "client_credentials with a proof", dpop: {}, theirs: "bound tokens: access" },
];

const binding = [{ to: "code", dpop: {} }] as const;

const refresh: readonly Row[] = [
  {
    name: "a bound refresh token with a proof of its key",
    by: "browser",
    login: {},
    before: binding,
    dpop: {},
    theirs: bound,
  },
  {
    name: "a bound refresh token without a proof, browser-only client",
    by: "browser",
    login: {},
    before: binding,
    theirs: "400 invalid_grant",
  },
  {
    name: "a bound refresh token with another key, browser-only client",
    by: "browser",
    login: {},
    before: binding,
    dpop: { isOtherKey: true },
    theirs: "400 invalid_grant",
  },
  {
    name: "a bound refresh token without a proof, client with a secret",
    login: {},
    before: binding,
    theirs: "tokens: access, id, refresh",
    ours: "400 invalid_grant",
    reason: why.dpopKept,
  },
];

const userinfo: readonly Row[] = [
  { name: "a bound token with its proof", login: {}, before: binding, dpop: {}, theirs: "claims" },
  { name: "a bound token as Bearer", login: {}, before: binding, theirs: "401 invalid_token" },
  {
    name: "a bound token without a proof",
    login: {},
    before: binding,
    headers: { authorization: ({ tokens }) => `DPoP ${tokens[0]?.access_token ?? ""}` },
    theirs: "400 invalid_request",
    ours: "401 invalid_dpop_proof",
    reason: why.dpopAtResource,
  },
  {
    name: "a bound token with another key",
    login: {},
    before: binding,
    dpop: { isOtherKey: true },
    theirs: "401 invalid_token",
  },
  {
    name: "ath missing",
    login: {},
    before: binding,
    dpop: { claims: { ath: undefined } },
    theirs: "401 invalid_dpop_proof",
  },
  {
    name: "ath of another token",
    login: {},
    before: binding,
    dpop: { claims: { ath: createHash("sha256").update("other").digest("base64url") } },
    theirs: "401 invalid_dpop_proof",
  },
  {
    name: "a proof for POST",
    login: {},
    before: binding,
    dpop: { claims: { htm: "POST" } },
    theirs: "401 invalid_dpop_proof",
  },
  {
    name: "a proof a second time",
    login: {},
    before: [...binding, { to: "userinfo", dpop: {} }],
    dpop: { isRepeated: true },
    theirs: "401 invalid_token",
    ours: "401 invalid_dpop_proof",
    reason: why.dpopAtResource,
  },
  {
    name: "a Bearer token with the scheme DPoP and a proof",
    dpop: {},
    theirs: "401 invalid_token",
  },
];

export const dpopSections: readonly Section[] = [
  { title: "DPoP: tokens for a code", to: "code", rows: code },
  { title: "DPoP: client credentials", to: "machine", rows: machine },
  { title: "DPoP: refresh", to: "refresh", rows: refresh },
  { title: "DPoP: userinfo", to: "userinfo", rows: userinfo },
];
