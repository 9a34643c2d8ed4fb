// Reduces an answer to its class: what a client can rely on, without what servers may choose freely.
import type { Answer } from "./call.ts";
import { logIn, send } from "./call.ts";
import { callback, callbackWithQuery, type Party } from "./party.ts";
import type { Call, Row, Target } from "./row.ts";
import { openScene, type Scene } from "./scene.ts";

/** Runs a row against one side. */
export async function outcomeOf(party: Party, row: Row, to: Target): Promise<string> {
  const scene = openScene(party, row);
  const { before = [] } = row;
  const calls: readonly Call[] = [...before, { ...row, to }];
  if (row.login === undefined && before.length === 0 && isReading(to)) {
    const { code, tokens } = await readable(party, row);
    scene.code = code;
    scene.tokens.push(...tokens);
  } else await prepare(scene, calls);
  let answer: Answer | undefined;
  for (const call of calls) answer = await send(scene, call);
  return answer === undefined ? "nothing" : classOf(scene, answer);
}

/** Gets what the calls need: a code, or tokens. */
async function prepare(scene: Scene, calls: readonly Call[]): Promise<void> {
  const { login } = scene.row;
  if (login !== undefined || calls.some(needsLogin)) await logIn(scene);
  const [first] = calls;
  if (first !== undefined && needsTokens(first))
    await send(scene, { to: "code", ...(login?.by === undefined ? {} : { by: login.by }) });
}

const isReading = (to: Target): boolean => to === "userinfo" || to === "introspect";

const logins = new Map<string, Promise<Scene>>();

/** Reading a token changes nothing, so rows that do nothing else share one login of their client. */
async function readable(party: Party, row: Row): Promise<Scene> {
  const id = `${party.issuer} ${row.by ?? ""}`;
  const open = async (): Promise<Scene> => {
    const scene = openScene(party, row);
    await prepare(scene, [{ to: "userinfo" }]);
    return scene;
  };
  const login = logins.get(id) ?? open();
  logins.set(id, login);
  return login;
}

function needsLogin(call: Call): boolean {
  return call.to === "code" || needsTokens(call);
}

function needsTokens({ to }: Call): boolean {
  return to === "refresh" || to === "userinfo" || to === "introspect" || to === "revoke";
}

function classOf(scene: Scene, answer: Answer): string {
  if (answer.call.to === "authorize") return authorizationClass(scene, answer);
  const { response, text } = answer;
  if (!response.ok) return failureClass(answer);
  const isUncached = response.headers.get("cache-control")?.includes("no-store") === true;
  const found = successClass(answer.call.to, text);
  return isUncached || answer.call.to === "revoke" ? found : `${found}, cacheable`;
}

function successClass(to: Target, text: string): string {
  if (to === "revoke") return "revoked";
  const body = JSON.parse(text) as Record<string, unknown>;
  if (to === "introspect") return body["active"] === true ? "active" : "inactive";
  if (to === "userinfo") return typeof body["sub"] === "string" ? "claims" : "no claims";
  if (to === "push") return typeof body["request_uri"] === "string" ? "pushed" : "no request_uri";
  const given = ["access", "id", "refresh"].filter((name) => body[`${name}_token`] !== undefined);
  const type = String(body["token_type"]).toLowerCase() === "dpop" ? "bound tokens" : "tokens";
  return `${type}: ${given.join(", ")}`;
}

/** An error as RFC 6749 section 5.2 wants it, and with a 401 the challenge of RFC 9110 section 15.5.2. */
function failureClass({ response, text }: Answer): string {
  const code = errorCode(text);
  const lacksChallenge =
    response.status === 401 && response.headers.get("www-authenticate") === null;
  return `${response.status} ${code}${lacksChallenge ? ", no challenge" : ""}`;
}

function errorCode(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === "string" ? error : "without an error code";
  } catch {
    return "without JSON";
  }
}

function authorizationClass({ party, row }: Scene, { response, text }: Answer): string {
  if (party.isPage(response, text)) return "page";
  const location = response.headers.get("location");
  if (location === null) {
    if (response.ok) return "form";
    return response.status < 500 ? "error page" : `error page ${response.status}`;
  }
  const url = new URL(location, party.issuer);
  if (`${url.origin}${url.pathname}` !== callback) return `redirect elsewhere`;
  const place = url.hash.length > 1 ? " in the fragment" : "";
  const given = url.hash.length > 1 ? new URLSearchParams(url.hash.slice(1)) : url.searchParams;
  const what = given.has("code") ? "code" : String(given.get("error"));
  const losesQuery =
    row.set?.["redirect_uri"] === callbackWithQuery && url.searchParams.get("shop") !== "1";
  const faults = faultsOf(row, given, party.issuer);
  return `redirect ${what}${place}${faults}${losesQuery ? ", query lost" : ""}`;
}

/** RFC 6749 section 4.1.2.1 and RFC 9207: what every answer at the redirect URI carries. */
function faultsOf(row: Row, given: URLSearchParams, issuer: string): string {
  const isStateChanged = row.set !== undefined && "state" in row.set;
  const state = isStateChanged ? row.set["state"] : "state-of-the-browser";
  const lacksState = typeof state === "string" && state !== "" && given.get("state") !== state;
  return `${lacksState ? ", no state" : ""}${given.get("iss") === issuer ? "" : ", no iss"}`;
}
