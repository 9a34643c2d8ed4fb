import { basic } from "./call.ts";
import { unchallenged, why } from "./reasons.ts";
import type { Call, Row, Section } from "./row.ts";
import { clientOf } from "./scene.ts";

const push: readonly Row[] = [
  { name: "pushed with Basic", theirs: "pushed" },
  { name: "pushed with the secret in the body", by: "post", theirs: "pushed" },
  { name: "pushed with an assertion", by: "key", theirs: "pushed" },
  { name: "pushed by a browser-only client", by: "browser", theirs: "pushed" },
  {
    name: "pushed without authentication",
    proof: "none",
    ...unchallenged,
  },
  {
    name: "pushed with a wrong secret",
    headers: { authorization: (scene) => basic(clientOf(scene, "basic").id, "wrong") },
    theirs: "401 invalid_client",
  },
  {
    name: "pushed with the client_id of another client",
    set: { client_id: (scene) => clientOf(scene, "other").id },
    theirs: "400 invalid_request",
  },
  { name: "pushed as JSON", as: "json", theirs: "400 invalid_request" },
  { name: "pushed in the query", as: "query", theirs: "400 invalid_request" },
  {
    name: "pushed with a request_uri",
    set: { request_uri: "urn:ietf:params:oauth:request_uri:other" },
    theirs: "400 request_uri_not_supported",
    ours: "400 invalid_request",
    reason: why.pushedNested,
  },
  {
    name: "pushed with a request object",
    set: { request: "eyJhbGciOiJub25lIn0.e30." },
    theirs: "400 request_not_supported",
  },
  {
    name: "pushed with an unknown redirect_uri",
    set: { redirect_uri: "https://evil.example/" },
    theirs: "400 invalid_request",
  },
  {
    name: "pushed without redirect_uri",
    set: { redirect_uri: undefined },
    theirs: "400 invalid_request",
  },
  {
    name: "pushed without PKCE",
    set: { code_challenge: undefined, code_challenge_method: undefined },
    theirs: "400 invalid_request",
  },
  {
    name: "pushed with PKCE plain",
    set: { code_challenge_method: "plain" },
    theirs: "400 invalid_request",
  },
  {
    name: "pushed with response_type token",
    set: { response_type: "token" },
    theirs: "400 unsupported_response_type",
  },
  {
    name: "pushed with prompt none login",
    set: { prompt: "none login" },
    theirs: "400 invalid_request",
  },
  {
    name: "pushed with an unknown resource",
    set: { resource: "https://nobody.example" },
    theirs: "400 invalid_target",
  },
  { name: "pushed with state twice", set: { state: ["a", "b"] }, theirs: "400 invalid_request" },
  { name: "pushed with an unknown parameter", set: { shoe_size: "44" }, theirs: "pushed" },
];

/** The authorization request that only names what was pushed. */
const pushed = {
  redirect_uri: undefined,
  response_type: undefined,
  scope: undefined,
  state: undefined,
  code_challenge: undefined,
  code_challenge_method: undefined,
  prompt: undefined,
  access_type: undefined,
  request_uri: ({ requestUri }: { requestUri: string }) => requestUri,
};
const pushing: Call = { to: "push" };

const use: readonly Row[] = [
  { name: "a pushed request", before: [pushing], set: pushed, theirs: "page" },
  {
    name: "a pushed request of a browser-only client",
    by: "browser",
    before: [pushing],
    set: pushed,
    theirs: "page",
  },
  {
    name: "a pushed request, with its parameters repeated",
    before: [pushing],
    set: { request_uri: pushed.request_uri },
    theirs: "page",
  },
  {
    name: "a pushed request beside a parameter that would be wrong",
    before: [pushing],
    set: { ...pushed, response_type: "token" },
    theirs: "error page",
    ours: "page",
    reason: why.pushedIgnores,
  },
  {
    name: "a pushed request opened twice by one browser",
    before: [pushing, { to: "authorize", set: pushed }],
    set: pushed,
    theirs: "page",
  },
  {
    name: "a pushed request without client_id",
    before: [pushing],
    set: { ...pushed, client_id: undefined },
    theirs: "error page",
  },
  {
    name: "a pushed request of another client",
    before: [{ to: "push", by: "basic" }],
    by: "other",
    set: pushed,
    theirs: "error page",
  },
  {
    name: "a pushed request with its id changed",
    before: [pushing],
    set: { ...pushed, request_uri: ({ requestUri }) => `${requestUri}x` },
    theirs: "error page",
  },
  {
    name: "a pushed request of a client that demands them",
    by: "pushing",
    before: [pushing],
    set: pushed,
    theirs: "page",
  },
  {
    name: "the document's request by a client that demands pushed ones",
    by: "pushing",
    theirs: "redirect invalid_request",
  },
  {
    name: "the same as a form",
    by: "pushing",
    method: "POST",
    theirs: "redirect invalid_request",
  },
  {
    name: "the same with an unknown redirect_uri",
    by: "pushing",
    set: { redirect_uri: "https://evil.example/" },
    theirs: "error page",
  },
];

export const pushedSections: readonly Section[] = [
  { title: "Pushed authorization requests", to: "push", rows: push },
  { title: "Authorization by a pushed request", to: "authorize", rows: use },
];
