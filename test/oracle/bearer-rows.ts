import { audience } from "./party.ts";
import { why } from "./reasons.ts";
import type { Row, Section } from "./row.ts";
import { clientOf, type Scene, tokenOf } from "./scene.ts";

const none = { authorization: undefined };
const access = (scene: Scene): string => tokenOf(scene, "access_token");
const refresh = (scene: Scene): string => tokenOf(scene, "refresh_token");
const rejected = "401 invalid_token";

const userinfo: readonly Row[] = [
  { name: "Bearer by GET", theirs: "claims" },
  { name: "Bearer by POST", method: "POST", theirs: "claims" },
  {
    name: "Bearer in lower case",
    headers: { authorization: (scene) => `bearer ${access(scene)}` },
    theirs: "claims",
  },
  {
    name: "access_token in the body",
    method: "POST",
    headers: none,
    set: { access_token: access },
    theirs: "claims",
  },
  {
    name: "access_token in the query",
    headers: none,
    set: { access_token: access },
    theirs: "400 invalid_request",
    ours: "401 invalid_token",
    reason: why.noToken,
  },
  {
    name: "access_token in header and body",
    method: "POST",
    set: { access_token: access },
    theirs: "400 invalid_request",
  },
  {
    name: "access_token in header and query",
    set: { access_token: access },
    theirs: "400 invalid_request",
  },
  { name: "no token", headers: none, theirs: rejected },
  {
    name: "Bearer without a token",
    headers: { authorization: "Bearer" },
    theirs: "400 invalid_request",
    ours: "401 invalid_token",
    reason: why.noToken,
  },
  {
    name: "Basic instead of Bearer",
    headers: { authorization: "Basic YTpi" },
    theirs: "400 invalid_request",
    ours: "401 invalid_token",
    reason: why.noToken,
  },
  { name: "garbage", headers: { authorization: "Bearer garbage" }, theirs: rejected },
  {
    name: "an access token with one character changed",
    headers: { authorization: (scene) => `Bearer ${access(scene).slice(0, -9)}AAAAAAAAA` },
    theirs: rejected,
  },
  {
    name: "an id token",
    headers: { authorization: (scene) => `Bearer ${tokenOf(scene, "id_token")}` },
    theirs: rejected,
  },
  {
    name: "a refresh token",
    headers: { authorization: (scene) => `Bearer ${refresh(scene)}` },
    theirs: rejected,
  },
  { name: "a code", headers: { authorization: ({ code }) => `Bearer ${code}` }, theirs: rejected },
  {
    name: "a token of client_credentials",
    login: {},
    before: [{ to: "machine" }],
    theirs: rejected,
    ours: "403 insufficient_scope",
    reason: why.userOnly,
  },
  {
    name: "a token without openid",
    login: { set: { scope: "offline_access" } },
    theirs: "403 insufficient_scope",
  },
  {
    name: "a token of a refresh without openid",
    before: [{ to: "refresh", set: { scope: "offline_access" } }],
    theirs: "403 insufficient_scope",
  },
  {
    name: "a token for a resource",
    login: { set: { resource: audience } },
    before: [{ to: "code", set: { resource: audience } }],
    theirs: rejected,
    ours: "claims",
    reason: why.audienceAndUserinfo,
  },
  { name: "a token that was revoked", before: [{ to: "revoke" }], theirs: rejected },
  {
    name: "a token whose refresh token was revoked",
    before: [{ to: "revoke", set: { token: refresh } }],
    theirs: rejected,
  },
  {
    name: "a token whose code came again",
    before: [{ to: "refresh" }, { to: "code" }],
    theirs: rejected,
  },
];

const introspect: readonly Row[] = [
  { name: "an access token of one's own", theirs: "active" },
  { name: "a refresh token of one's own", set: { token: refresh }, theirs: "active" },
  { name: "an access token, with an assertion", by: "key", theirs: "active" },
  {
    name: "an access token, hinted as refresh token",
    set: { token_type_hint: "refresh_token" },
    theirs: "active",
  },
  {
    name: "an access token, hinted as something unknown",
    set: { token_type_hint: "pebble" },
    theirs: "active",
  },
  { name: "garbage", set: { token: "garbage" }, theirs: "inactive" },
  {
    name: "an id token",
    set: { token: (scene) => tokenOf(scene, "id_token") },
    theirs: "400 unsupported_token_type",
    ours: "inactive",
    reason: why.introspectUnknown,
  },
  { name: "a code", set: { token: ({ code }) => code }, theirs: "inactive" },
  {
    name: "an access token of another client",
    by: "other",
    login: { by: "basic" },
    theirs: "active",
    ours: "inactive",
    reason: why.introspectOwn,
  },
  {
    name: "a refresh token of another client",
    by: "other",
    login: { by: "basic" },
    set: { token: refresh },
    theirs: "active",
    ours: "inactive",
    reason: why.introspectOwn,
  },
  {
    name: "an access token of another client for a resource of one's own",
    by: "other",
    login: { by: "basic", set: { resource: audience } },
    theirs: "active",
  },
  {
    name: "an access token, browser-only client",
    by: "browser",
    theirs: "active",
    ours: "401 invalid_client",
    reason: why.introspectConfidential,
  },
  {
    name: "a rotated refresh token",
    before: [{ to: "refresh" }],
    set: { token: (scene) => tokenOf(scene, "refresh_token", 0) },
    theirs: "inactive",
  },
  { name: "a token that was revoked", before: [{ to: "revoke" }], theirs: "inactive" },
  {
    name: "a token of client_credentials",
    login: {},
    before: [{ to: "machine" }],
    theirs: "active",
  },
  { name: "token missing", set: { token: undefined }, theirs: "400 invalid_request" },
  { name: "token twice", set: { token: ["a", "b"] }, theirs: "400 invalid_request" },
  {
    name: "no authentication",
    headers: none,
    theirs: "400 invalid_request",
    ours: "401 invalid_client",
    reason: why.authenticationFailed,
  },
  {
    name: "a wrong secret",
    headers: { authorization: `Basic ${btoa("nobody:nothing")}` },
    theirs: "401 invalid_client",
  },
  {
    name: "an access token as authentication",
    headers: { authorization: (scene) => `Bearer ${access(scene)}` },
    theirs: "400 invalid_request",
    ours: "401 invalid_client",
    reason: why.authenticationFailed,
  },
  { name: "as JSON", as: "json", theirs: "400 invalid_request" },
];

const revoke: readonly Row[] = [
  { name: "an access token of one's own", theirs: "revoked" },
  { name: "a refresh token of one's own", set: { token: refresh }, theirs: "revoked" },
  {
    name: "a refresh token, browser-only client",
    by: "browser",
    set: { token: refresh },
    theirs: "revoked",
  },
  {
    name: "a refresh token, hinted as access token",
    set: { token: refresh, token_type_hint: "access_token" },
    theirs: "revoked",
  },
  { name: "garbage", set: { token: "garbage" }, theirs: "revoked" },
  { name: "the same token twice", before: [{ to: "revoke" }], theirs: "revoked" },
  {
    name: "an access token of another client",
    by: "other",
    login: { by: "basic" },
    theirs: "400 invalid_request",
    ours: "revoked",
    reason: why.revokeSilent,
  },
  {
    name: "a refresh token of another client",
    by: "other",
    login: { by: "basic" },
    set: { token: refresh },
    theirs: "400 invalid_request",
    ours: "revoked",
    reason: why.revokeSilent,
  },
  {
    name: "a refresh token of another client, browser-only client",
    by: "browser",
    login: { by: "basic" },
    set: { token: refresh },
    theirs: "revoked",
  },
  { name: "token missing", set: { token: undefined }, theirs: "400 invalid_request" },
  { name: "token parameter twice", set: { token: ["a", "b"] }, theirs: "400 invalid_request" },
  {
    name: "no authentication",
    headers: none,
    theirs: "400 invalid_request",
    ours: "401 invalid_client",
    reason: why.authenticationFailed,
  },
  {
    name: "another client_id in the body",
    set: { client_id: (scene) => clientOf(scene, "other").id },
    theirs: "400 invalid_request",
  },
  { name: "as JSON", as: "json", theirs: "400 invalid_request" },
];

const revoked: readonly Row[] = [
  {
    name: "a refresh token that was revoked",
    before: [{ to: "revoke", set: { token: refresh } }],
    theirs: "400 invalid_grant",
  },
  {
    name: "a refresh token whose access token was revoked",
    before: [{ to: "revoke" }],
    theirs: "400 invalid_grant",
  },
  {
    name: "a refresh token that another client tried to revoke",
    before: [{ to: "revoke", by: "other", set: { token: refresh } }],
    theirs: "tokens: access, id, refresh",
  },
  {
    name: "a refresh token whose predecessor was revoked",
    before: [
      { to: "refresh" },
      { to: "revoke", set: { token: (scene) => tokenOf(scene, "refresh_token", 0) } },
    ],
    theirs: "400 invalid_grant",
  },
];

export const bearerSections: readonly Section[] = [
  { title: "Userinfo", to: "userinfo", rows: userinfo },
  { title: "Introspection", to: "introspect", rows: introspect },
  { title: "Revocation", to: "revoke", rows: revoke },
  { title: "Refresh after revocation", to: "refresh", rows: revoked },
];
