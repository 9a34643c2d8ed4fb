import {
  entryOfField,
  fieldsHash,
  nameOfAttribute,
  returnTypeOf,
  secondsMax,
  shortAddress,
  zeroHash,
  type AccessLink,
  type AccessMessage,
  type RequestLink,
} from "@svc/protocol";
import type { Concern } from "./concern.ts";
import type { WalletContext } from "./context.ts";
import { isLate, refuseLink } from "./decline.ts";
import { listHeld, type HeldCredential } from "./held-credential.ts";
import { receiveCredentials } from "./receive.ts";
import { WalletRefusal } from "./refusal.ts";
import type { CheckedApproval, Declining, Description, SentRefusal, Trace } from "./request.ts";
import { askRequester, findBroker, requesterOf, type VerifiedObject } from "./requester.ts";
import { destinationOf, sayRoute } from "./return-route.ts";
import {
  chooseSources,
  nameOfText,
  releasedBy,
  type AskedName,
  type Choice,
  type Source,
} from "./selection.ts";
import { learnTaken } from "./taken-orders.ts";

type Side = HeldCredential["environment"];

/** A request for fields: who asks for what, and what this wallet would answer with. */
export interface FieldRequest<L extends RequestLink | AccessLink> {
  readonly link: L;
  /** Null for an unknown requester. */
  readonly verified: VerifiedObject | null;
  /** What is signed as `request`: the id, empty if there is none. */
  readonly request: string;
  readonly choices: readonly Choice[];
}

/**
 * Finds out who wants the fields, and what would answer the request. What a known requester requires comes from its
 * signed request object; for an unknown one every name in the link counts as required.
 *
 * @throws {WalletRefusal} forged_request, expired, broker_refused, unreachable, unsupported
 */
export async function openFieldRequest<L extends RequestLink | AccessLink>(
  ctx: WalletContext,
  link: L,
  { mustHold }: { mustHold: boolean },
): Promise<FieldRequest<L>> {
  const broker = await findBroker(ctx, link);
  if (returnTypeOf(link) !== "callback" && broker !== null)
    throw new WalletRefusal("unsupported", "a broker accepts fields only by callback");
  // Before it may refuse: it does so for what it has taken already.
  if (broker !== null) await learnTaken(ctx, broker);
  const verified = await askRequester(ctx, link);
  const request = verified?.object.id ?? link.id ?? "";
  const asked = verified === null ? askedByLink(link) : askedByObject(verified);
  const choices = await chooseHeld(ctx, asked, {
    broker: verified === null ? null : verified.object.iss,
    environment: environmentOf(verified),
    mustHold,
  });
  return { link, verified, request, choices };
}

/** Undefined for an unknown requester, and if a broker does not say. */
function environmentOf(verified: VerifiedObject | null): Side | undefined {
  const { livemode } = verified?.object ?? {};
  if (livemode === undefined) return undefined;
  return livemode ? "live" : "sandbox";
}

/**
 * Finds a source for every name. For a request that a broker made itself, its list of credentials is read first, so
 * that anything that was issued or has ended since is taken into account; otherwise the brokers are asked only if
 * something is missing.
 *
 * @param from.broker the broker that vouches for the requester; null for an unknown requester
 */
export async function chooseHeld(
  ctx: WalletContext,
  asked: readonly AskedName[],
  {
    broker,
    mustHold,
    environment,
  }: { broker: string | null; mustHold: boolean; environment?: Side | undefined },
): Promise<readonly Choice[]> {
  const isKnown = broker !== null;
  const now = await ctx.now();
  const choose = async (): Promise<readonly Choice[]> => {
    const held = await listHeld(ctx);
    const fitting = held.filter((each) => broker === null || each.broker === broker);
    return chooseSources(fitting, asked, { now, isKnown, mustHold, environment });
  };
  if (broker !== null) {
    const refusal = await receiveIfPossible(ctx, broker);
    return noteUnasked(await choose(), refusal);
  }
  const choices = await choose();
  if (choices.every(({ source }) => source !== null)) return choices;
  let first: WalletRefusal | null = null;
  for (const each of await ctx.brokers()) {
    const refusal = await receiveIfPossible(ctx, each);
    first ??= refusal;
  }
  return noteUnasked(await choose(), first);
}

function noteUnasked(choices: readonly Choice[], unasked: WalletRefusal | null): readonly Choice[] {
  if (unasked === null) return choices;
  return choices.map((choice) =>
    choice.source === null && choice.isGuarded !== true ? { ...choice, unasked } : choice,
  );
}

/** Fields that the wallet holds can be used even if their broker is away. @returns the refusal of a broker that is */
async function receiveIfPossible(
  ctx: WalletContext,
  broker: string,
): Promise<WalletRefusal | null> {
  try {
    await receiveCredentials(ctx, broker);
    return null;
  } catch (error) {
    const isAway =
      error instanceof WalletRefusal &&
      (error.code === "unreachable" || error.code === "broker_refused");
    if (!isAway) throw error;
    return error;
  }
}

/**
 * The fields that an approval releases.
 *
 * @throws {WalletRefusal} no_matching_data, or that of a broker that could not be asked; invalid_input if a required
 * name, or one that nobody asked for, is withheld
 */
export function decideRelease(
  choices: readonly Choice[],
  { without }: Pick<CheckedApproval, "without">,
): readonly Source[] {
  const withheld = withheldOf(choices, without);
  const unheld = choices.filter(({ source }) => source === null);
  const missing = unheld.filter(
    ({ isOptional }) => !isOptional || unheld.length === choices.length,
  );
  refuseMissing(missing, "nothing verified that this wallet holds fits");
  const released = releasedBy(choices.filter((choice) => !withheld.has(choice)));
  if (released.length === 0)
    throw new WalletRefusal("no_matching_data", "nothing is left to share: decline instead");
  return released;
}

/**
 * Refuses if something is missing. Guarded fields are named as what they are. If a broker could not be asked, its
 * refusal is thrown: it may have what is missing.
 *
 * @throws {WalletRefusal} no_matching_data, or that of the broker
 */
export function refuseMissing(missing: readonly Choice[], fault: string): void {
  if (missing.length === 0) return;
  const guarded = missing.filter(({ isGuarded }) => isGuarded);
  if (guarded.length > 0)
    throw new WalletRefusal("no_matching_data", `${neverGiven} ${namesOf(guarded)}`);
  const said = `${fault} ${namesOf(missing)}`;
  const { unasked } = missing.find((choice) => choice.unasked !== undefined) ?? {};
  if (unasked === undefined) throw new WalletRefusal("no_matching_data", said);
  throw new WalletRefusal(unasked.code, `${unasked.message}, and ${said}`, { cause: unasked });
}

const namesOf = (choices: readonly Choice[]): string => choices.map(({ name }) => name).join(", ");

/** What is signed when these fields are released: all of an `Access`, and all of a `Share` except its `data`. */
export function messageOf(
  { link, verified, request }: FieldRequest<RequestLink | AccessLink>,
  released: readonly Source[],
): AccessMessage {
  return {
    request,
    connection: link.connection,
    requester: verified?.object.domain ?? "",
    object: verified?.hash ?? zeroHash,
    fields: fieldsHash(released.map(({ field }) => field)),
    deadline: link.deadline,
  };
}

function withheldOf(choices: readonly Choice[], without: readonly string[]): ReadonlySet<Choice> {
  const withheld = new Set<Choice>();
  for (const text of without) {
    const name = nameOfText(text);
    const named = choices.filter((choice) => choice.name === name || choice.source?.field === name);
    if (named.length === 0)
      throw new WalletRefusal("invalid_input", `the request does not ask for ${text}`);
    // A field that answers one of these names may also answer another: it is released for all of them, or for none.
    const fields = new Set(named.map(({ source }) => source?.field));
    const affected = choices.filter(
      (choice) =>
        named.includes(choice) || (choice.source !== null && fields.has(choice.source.field)),
    );
    const required = affected.find(({ isOptional }) => !isOptional);
    if (required !== undefined) {
      const what = required.name === name ? text : `${text} goes as ${required.name}, which`;
      throw new WalletRefusal(
        "invalid_input",
        `${what} is required: decline the request to withhold it`,
      );
    }
    for (const choice of affected) withheld.add(choice);
  }
  return withheld;
}

/**
 * The refusal of a request for fields: either that no field fits, or that the person declines. If the link has no id,
 * its broker is asked for it, since nobody else knows what is refused.
 *
 * @throws {WalletRefusal} forged_request, broker_refused, unreachable, unsupported
 */
export async function refuseFields(
  ctx: WalletContext,
  link: RequestLink | AccessLink,
  { declining, mustHold }: { declining: Declining; mustHold: boolean },
): Promise<SentRefusal> {
  const refusal = { request: link.id ?? "", declining };
  if (await isLate(ctx, link)) return refuseLink(ctx, link, { ...refusal, error: "expired" });
  const { request, choices } = await openFieldRequest(ctx, link, { mustHold });
  const isMissing = choices.some(
    ({ isOptional, source, unasked }) => !isOptional && source === null && unasked === undefined,
  );
  const error = isMissing ? "no_matching_data" : "access_denied";
  return refuseLink(ctx, link, { request, declining, error });
}

/** What the history records of it. */
export function traceOf(
  { request, verified, choices }: FieldRequest<RequestLink | AccessLink>,
  approval: CheckedApproval,
): Trace {
  const fields = decideRelease(choices, approval).map(({ field }) => field);
  const withheld = choices
    .filter(({ source }) => source === null || !fields.includes(source.field))
    .map(({ name }) => name);
  const purpose = verified?.object.purpose;
  return {
    fields,
    ...(withheld.length === 0 ? {} : { withheld }),
    ...(request === "" ? {} : { id: request }),
    ...(purpose === undefined ? {} : { purpose }),
  };
}

/** The parts of a description that do not depend on the action. */
export function describeCommon(
  ctx: WalletContext,
  { link, verified, choices, request }: FieldRequest<RequestLink | AccessLink>,
): Omit<Description, "words" | "returnType"> {
  const requester = requesterOf(link, verified);
  const concerns: readonly Concern[] = requester.known ? [] : ["unknown-requester"];
  const purpose = verified?.object.purpose;
  const callback = callbackOf(verified);
  const destination = callback?.host ?? destinationOf(link);
  return {
    action: link.action,
    identity: ctx.identity.address,
    requester,
    concerns,
    codeNeeded: false,
    connection: link.connection,
    expiresAt: link.deadline,
    data: {
      ...(request === "" ? {} : { id: request }),
      ...(purpose === undefined ? {} : { purpose }),
      required: choices.filter(({ isOptional }) => !isOptional).map(({ name }) => name),
      optional: choices.filter(({ isOptional }) => isOptional).map(({ name }) => name),
      missing: choices.filter(({ source }) => source === null).map(({ name }) => name),
      ...(destination === null ? {} : { destination }),
      ...(callback?.isOutside === true ? { outsideDomain: true } : {}),
    },
  };
}

/** What is said about every request for fields: why, until when, and where the answer goes. */
export function sayTerms(
  { link, verified }: FieldRequest<RequestLink | AccessLink>,
  what: string,
): readonly string[] {
  const { purpose, domain = "" } = verified?.object ?? {};
  const callback = callbackOf(verified);
  return [
    ...(purpose === undefined ? [] : [`The reason given: ${JSON.stringify(purpose)}.`]),
    callback === null ? sayRoute(what, link) : sayCallback(what, callback, domain),
    `It can be answered until ${sayTime(link.deadline)}.`,
  ];
}

function sayCallback(
  what: string,
  { host, isOutside }: { host: string; isOutside: boolean },
  domain: string,
): string {
  if (!isOutside) return `${what} goes to ${host}.`;
  const where = domain === "" ? "" : `, which does not belong to ${domain}`;
  return `Careful: ${what} goes to ${host}${where}.`;
}

/** Unix seconds in a form for people; anything after the year 9999 is shown as its end. */
export function sayTime(seconds: number): string {
  const said = Math.min(seconds, secondsMax);
  return `${new Date(said * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** A value as one line; an image by its size. */
export function sayValue({ field, data }: Pick<Source, "field" | "data">): string {
  if (entryOfField(field).type !== "image") return JSON.stringify(data);
  return `an image of ${Math.ceil((data.length * 3) / 4 / 1024)} kB`;
}

/** Where a field comes from. */
function saySource({ credential, expiresAt }: Source): string {
  const { document, environment, issuer } = credential;
  const side = environment === "sandbox" ? ", of the sandbox" : "";
  return `${document} by ${issuer.name}${side}, until ${sayTime(expiresAt)}`;
}

/** Why a guarded field stays here (decisions, section 3, "Request object"). */
const neverGiven = "somebody unknown is never given";

/** One line for each name that is asked for. */
export function sayChoices(
  choices: readonly Choice[],
  sayField: (source: Source) => string,
): readonly string[] {
  return choices.map(({ name, isOptional, source, unasked, isGuarded }) => {
    const start = `${isOptional ? "Optional" : "Required"}: ${name}`;
    if (isGuarded) return `${start}: ${neverGiven} this.`;
    const away = unasked === undefined ? "" : `, and ${unasked.message}`;
    if (source === null) return `${start}: nothing verified that you hold fits${away}.`;
    const by = source.field === name ? "" : `, by ${source.field}`;
    return `${start}${by}: ${sayField(source)} (${saySource(source)}).`;
  });
}

/** "as 0x12..34", the end of the question. */
export function sayIdentity(ctx: WalletContext): string {
  return `as ${shortAddress(ctx.identity.address)}`;
}

function askedByObject({ object }: VerifiedObject): readonly AskedName[] {
  return [
    ...object.required.map((name) => ({ name, isOptional: false })),
    ...object.optional.map((name) => ({ name, isOptional: true })),
  ];
}

function askedByLink({ attributes }: RequestLink | AccessLink): readonly AskedName[] {
  const names = new Set(attributes.map((each) => nameOfAttribute(each) ?? each));
  return [...names].map((name) => ({ name, isOptional: false }));
}

/**
 * The host of the requester's callback, where the data goes; null for an unknown requester, of whom nothing but `conn`
 * is known.
 */
function callbackOf(verified: VerifiedObject | null): { host: string; isOutside: boolean } | null {
  const { callback_host: host, domain = "" } = verified?.object ?? {};
  return host === undefined ? null : { host, isOutside: !isWithin(host, domain) };
}

/** Whether a host is the domain or a subdomain of it; ports do not count. */
function isWithin(host: string, domain: string): boolean {
  const [name, base] = [host, domain].map((each) => each.replace(/:\d+$/, "").toLowerCase());
  return (
    base !== undefined && base !== "" && (name === base || name?.endsWith(`.${base}`) === true)
  );
}
