import { basic } from "./call.ts";
import { unchallenged, why } from "./reasons.ts";
import type { Row, Section } from "./row.ts";
import { clientOf, nowSeconds, type Scene } from "./scene.ts";

const good = "tokens: access";
const idOf = (scene: Scene): string => clientOf(scene, undefined).id;
const secretOf = (scene: Scene): string => clientOf(scene, undefined).secret;
const raw = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;

const secrets: readonly Row[] = [
  { name: "client_id in the body beside Basic", set: { client_id: idOf }, theirs: good },
  {
    name: "another client_id in the body beside Basic",
    set: { client_id: (scene) => clientOf(scene, "other").id },
    theirs: "400 invalid_request",
  },
  {
    name: "Basic in lower case",
    headers: {
      authorization: (scene) => basic(idOf(scene), secretOf(scene)).replace("Basic", "basic"),
    },
    theirs: good,
  },
  {
    name: "Basic with needless percent-encoding",
    headers: {
      authorization: (scene) => raw(`${idOf(scene).replaceAll("-", "%2D")}:${secretOf(scene)}`),
    },
    theirs: good,
  },
  {
    name: "Basic with a wrong secret",
    headers: { authorization: (scene) => basic(idOf(scene), "wrong") },
    theirs: "401 invalid_client",
  },
  {
    name: "Basic with the secret of another client",
    headers: { authorization: (scene) => basic(idOf(scene), clientOf(scene, "other").secret) },
    theirs: "401 invalid_client",
  },
  {
    name: "Basic with a secret cut short",
    headers: { authorization: (scene) => basic(idOf(scene), secretOf(scene).slice(0, -1)) },
    theirs: "401 invalid_client",
  },
  {
    name: "Basic with an empty secret",
    headers: { authorization: (scene) => basic(idOf(scene), "") },
    theirs: "400 invalid_request",
    ours: "401 invalid_client",
    reason: why.authenticationFailed,
  },
  {
    name: "Basic with an unknown client",
    headers: { authorization: basic("nobody", "nothing") },
    theirs: "401 invalid_client",
  },
  {
    name: "Basic with an empty client",
    headers: { authorization: basic("", "nothing") },
    theirs: "400 invalid_request",
    ours: "401 invalid_client",
    reason: why.authenticationFailed,
  },
  {
    name: "Basic that is not base64",
    headers: { authorization: "Basic %%%" },
    theirs: "400 invalid_request",
    ours: "401 invalid_client",
    reason: why.authenticationFailed,
  },
  {
    name: "Basic without a colon",
    headers: { authorization: raw("nobody") },
    theirs: "400 invalid_request",
    ours: "401 invalid_client",
    reason: why.authenticationFailed,
  },
  {
    name: "Basic with broken percent-encoding",
    headers: { authorization: (scene) => raw(`${idOf(scene)}:%zz`) },
    theirs: "400 invalid_request",
  },
  {
    name: "Basic without a value",
    headers: { authorization: "Basic" },
    theirs: "400 invalid_request",
    ours: "401 invalid_client",
    reason: why.authenticationFailed,
  },
  {
    name: "Authorization with another scheme",
    headers: { authorization: "Bearer token" },
    theirs: "400 invalid_request",
    ours: "401 invalid_client",
    reason: why.authenticationFailed,
  },
  {
    name: "secret in the body of a client for Basic",
    proof: "post",
    theirs: good,
    ours: "401 invalid_client",
    reason: why.registeredMethod,
  },
  {
    name: "Basic of a client for the body",
    by: "post",
    proof: "basic",
    theirs: good,
    ours: "401 invalid_client",
    reason: why.registeredMethod,
  },
  {
    name: "a wrong secret in the body",
    by: "post",
    set: { client_secret: "wrong" },
    ...unchallenged,
  },
  {
    name: "an empty secret in the body",
    by: "post",
    set: { client_secret: "" },
    ...unchallenged,
  },
  {
    name: "a secret in the body without client_id",
    by: "post",
    set: { client_id: undefined },
    theirs: "400 invalid_request",
  },
  {
    name: "secret parameter twice",
    by: "post",
    set: { client_secret: ["a", "b"] },
    theirs: "400 invalid_request",
  },
  {
    name: "Basic and secret in the body",
    set: { client_id: idOf, client_secret: secretOf },
    theirs: "400 invalid_request",
  },
  {
    name: "no client at all",
    headers: { authorization: undefined },
    theirs: "400 invalid_request",
    ours: "401 invalid_client",
    reason: why.authenticationFailed,
  },
  {
    name: "client_id alone of a client with a secret",
    proof: "none",
    ...unchallenged,
  },
  {
    name: "client_id unknown, nothing else",
    proof: "none",
    set: { client_id: "nobody" },
    ...unchallenged,
  },
  {
    name: "client_id twice",
    proof: "none",
    set: { client_id: ["a", "b"] },
    theirs: "400 invalid_request",
  },
  { name: "credentials in the query", by: "post", as: "query", theirs: "400 invalid_request" },
  {
    name: "Basic of a client with a key",
    by: "key",
    proof: "basic",
    headers: { authorization: (scene) => basic(idOf(scene), "guess") },
    theirs: "401 invalid_client",
  },
];

/** Rows of a browser-only client; a secret does not help it. */
const browser: readonly Row[] = [
  {
    name: "browser-only client with Basic",
    by: "browser",
    headers: { authorization: (scene) => basic(idOf(scene), "invented") },
    theirs: "401 invalid_client",
  },
  {
    name: "browser-only client with a secret in the body",
    by: "browser",
    set: { client_secret: "invented" },
    ...unchallenged,
  },
];

/** Of the client with a key, unless a row says otherwise. */
function byKey(row: Row): Row {
  return { by: "key", ...row };
}

const assertions: readonly Row[] = [
  { name: "client_id beside the assertion", set: { client_id: idOf }, theirs: good },
  {
    name: "another client_id beside the assertion",
    set: { client_id: (scene) => clientOf(scene, "other").id },
    theirs: "400 invalid_request",
  },
  {
    name: "an assertion and a secret",
    set: { client_secret: "invented" },
    theirs: "400 invalid_request",
  },
  {
    name: "an assertion and Basic",
    headers: {
      authorization: (scene) => basic(clientOf(scene, "basic").id, clientOf(scene, "basic").secret),
    },
    theirs: "400 invalid_request",
  },
  {
    name: "client_assertion_type missing",
    set: { client_assertion_type: undefined },
    theirs: "400 invalid_request",
  },
  {
    name: "client_assertion_type wrong",
    set: { client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:saml2-bearer" },
    theirs: "400 invalid_request",
  },
  {
    name: "client_assertion missing",
    set: { client_assertion: undefined },
    theirs: "400 invalid_request",
  },
  {
    name: "client_assertion garbage",
    set: { client_assertion: "garbage" },
    theirs: "400 invalid_request",
    ours: "401 invalid_client",
    reason: why.assertionInvalid,
  },
  {
    name: "client_assertion twice",
    set: { client_assertion: ["a", "b"] },
    theirs: "400 invalid_request",
  },
  {
    name: "aud is the token endpoint",
    assertion: { claims: ({ party }) => ({ aud: `${party.issuer}/oauth2/token` }) },
    theirs: good,
    ours: "401 invalid_client",
    reason: why.assertionAudience,
  },
  {
    name: "aud is a list with the issuer",
    assertion: { claims: ({ party }) => ({ aud: [party.issuer] }) },
    theirs: good,
    ours: "401 invalid_client",
    reason: why.assertionAudience,
  },
  {
    name: "aud is a list with the issuer and another server",
    assertion: { claims: ({ party }) => ({ aud: [party.issuer, "https://other.example"] }) },
    theirs: good,
    ours: "401 invalid_client",
    reason: why.assertionAudience,
  },
  {
    name: "aud is another server",
    assertion: { claims: { aud: "https://other.example" } },
    ...unchallenged,
  },
  { name: "aud missing", assertion: { claims: { aud: undefined } }, ...unchallenged },
  {
    name: "iss is another client",
    assertion: { claims: (scene) => ({ iss: clientOf(scene, "other").id }) },
    ...unchallenged,
  },
  { name: "sub unknown", assertion: { claims: { iss: "nobody", sub: "nobody" } }, ...unchallenged },
  { name: "sub missing", assertion: { claims: { sub: undefined } }, ...unchallenged },
  { name: "exp past", assertion: { claims: () => ({ exp: nowSeconds() - 60 }) }, ...unchallenged },
  { name: "exp missing", assertion: { claims: { exp: undefined } }, ...unchallenged },
  {
    name: "exp a day ahead",
    assertion: { claims: () => ({ exp: nowSeconds() + 86_400 }) },
    theirs: good,
    ours: "401 invalid_client",
    reason: why.assertionTimes,
  },
  {
    name: "nbf an hour ahead",
    assertion: { claims: () => ({ nbf: nowSeconds() + 3600 }) },
    ...unchallenged,
  },
  {
    name: "iat an hour ahead",
    assertion: { claims: () => ({ iat: nowSeconds() + 3600 }) },
    theirs: "tokens: access",
    ours: "401 invalid_client",
    reason: why.assertionTimes,
  },
  { name: "nbf null", assertion: { claims: { nbf: null } }, ...unchallenged },
  {
    name: "iat a text",
    assertion: { claims: () => ({ iat: String(nowSeconds()) }) },
    ...unchallenged,
  },
  { name: "jti missing", assertion: { claims: { jti: undefined } }, ...unchallenged },
  {
    name: "an assertion a second time",
    before: [{ to: "machine" }],
    assertion: { isRepeated: true },
    ...unchallenged,
  },
  { name: "signed by somebody else", assertion: { signedBy: "stranger" }, ...unchallenged },
  { name: "alg none", assertion: { header: { alg: "none" }, signedBy: "nobody" }, ...unchallenged },
  {
    name: "alg HS256 with the public key as secret",
    assertion: { header: { alg: "HS256" }, signedBy: "public" },
    ...unchallenged,
  },
  { name: "alg of another kind of key", assertion: { header: { alg: "RS256" } }, ...unchallenged },
  { name: "kid unknown", assertion: { header: { kid: "other" } }, ...unchallenged },
  { name: "kid missing", assertion: { header: { kid: undefined } }, theirs: good },
  { name: "an assertion of a client for Basic", by: "basic", proof: "key", ...unchallenged },
];

export const clientSections: readonly Section[] = [
  { title: "Client authentication by secret", to: "machine", rows: secrets },
  { title: "Client authentication of browser-only clients", to: "code", rows: browser },
  {
    title: "Client authentication by assertion",
    to: "machine",
    rows: assertions.map(byKey),
  },
];
