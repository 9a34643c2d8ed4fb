import { audience, otherAudience } from "./party.ts";
import { why } from "./reasons.ts";
import type { Row, Section } from "./row.ts";
import { tokenOf } from "./scene.ts";

const prompt: readonly Row[] = [
  { name: "prompt login", set: { prompt: "login" }, theirs: "page" },
  { name: "prompt login consent", set: { prompt: "login consent" }, theirs: "page" },
  {
    name: "prompt select_account",
    set: { prompt: "select_account" },
    theirs: "redirect invalid_request",
    ours: "page",
    reason: why.selectAccount,
  },
  { name: "prompt empty", set: { prompt: "" }, theirs: "page" },
  { name: "prompt unknown", set: { prompt: "dance" }, theirs: "redirect invalid_request" },
  { name: "prompt create", set: { prompt: "create" }, theirs: "redirect invalid_request" },
  { name: "prompt in upper case", set: { prompt: "CONSENT" }, theirs: "redirect invalid_request" },
  {
    name: "prompt none without a session",
    set: { prompt: "none" },
    theirs: "redirect login_required",
  },
  { name: "prompt none login", set: { prompt: "none login" }, theirs: "redirect invalid_request" },
  {
    name: "prompt twice",
    set: { prompt: ["consent", "login"] },
    theirs: "redirect invalid_request",
  },
  { name: "max_age 3600", set: { max_age: "3600" }, theirs: "page" },
  { name: "max_age 0", set: { max_age: "0" }, theirs: "page" },
  {
    name: "max_age of ten digits",
    set: { max_age: "2147483647" },
    theirs: "page",
  },
  { name: "max_age negative", set: { max_age: "-1" }, theirs: "redirect invalid_request" },
  { name: "max_age a fraction", set: { max_age: "1.5" }, theirs: "redirect invalid_request" },
  { name: "max_age a word", set: { max_age: "old" }, theirs: "redirect invalid_request" },
  {
    name: "max_age hexadecimal",
    set: { max_age: "0x10" },
    theirs: "page",
    ours: "redirect invalid_request",
    reason: why.maxAgeDecimal,
  },
  {
    name: "max_age beyond every integer",
    set: { max_age: "99999999999999999999" },
    theirs: "redirect invalid_request",
  },
];

const openid = { scope: "openid", prompt: "consent" };

const session: readonly Row[] = [
  {
    name: "prompt none in the session that approved the same",
    login: { set: openid },
    set: { scope: "openid", prompt: "none" },
    theirs: "redirect code",
  },
  {
    name: "no prompt in the session that approved the same",
    login: { set: openid },
    set: { scope: "openid", prompt: undefined },
    theirs: "redirect code",
  },
  { name: "prompt consent in a session", login: { set: openid }, set: openid, theirs: "page" },
  {
    name: "prompt login in a session",
    login: { set: openid },
    set: { scope: "openid", prompt: "login" },
    theirs: "page",
  },
  {
    name: "prompt none in a session, more scopes than it approved",
    login: { set: openid },
    set: { scope: "openid offline", prompt: "none" },
    theirs: "redirect consent_required",
    ours: "redirect login_required",
    reason: why.sessionElse,
  },
  {
    name: "prompt none in a session of another client",
    login: { by: "other", set: openid },
    set: { scope: "openid", prompt: "none" },
    theirs: "redirect consent_required",
    ours: "redirect login_required",
    reason: why.sessionElse,
  },
  {
    name: "prompt none in a session of the same browser-only client",
    by: "browser",
    login: { set: openid },
    set: { scope: "openid", prompt: "none" },
    theirs: "redirect code",
    ours: "redirect login_required",
    reason: why.sessionNone,
  },
  {
    name: "prompt none in a session for another resource",
    login: { set: openid },
    set: { scope: "openid", prompt: "none", resource: audience },
    theirs: "redirect consent_required",
    ours: "redirect login_required",
    reason: why.sessionElse,
  },
  {
    name: "prompt none and max_age 0 in a session",
    login: { set: openid },
    set: { scope: "openid", prompt: "none", max_age: "0" },
    theirs: "redirect login_required",
  },
  {
    name: "max_age 0 in a session",
    login: { set: openid },
    set: { scope: "openid", prompt: undefined, max_age: "0" },
    theirs: "page",
  },
  {
    name: "prompt none in a session within max_age",
    login: { set: openid },
    set: { scope: "openid", prompt: "none", max_age: "3600" },
    theirs: "redirect code",
  },
];

const hints: readonly Row[] = [
  {
    name: "id_token_hint of this login",
    before: [{ to: "code" }],
    login: {},
    set: { id_token_hint: (scene) => tokenOf(scene, "id_token") },
    theirs: "page",
  },
  {
    name: "id_token_hint of another client",
    before: [{ to: "code", by: "other" }],
    login: { by: "other" },
    set: { id_token_hint: (scene) => tokenOf(scene, "id_token") },
    theirs: "redirect invalid_request",
  },
  {
    name: "id_token_hint garbage",
    set: { id_token_hint: "garbage" },
    theirs: "redirect invalid_request",
  },
  {
    name: "id_token_hint is an access token",
    before: [{ to: "code" }],
    login: {},
    set: { id_token_hint: (scene) => tokenOf(scene, "access_token") },
    theirs: "redirect invalid_request",
  },
  { name: "login_hint", set: { login_hint: "alice" }, theirs: "page" },
  { name: "acr_values unknown", set: { acr_values: "urn:example:gold" }, theirs: "page" },
  { name: "ui_locales unknown", set: { ui_locales: "tlh" }, theirs: "page" },
  { name: "display unknown", set: { display: "hologram" }, theirs: "page" },
  { name: "claims parameter", set: { claims: "{" }, theirs: "page" },
  { name: "nonce", set: { nonce: "n-0S6_WzA2Mj" }, theirs: "page" },
  { name: "nonce empty", set: { nonce: "" }, theirs: "page" },
  { name: "nonce twice", set: { nonce: ["a", "b"] }, theirs: "redirect invalid_request" },
  {
    name: "nonce of 5000 characters",
    set: { nonce: "n".repeat(5000) },
    theirs: "page",
    ours: "redirect invalid_request",
    reason: why.bounded,
  },
  { name: "state missing", set: { state: undefined }, theirs: "page" },
  {
    name: "state missing, with an error",
    set: { state: undefined, resource: "https://nobody.example" },
    theirs: "redirect invalid_target",
  },
  {
    name: "state empty, with an error",
    set: { state: "", resource: "https://nobody.example" },
    theirs: "redirect invalid_target",
  },
  {
    name: "state with every kind of character comes back unchanged",
    set: { state: 'a b+c%20&d=é"<>#/?', resource: "https://nobody.example" },
    theirs: "redirect invalid_target",
  },
  {
    name: "state of 4000 characters comes back whole",
    set: { state: "s".repeat(4000), resource: "https://nobody.example" },
    theirs: "redirect invalid_target",
  },
  { name: "state twice", set: { state: ["a", "b"] }, theirs: "redirect invalid_request" },
  { name: "dpop_jkt", set: { dpop_jkt: "d".repeat(43) }, theirs: "page" },
  {
    name: "dpop_jkt that is no thumbprint",
    set: { dpop_jkt: "short" },
    theirs: "page",
    ours: "redirect invalid_request",
    reason: why.thumbprint,
  },
];

const target: readonly Row[] = [
  { name: "resource registered", set: { resource: audience }, theirs: "page" },
  {
    name: "resource unknown",
    set: { resource: "https://nobody.example" },
    theirs: "redirect invalid_target",
  },
  { name: "resource not a URI", set: { resource: "api" }, theirs: "redirect invalid_target" },
  {
    name: "resource with a fragment",
    set: { resource: `${audience}#part` },
    theirs: "redirect invalid_target",
  },
  {
    name: "resource with a trailing slash",
    set: { resource: `${audience}/` },
    theirs: "redirect invalid_target",
  },
  { name: "resource twice the same", set: { resource: [audience, audience] }, theirs: "page" },
  {
    name: "two registered resources",
    set: { resource: [audience, otherAudience] },
    theirs: "page",
    ours: "redirect invalid_target",
    reason: why.oneAudience,
  },
  { name: "audience registered", set: { audience }, theirs: "page" },
  {
    name: "audience unknown",
    set: { audience: "https://nobody.example" },
    theirs: "page",
    ours: "redirect invalid_target",
    reason: why.audienceKnown,
  },
  {
    name: "audience and resource differ",
    set: { audience, resource: otherAudience },
    theirs: "page",
    ours: "redirect invalid_target",
    reason: why.oneAudience,
  },
];

const requestObject: readonly Row[] = [
  {
    name: "request",
    set: { request: "eyJhbGciOiJub25lIn0.e30." },
    theirs: "redirect request_not_supported",
  },
  {
    name: "request of 5000 characters",
    set: { request: "x".repeat(5000) },
    theirs: "redirect request_not_supported",
  },
  {
    name: "request_uri of somebody else",
    set: { request_uri: "https://client.example/request.jwt" },
    theirs: "redirect request_uri_not_supported",
  },
  {
    name: "request_uri that was never pushed",
    set: { request_uri: "urn:ietf:params:oauth:request_uri:nothing" },
    theirs: "redirect invalid_request_uri",
    ours: "error page",
    reason: why.pushedAlone,
  },
  {
    name: "request and request_uri",
    set: {
      request: "eyJhbGciOiJub25lIn0.e30.",
      request_uri: "urn:ietf:params:oauth:request_uri:nothing",
    },
    theirs: "redirect request_not_supported",
    ours: "error page",
    reason: why.pushedAlone,
  },
  {
    name: "registration",
    set: { registration: "{}" },
    theirs: "redirect registration_not_supported",
  },
  {
    name: "registration of 5000 characters",
    set: { registration: "{}".padEnd(5000) },
    theirs: "redirect registration_not_supported",
  },
];

/** What decides how, for what and for whom the login happens. */
export const loginSections: readonly Section[] = [
  { title: "Authorization: prompt and max_age", to: "authorize", rows: prompt },
  { title: "Authorization: in a session", to: "authorize", rows: session },
  { title: "Authorization: hints, nonce and state", to: "authorize", rows: hints },
  { title: "Authorization: resource and audience", to: "authorize", rows: target },
  { title: "Authorization: request objects", to: "authorize", rows: requestObject },
];
