import { callback, callbackWithQuery } from "./party.ts";
import { why } from "./reasons.ts";
import type { Row, Section } from "./row.ts";
import { clientOf } from "./scene.ts";

const client: readonly Row[] = [
  { name: "the document's request", theirs: "page" },
  { name: "the document's request as a form", method: "POST", theirs: "page" },
  { name: "as JSON", method: "POST", as: "json", theirs: "error page" },
  { name: "as plain text", method: "POST", as: "text", theirs: "error page" },
  { name: "a browser-only client", by: "browser", theirs: "page" },
  { name: "client_id missing", set: { client_id: undefined }, theirs: "error page" },
  { name: "client_id empty", set: { client_id: "" }, theirs: "error page" },
  { name: "client_id unknown", set: { client_id: "nobody" }, theirs: "error page" },
  {
    name: "client_id of 5000 characters",
    set: { client_id: "c".repeat(5000) },
    theirs: "error page",
  },
  {
    name: "client_id twice",
    set: {
      client_id: [(scene) => clientOf(scene, "basic").id, (scene) => clientOf(scene, "other").id],
    },
    theirs: "error page",
  },
  { name: "an unknown parameter", set: { shoe_size: "44" }, theirs: "page" },
  { name: "an unknown parameter twice", set: { shoe_size: ["44", "45"] }, theirs: "page" },
];

const redirectUri: readonly Row[] = [
  { name: "redirect_uri missing", set: { redirect_uri: undefined }, theirs: "error page" },
  { name: "redirect_uri empty", set: { redirect_uri: "" }, theirs: "error page" },
  { name: "redirect_uri twice", set: { redirect_uri: [callback, callback] }, theirs: "error page" },
  {
    name: "the second registered redirect_uri, which has a query",
    set: { redirect_uri: callbackWithQuery },
    theirs: "page",
  },
  {
    name: "an error goes to a redirect_uri with a query without losing it",
    set: { redirect_uri: callbackWithQuery, resource: "https://nobody.example" },
    theirs: "redirect invalid_target",
  },
  {
    name: "redirect_uri on another host",
    set: { redirect_uri: "https://evil.example/callback" },
    theirs: "error page",
  },
  {
    name: "redirect_uri with another path",
    set: { redirect_uri: "http://localhost:4999/other" },
    theirs: "error page",
  },
  {
    name: "redirect_uri below the registered one",
    set: { redirect_uri: `${callback}/deeper` },
    theirs: "error page",
  },
  {
    name: "redirect_uri with a trailing slash",
    set: { redirect_uri: `${callback}/` },
    theirs: "error page",
  },
  {
    name: "redirect_uri with an added query",
    set: { redirect_uri: `${callback}?next=1` },
    theirs: "error page",
  },
  {
    name: "redirect_uri with a fragment",
    set: { redirect_uri: `${callback}#here` },
    theirs: "error page",
  },
  {
    name: "redirect_uri with an upper-case path",
    set: { redirect_uri: "http://localhost:4999/Callback" },
    theirs: "error page",
  },
  {
    name: "redirect_uri with an upper-case host",
    set: { redirect_uri: "http://LOCALHOST:4999/callback" },
    theirs: "error page",
  },
  {
    name: "redirect_uri percent-encoded to the same",
    set: { redirect_uri: "http://localhost:4999/%63allback" },
    theirs: "error page",
  },
  {
    name: "redirect_uri with dot segments to the same",
    set: { redirect_uri: "http://localhost:4999/a/../callback" },
    theirs: "error page",
  },
  {
    name: "redirect_uri on another port",
    set: { redirect_uri: "http://localhost:4998/callback" },
    theirs: "error page",
  },
  {
    name: "redirect_uri on another port, browser-only client",
    by: "browser",
    set: { redirect_uri: "http://localhost:4998/callback" },
    theirs: "error page",
  },
  {
    name: "redirect_uri with another scheme",
    set: { redirect_uri: "https://localhost:4999/callback" },
    theirs: "error page",
  },
  {
    name: "redirect_uri with a user name",
    set: { redirect_uri: "http://localhost:4999@evil.example/callback" },
    theirs: "error page",
  },
  {
    name: "redirect_uri with script",
    set: { redirect_uri: "javascript:alert(1)//localhost:4999/callback" },
    theirs: "error page",
  },
  {
    name: "a bad redirect_uri beside a bad scope",
    set: { redirect_uri: "https://evil.example/", scope: '"' },
    theirs: "error page",
  },
];

const responseType: readonly Row[] = [
  {
    name: "response_type missing",
    set: { response_type: undefined },
    theirs: "redirect invalid_request",
  },
  { name: "response_type empty", set: { response_type: "" }, theirs: "redirect invalid_request" },
  {
    name: "response_type twice",
    set: { response_type: ["code", "code"] },
    theirs: "redirect invalid_request",
  },
  {
    name: "response_type token",
    set: { response_type: "token" },
    theirs: "redirect unsupported_response_type in the fragment",
    ours: "redirect unsupported_response_type",
    reason: why.noImplicit,
  },
  {
    name: "response_type id_token",
    set: { response_type: "id_token", nonce: "n" },
    theirs: "redirect unsupported_response_type in the fragment",
    ours: "redirect unsupported_response_type",
    reason: why.noImplicit,
  },
  {
    name: "response_type code token",
    set: { response_type: "code token" },
    theirs: "redirect unsupported_response_type in the fragment",
    ours: "redirect unsupported_response_type",
    reason: why.noImplicit,
  },
  {
    name: "response_type code id_token",
    set: { response_type: "code id_token", nonce: "n" },
    theirs: "redirect unsupported_response_type in the fragment",
    ours: "redirect unsupported_response_type",
    reason: why.noImplicit,
  },
  {
    name: "response_type none",
    set: { response_type: "none" },
    theirs: "redirect unsupported_response_type",
  },
  {
    name: "response_type in upper case",
    set: { response_type: "CODE" },
    theirs: "redirect unsupported_response_type",
  },
  {
    name: "response_type code code",
    set: { response_type: "code code" },
    theirs: "page",
    ours: "redirect unsupported_response_type",
    reason: why.responseTypeExact,
  },
  { name: "response_mode query", set: { response_mode: "query" }, theirs: "page" },
  {
    name: "response_mode fragment",
    set: { response_mode: "fragment" },
    theirs: "page",
    ours: "redirect invalid_request",
    reason: why.queryOnly,
  },
  {
    name: "response_mode form_post",
    set: { response_mode: "form_post" },
    theirs: "page",
    ours: "redirect invalid_request",
    reason: why.queryOnly,
  },
  {
    name: "response_mode unknown",
    set: { response_mode: "pigeon" },
    theirs: "redirect unsupported_response_mode",
    ours: "redirect invalid_request",
    reason: why.responseModeCode,
  },
];

const scope: readonly Row[] = [
  {
    name: "scope missing",
    set: { scope: undefined },
    theirs: "page",
    ours: "redirect invalid_scope",
    reason: why.scopeNeeded,
  },
  {
    name: "scope empty",
    set: { scope: "" },
    theirs: "page",
    ours: "redirect invalid_scope",
    reason: why.scopeNeeded,
  },
  { name: "scope openid alone", set: { scope: "openid" }, theirs: "page" },
  { name: "scope without openid", set: { scope: "offline offline_access" }, theirs: "page" },
  { name: "scope openid twice", set: { scope: "openid openid" }, theirs: "page" },
  {
    name: "scope with an unknown value beside openid",
    set: { scope: "openid everything" },
    theirs: "page",
    ours: "redirect invalid_scope",
    reason: why.scopeKnown,
  },
  {
    name: "scope of unknown values alone",
    set: { scope: "everything" },
    theirs: "page",
    ours: "redirect invalid_scope",
    reason: why.scopeKnown,
  },
  {
    name: "scope with a character that no scope may have",
    set: { scope: 'openid "quoted"' },
    theirs: "redirect invalid_scope",
  },
  {
    name: "scope parameter twice",
    set: { scope: ["openid", "offline"] },
    theirs: "redirect invalid_request",
  },
  {
    name: "scope of 5000 characters",
    set: { scope: `openid ${"s".repeat(5000)}` },
    theirs: "page",
    ours: "redirect invalid_request",
    reason: why.bounded,
  },
  { name: "scope offline_access without prompt", set: { prompt: undefined }, theirs: "page" },
];

const pkce: readonly Row[] = [
  {
    name: "no PKCE",
    set: { code_challenge: undefined, code_challenge_method: undefined },
    theirs: "redirect invalid_request",
  },
  {
    name: "no PKCE, browser-only client",
    by: "browser",
    set: { code_challenge: undefined, code_challenge_method: undefined },
    theirs: "redirect invalid_request",
  },
  {
    name: "code_challenge missing",
    set: { code_challenge: undefined },
    theirs: "redirect invalid_request",
  },
  { name: "code_challenge empty", set: { code_challenge: "" }, theirs: "redirect invalid_request" },
  {
    name: "code_challenge_method missing",
    set: { code_challenge_method: undefined },
    theirs: "redirect invalid_request",
  },
  {
    name: "code_challenge_method plain",
    set: { code_challenge_method: "plain" },
    theirs: "redirect invalid_request",
  },
  {
    name: "code_challenge_method in lower case",
    set: { code_challenge_method: "s256" },
    theirs: "redirect invalid_request",
  },
  {
    name: "code_challenge_method unknown",
    set: { code_challenge_method: "S512" },
    theirs: "redirect invalid_request",
  },
  {
    name: "code_challenge of 42 characters",
    set: { code_challenge: "c".repeat(42) },
    theirs: "redirect invalid_request",
  },
  {
    name: "code_challenge of 44 characters",
    set: { code_challenge: "c".repeat(44) },
    theirs: "page",
    ours: "redirect invalid_request",
    reason: why.challengeLength,
  },
  {
    name: "code_challenge of 129 characters",
    set: { code_challenge: "c".repeat(129) },
    theirs: "redirect invalid_request",
  },
  {
    name: "code_challenge outside base64url",
    set: { code_challenge: `${"c".repeat(42)}+` },
    theirs: "redirect invalid_request",
  },
  {
    name: "code_challenge with padding",
    set: { code_challenge: ({ pkce: { challenge } }) => `${challenge}=` },
    theirs: "redirect invalid_request",
  },
  {
    name: "code_challenge twice",
    set: { code_challenge: ["c".repeat(43), "d".repeat(43)] },
    theirs: "redirect invalid_request",
  },
];

export const authorizationSections: readonly Section[] = [
  { title: "Authorization: client and transport", to: "authorize", rows: client },
  { title: "Authorization: redirect_uri", to: "authorize", rows: redirectUri },
  { title: "Authorization: response_type and response_mode", to: "authorize", rows: responseType },
  { title: "Authorization: scope", to: "authorize", rows: scope },
  { title: "Authorization: PKCE", to: "authorize", rows: pkce },
];
