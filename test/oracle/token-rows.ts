import { audience, callbackWithQuery, otherAudience } from "./party.ts";
import { why } from "./reasons.ts";
import type { Row, Section } from "./row.ts";
import { tokenOf } from "./scene.ts";

const code: readonly Row[] = [
  { name: "a code, with Basic", theirs: "tokens: access, id, refresh" },
  {
    name: "a code, with the secret in the body",
    by: "post",
    theirs: "tokens: access, id, refresh",
  },
  { name: "a code, with an assertion", by: "key", theirs: "tokens: access, id, refresh" },
  { name: "a code, browser-only client", by: "browser", theirs: "tokens: access, id, refresh" },
  {
    name: "a code for openid alone",
    login: { set: { scope: "openid" } },
    theirs: "tokens: access, id",
  },
  {
    name: "a code for openid and offline_access",
    login: { set: { scope: "openid offline_access" } },
    theirs: "tokens: access, id, refresh",
  },
  {
    name: "a code for openid and offline",
    login: { set: { scope: "openid offline" } },
    theirs: "tokens: access, id",
    ours: "tokens: access, id, refresh",
    reason: why.offlineAlias,
  },
  {
    name: "a code for offline_access alone",
    login: { set: { scope: "offline_access" } },
    theirs: "tokens: access, refresh",
  },
  {
    name: "a code that was asked for without prompt",
    login: { set: { prompt: undefined } },
    theirs: "tokens: access, id",
    ours: "tokens: access, id, refresh",
    reason: why.offlinePrompt,
  },
  {
    name: "a code from a pushed request",
    before: [],
    login: {},
    theirs: "tokens: access, id, refresh",
  },
  { name: "an unknown parameter", set: { shoe_size: "44" }, theirs: "tokens: access, id, refresh" },
  {
    name: "scope beside a code",
    set: { scope: "everything" },
    theirs: "tokens: access, id, refresh",
  },
  { name: "code missing", set: { code: undefined }, theirs: "400 invalid_request" },
  { name: "code empty", set: { code: "" }, theirs: "400 invalid_request" },
  { name: "code unknown", set: { code: "unknown" }, theirs: "400 invalid_grant" },
  {
    name: "code of 5000 characters",
    set: { code: "c".repeat(5000) },
    theirs: "400 invalid_grant",
    ours: "400 invalid_request",
    reason: why.bounded,
  },
  {
    name: "code parameter twice",
    set: { code: [({ code: given }) => given, "unknown"] },
    theirs: "400 invalid_request",
  },
  { name: "a code a second time", before: [{ to: "code" }], theirs: "400 invalid_grant" },
  {
    name: "a code of another client",
    by: "other",
    login: { by: "basic" },
    theirs: "400 invalid_grant",
  },
  {
    name: "a code after another client failed with it",
    before: [{ to: "code", by: "other" }],
    theirs: "tokens: access, id, refresh",
  },
  { name: "redirect_uri missing", set: { redirect_uri: undefined }, theirs: "400 invalid_request" },
  {
    name: "redirect_uri wrong",
    set: { redirect_uri: "https://evil.example/" },
    theirs: "400 invalid_grant",
  },
  {
    name: "redirect_uri the other registered one",
    set: { redirect_uri: callbackWithQuery },
    theirs: "400 invalid_grant",
  },
  { name: "redirect_uri twice", set: { redirect_uri: ["a", "b"] }, theirs: "400 invalid_request" },
  { name: "code_verifier missing", set: { code_verifier: undefined }, theirs: "400 invalid_grant" },
  { name: "code_verifier empty", set: { code_verifier: "" }, theirs: "400 invalid_grant" },
  {
    name: "code_verifier wrong",
    set: { code_verifier: "w".repeat(43) },
    theirs: "400 invalid_grant",
  },
  {
    name: "code_verifier wrong, browser-only client",
    by: "browser",
    set: { code_verifier: "w".repeat(43) },
    theirs: "400 invalid_grant",
  },
  {
    name: "code_verifier is the challenge",
    set: { code_verifier: ({ pkce }) => pkce.challenge },
    theirs: "400 invalid_grant",
  },
  {
    name: "code_verifier of 42 characters",
    set: { code_verifier: "w".repeat(42) },
    theirs: "400 invalid_request",
  },
  {
    name: "code_verifier of 129 characters",
    set: { code_verifier: "w".repeat(129) },
    theirs: "400 invalid_request",
  },
  {
    name: "code_verifier outside its alphabet",
    set: { code_verifier: `${"w".repeat(43)}!` },
    theirs: "400 invalid_request",
  },
  {
    name: "a code after a wrong code_verifier",
    before: [{ to: "code", set: { code_verifier: "w".repeat(43) } }],
    theirs: "tokens: access, id, refresh",
  },
];

const transport: readonly Row[] = [
  { name: "grant_type missing", set: { grant_type: undefined }, theirs: "400 invalid_request" },
  {
    name: "grant_type twice",
    set: { grant_type: ["authorization_code", "refresh_token"] },
    theirs: "400 invalid_request",
  },
  { name: "grant_type unknown", set: { grant_type: "wish" }, theirs: "400 unsupported_grant_type" },
  {
    name: "grant_type password",
    set: { grant_type: "password", username: "a", password: "b" },
    theirs: "400 unsupported_grant_type",
  },
  {
    name: "grant_type implicit",
    set: { grant_type: "implicit" },
    theirs: "400 unsupported_grant_type",
  },
  {
    name: "grant_type in upper case",
    set: { grant_type: "AUTHORIZATION_CODE" },
    theirs: "400 unsupported_grant_type",
  },
  { name: "token request as JSON", as: "json", theirs: "400 invalid_request" },
  { name: "token request as plain text", as: "text", theirs: "400 invalid_request" },
  { name: "token request in the query", as: "query", theirs: "400 invalid_request" },
  {
    name: "an unknown parameter twice",
    set: { shoe_size: ["44", "45"] },
    theirs: "tokens: access, id, refresh",
  },
];

const target: readonly Row[] = [
  {
    name: "a code for a resource",
    login: { set: { resource: audience } },
    theirs: "tokens: access, id, refresh",
  },
  {
    name: "a code for a resource, which is named again",
    login: { set: { resource: audience } },
    set: { resource: audience },
    theirs: "tokens: access, id, refresh",
  },
  {
    name: "a code for a resource, another named",
    login: { set: { resource: audience } },
    set: { resource: otherAudience },
    theirs: "400 invalid_target",
  },
  {
    name: "a code for a resource, an unknown one named",
    login: { set: { resource: audience } },
    set: { resource: "https://nobody.example" },
    theirs: "400 invalid_target",
  },
  {
    name: "a code for no resource, one named",
    set: { resource: audience },
    theirs: "400 invalid_target",
  },
  {
    name: "a code for a resource, two named",
    login: { set: { resource: audience } },
    set: { resource: [audience, otherAudience] },
    theirs: "400 invalid_target",
  },
];

const refresh: readonly Row[] = [
  { name: "a refresh token", theirs: "tokens: access, id, refresh" },
  {
    name: "a refresh token, with the secret in the body",
    by: "post",
    theirs: "tokens: access, id, refresh",
  },
  { name: "a refresh token, with an assertion", by: "key", theirs: "tokens: access, id, refresh" },
  {
    name: "a refresh token, browser-only client",
    by: "browser",
    theirs: "tokens: access, id, refresh",
  },
  {
    name: "the refresh token of a refresh",
    before: [{ to: "refresh" }],
    theirs: "tokens: access, id, refresh",
  },
  {
    name: "refresh_token missing",
    set: { refresh_token: undefined },
    theirs: "400 invalid_request",
  },
  { name: "refresh_token garbage", set: { refresh_token: "garbage" }, theirs: "400 invalid_grant" },
  {
    name: "refresh_token twice",
    set: { refresh_token: ["a", "b"] },
    theirs: "400 invalid_request",
  },
  {
    name: "an access token as refresh token",
    set: { refresh_token: (scene) => tokenOf(scene, "access_token") },
    theirs: "400 invalid_grant",
  },
  {
    name: "a refresh token of another client",
    by: "other",
    login: { by: "basic" },
    theirs: "400 invalid_grant",
  },
  {
    name: "a refresh token after another client failed with it",
    before: [{ to: "refresh" }, { to: "refresh", by: "other" }],
    theirs: "tokens: access, id, refresh",
  },
  {
    name: "the last refresh token again within seconds",
    before: [{ to: "refresh" }],
    set: { refresh_token: (scene) => tokenOf(scene, "refresh_token", 0) },
    theirs: "400 invalid_grant",
    ours: "tokens: access, id, refresh",
    reason: why.refreshGrace,
  },
  {
    name: "an older refresh token again",
    before: [{ to: "refresh" }, { to: "refresh" }],
    set: { refresh_token: (scene) => tokenOf(scene, "refresh_token", 0) },
    theirs: "400 invalid_grant",
  },
  {
    name: "the newest refresh token after an older one came again",
    before: [
      { to: "refresh" },
      { to: "refresh" },
      { to: "refresh", set: { refresh_token: (scene) => tokenOf(scene, "refresh_token", 0) } },
    ],
    theirs: "400 invalid_grant",
  },
  {
    name: "the refresh token of a code that came again",
    before: [{ to: "refresh" }, { to: "code" }],
    theirs: "400 invalid_grant",
  },
  {
    name: "the refresh token of a code that came again with a wrong verifier",
    before: [{ to: "refresh" }, { to: "code", set: { code_verifier: "w".repeat(43) } }],
    theirs: "tokens: access, id, refresh",
  },
  {
    name: "the refresh token of a code that came again from another client",
    before: [{ to: "refresh" }, { to: "code", by: "other" }],
    theirs: "tokens: access, id, refresh",
  },
  { name: "a narrower scope", set: { scope: "openid" }, theirs: "tokens: access, id, refresh" },
  {
    name: "the same scope",
    set: { scope: "openid offline offline_access" },
    theirs: "tokens: access, id, refresh",
  },
  {
    name: "a narrower scope without openid",
    set: { scope: "offline_access" },
    theirs: "tokens: access, refresh",
  },
  {
    name: "a wider scope",
    login: { set: { scope: "openid offline_access" } },
    set: { scope: "openid offline offline_access" },
    theirs: "400 invalid_scope",
  },
  { name: "an unknown scope", set: { scope: "openid everything" }, theirs: "400 invalid_scope" },
  {
    name: "the granted scope after a narrower one",
    before: [{ to: "refresh", set: { scope: "openid" } }],
    set: { scope: "openid offline" },
    theirs: "tokens: access, id, refresh",
  },
  {
    name: "a refresh token for a resource",
    login: { set: { resource: audience } },
    set: { resource: audience },
    theirs: "tokens: access, id, refresh",
  },
  {
    name: "a refresh token for a resource, another named",
    login: { set: { resource: audience } },
    set: { resource: otherAudience },
    theirs: "400 invalid_target",
  },
];

const machine: readonly Row[] = [
  { name: "client_credentials with Basic", theirs: "tokens: access" },
  { name: "client_credentials with the secret in the body", by: "post", theirs: "tokens: access" },
  { name: "client_credentials with an assertion", by: "key", theirs: "tokens: access" },
  {
    name: "client_credentials, browser-only client",
    by: "browser",
    theirs: "400 invalid_request",
    ours: "400 unauthorized_client",
    reason: why.machineBrowser,
  },
  {
    name: "client_credentials with an unknown scope",
    set: { scope: "everything" },
    theirs: "tokens: access",
    ours: "400 invalid_scope",
    reason: why.machineScope,
  },
  {
    name: "client_credentials with openid",
    set: { scope: "openid" },
    theirs: "tokens: access",
    ours: "400 invalid_scope",
    reason: why.machineScope,
  },
  {
    name: "client_credentials for a resource",
    set: { resource: audience },
    theirs: "tokens: access",
  },
  {
    name: "client_credentials for an unknown resource",
    set: { resource: "https://nobody.example" },
    theirs: "400 invalid_target",
  },
  {
    name: "client_credentials for two resources",
    set: { resource: [audience, otherAudience] },
    theirs: "400 invalid_target",
  },
  { name: "client_credentials with a code", set: { code: "unused" }, theirs: "tokens: access" },
];

export const tokenSections: readonly Section[] = [
  { title: "Tokens for a code", to: "code", rows: code },
  { title: "Token requests: grant and transport", to: "code", rows: transport },
  { title: "Tokens for a code: resource", to: "code", rows: target },
  { title: "Refresh", to: "refresh", rows: refresh },
  { title: "Client credentials", to: "machine", rows: machine },
];
