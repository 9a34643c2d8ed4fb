import {
  buildResult,
  originOfConnection,
  returnTypeOf,
  type Action,
  type Address,
  type Delivery,
  type Link,
  type Receipt,
  type ResultOf,
} from "@svc/protocol";
import { openRequest, readLink, refuseRequest } from "./actions.ts";
import { askForList } from "./asking-brokers.ts";
import { listBrokers } from "./brokers.ts";
import {
  abandonBusiness,
  chooseBusiness,
  forgetFounding,
  foundBusiness,
  listBusinesses,
  propose,
  retractProposal,
  sayProposed,
  type Founded,
  type FoundingPlan,
  type OwnBusiness,
  type Proposal,
  type Proposed,
} from "./businesses.ts";
import { forgetClaim } from "./claim.ts";
import { ConcernsRefusal, type Concern } from "./concern.ts";
import type { WalletContext } from "./context.ts";
import { addEmail, confirmEmail, type EmailVerification } from "./email.ts";
import { listHeld, type HeldCredential } from "./held-credential.ts";
import { listHistory, recordHistory, type HistoryEntry } from "./history.ts";
import { listInbox, type InboxEntry, type InboxListing } from "./inbox.ts";
import { keepMembership } from "./keep.ts";
import { endLogin, listLogins, type Login } from "./logins.ts";
import { forgetPickUp, leaveInMailbox, pickUp } from "./mailbox.ts";
import type { Outcome } from "./outcome.ts";
import { type PushDevice, readPushKey, subscribePush, unsubscribePush } from "./push.ts";
import { listReleases, type PastRelease } from "./past-releases.ts";
import { putRecord } from "./records.ts";
import { fetchReceipt } from "./receipt.ts";
import { receiveCredentials, type Collection } from "./receive.ts";
import { WalletRefusal } from "./refusal.ts";
import type { CheckedApproval, Description, OpenRequest, SentRefusal } from "./request.ts";
import {
  connectionOf,
  findBroker,
  requesterOf,
  sayRequester,
  type Requester,
} from "./requester.ts";
import {
  blockRequester,
  listBlocks,
  type BlockedRequester,
  type RequesterBlock,
} from "./requester-block.ts";
import { callWithRetries } from "./retries.ts";
import { openSessions } from "./sessions.ts";
import { checkSaid, forgetSaid, rememberSaid } from "./shown-links.ts";
import { learnTaken } from "./taken-orders.ts";
import { call, membersOf, refusalOfAnswer, requireSecure, type CallAnswer } from "./transport.ts";
import { castVote, type Decision, type VoteOutcome } from "./votes.ts";

/** How long an answer that names no end can be picked up. */
const pickUpSeconds = 600;

export interface Approval {
  /** The two digits, if the page shows them. */
  readonly code?: string;
  /** The concerns that were confirmed. */
  readonly accept?: ReadonlySet<Concern>;
  /** Optional names that are withheld, as they were asked for or by the name of the field. */
  readonly without?: readonly string[];
  /** The names to give, if a link leaves the choice to its holder. */
  readonly fields?: readonly string[];
  /** The business to act for; needed where this identity votes in several. */
  readonly business?: Address;
}

export interface Denial {
  /** "I did not start this"; only a broker is told. */
  readonly notStarted?: boolean;
  /** With `unknown-requester`, an unknown requester learns the identity too, by a signed refusal. */
  readonly accept?: ReadonlySet<Concern>;
}

/** The wallet of one identity. Every verb throws `WalletRefusal`. */
export interface Wallet {
  /** The identity. */
  readonly address: Address;
  /**
   * Says what a link asks for. This claims a login at a known broker, once: a later approval or refusal, from any
   * process over the same storage, continues with that claim. Nobody else is contacted. An approval covers what was
   * described last.
   */
  describe(link: string): Promise<Description>;
  /**
   * Signs and sends what a link asks for. If it was described before and is something else now, it is refused.
   *
   * @throws {ConcernsRefusal} when a concern of the description is not accepted
   */
  approve(link: string, approval?: Approval): Promise<Outcome>;
  /** Declines a request. A QR login is claimed first, so that the refusal counts. */
  decline(link: string, denial?: Denial): Promise<Outcome>;
  /** The live logins, at every broker on the list. */
  logins(): Promise<readonly Login[]>;
  endLogin(id: string): Promise<void>;
  /**
   * Collects credentials at every broker on the list, and updates the status of those that are held. The history learns
   * which approvals a broker took without this wallet having heard so, as it does with the next request for fields.
   */
  receive(): Promise<Collection>;
  /** The credentials that are held, values included. */
  credentials(): Promise<readonly HeldCredential[]>;
  /** What was approved, sent and declined, newest first, without values. */
  history(): Promise<readonly HistoryEntry[]>;
  /** The settlement receipt of a request that was approved, by the id that the history has. */
  receipt(id: string): Promise<Receipt>;
  /** Has a code sent to an e-mail address; `confirmEmail` sends it back and collects the verified field. */
  addEmail(email: string): Promise<EmailVerification>;
  confirmEmail(
    verificationId: string,
    code: string,
  ): Promise<Collection & { readonly credentialId: string }>;
  /**
   * Picks up, once, what another wallet left behind a link, as it was left: nothing in it is verified. With `keeps` this
   * identity may pick it up again, for the minute that a broker gives its reader, until `forgetPickUp`.
   */
  pickUp(
    link: string,
    options?: { readonly keeps?: true },
  ): Promise<Readonly<Record<string, unknown>>>;
  forgetPickUp(link: string): Promise<void>;
  /** What waits for this identity's vote as a member of a business, invitations included. */
  inbox(listing?: InboxListing): Promise<readonly InboxEntry[]>;
  /**
   * Votes on one of these items; that ends a removal of this identity.
   *
   * @throws {ConcernsRefusal} when a concern of it is not accepted
   */
  vote(id: string, decision: Decision): Promise<VoteOutcome>;
  /** The businesses of this identity. */
  businesses(): Promise<readonly OwnBusiness[]>;
  /** The business that is meant: the named one, or else the only one in which this identity votes. */
  chooseBusiness(named?: Address): Promise<OwnBusiness>;
  /**
   * Founds a business; the others find their invitations in their inbox. Founding the same plan again makes another
   * business; with `keeps` only after `forgetFounding`, which is called once a person has seen the first result.
   */
  foundBusiness(plan: FoundingPlan, options?: { readonly keeps?: true }): Promise<Founded>;
  forgetFounding(plan: FoundingPlan): Promise<void>;
  /** Says what an act of governance does, one statement per line, before anybody is asked. */
  sayProposed(business: OwnBusiness, proposal: Proposal): Promise<readonly string[]>;
  /** Puts an act of governance to the members, and approves it. */
  propose(business: OwnBusiness, proposal: Proposal): Promise<Proposed>;
  /** Ends a founding of this identity before everybody has signed. */
  abandonBusiness(business: OwnBusiness): Promise<void>;
  /** Takes back what this identity proposed, before it is decided. */
  retractProposal(business: OwnBusiness, proposalId: string): Promise<void>;
  /** Ends the removal of this identity from a business, or else the business's move by the operator. */
  keepMembership(business: OwnBusiness): Promise<{ readonly ended: string }>;
  /** Has a business block an organization, or accept its requests again; any single voting member can decide that. */
  blockRequester(business: OwnBusiness, block: RequesterBlock): Promise<void>;
  /** What a business released to whom, newest first. */
  releases(business: OwnBusiness): Promise<readonly PastRelease[]>;
  /** The organizations that a business has blocked. */
  blocks(business: OwnBusiness): Promise<readonly BlockedRequester[]>;
  /** The key with which a page subscribes to Web Push (`applicationServerKey`), to be notified by this broker. */
  pushKey(broker: string): Promise<string>;
  /** Has a broker tell a device that something waits in the inbox, but not what. */
  subscribePush(broker: string, device: PushDevice): Promise<void>;
  /** Ends that for one device, or else for all devices of this identity. */
  unsubscribePush(broker: string, endpoint?: string): Promise<void>;
  /** Ends the wallet's sessions with its brokers. */
  close(): Promise<void>;
}

/** What a wallet is opened with; see `WalletContext`. */
export interface WalletParts extends Omit<WalletContext, "brokers" | "sessions"> {
  /** Origins of the brokers it comes with; `addBroker` adds to them. */
  readonly seededBrokers: readonly string[];
}

/** Opens the wallet of one identity. */
export function openWallet({ seededBrokers, ...given }: WalletParts): Wallet {
  const parts = { ...given, now: async () => checkTime(await given.now()) };
  const sessions = openSessions(parts);
  const ctx: WalletContext = {
    ...parts,
    sessions,
    brokers: async () => listBrokers(parts.storage, seededBrokers),
  };
  return {
    address: ctx.identity.address,
    describe: async (text) => describe(ctx, readLink(ctx, text)),
    approve: async (text, approval = {}) => approve(ctx, text, approval),
    decline: async (text, denial = {}) => decline(ctx, text, denial),
    logins: async () => listLogins(ctx),
    endLogin: async (id) => endLogin(ctx, id),
    async receive() {
      const { answers } = await askForList(ctx, async (broker) => {
        await learnTaken(ctx, broker);
        return receiveCredentials(ctx, broker);
      });
      return {
        received: answers.flatMap(({ received }) => received),
        refused: answers.flatMap(({ refused }) => refused),
      };
    },
    credentials: async () => listHeld(ctx),
    history: async () => listHistory(ctx),
    receipt: async (id) => fetchReceipt(ctx, id),
    addEmail: async (email) => addEmail(ctx, email),
    confirmEmail: async (verificationId, code) => confirmEmail(ctx, { verificationId, code }),
    pickUp: async (link, options) => pickUp(ctx, link, options),
    forgetPickUp: async (link) => forgetPickUp(ctx, link),
    inbox: async (listing = {}) => listInbox(ctx, listing),
    vote: async (id, decision) => castVote(ctx, id, decision),
    businesses: async () => listBusinesses(ctx),
    chooseBusiness: async (named) => chooseBusiness(ctx, named),
    foundBusiness: async (plan, options) => foundBusiness(ctx, plan, options),
    forgetFounding: async (plan) => forgetFounding(ctx, plan),
    sayProposed: async (business, proposal) => sayProposed(ctx, business, proposal),
    propose: async (business, proposal) => propose(ctx, business, proposal),
    abandonBusiness: async (business) => abandonBusiness(ctx, business),
    retractProposal: async (business, id) => retractProposal(ctx, business, id),
    keepMembership: async (business) => keepMembership(ctx, business),
    blockRequester: async (business, block) => blockRequester(ctx, business, block),
    releases: async (business) => listReleases(ctx, business),
    blocks: async (business) => listBlocks(ctx, business),
    pushKey: async (broker) => readPushKey(ctx, broker),
    subscribePush: async (broker, device) => subscribePush(ctx, broker, device),
    unsubscribePush: async (broker, endpoint) => unsubscribePush(ctx, broker, endpoint),
    close: async () => sessions.close(),
  };
}

/** In the year 5138. `Date.now()`, in milliseconds, is greater. */
const secondsMax = 100_000_000_000;

/** With NaN nothing would ever expire, and with milliseconds a signature would be valid for ever. */
function checkTime(seconds: number): number {
  if (Number.isSafeInteger(seconds) && seconds >= 0 && seconds < secondsMax) return seconds;
  throw new WalletRefusal("invalid_input", "the wallet's clock does not tell whole Unix seconds");
}

async function describe(ctx: WalletContext, link: Link): Promise<Description> {
  const { description, said } = await openRequest(ctx, link);
  const { expiresAt } = description;
  if (said !== undefined) await rememberSaid(ctx, link, { said, expiresAt });
  return description;
}

async function approve(ctx: WalletContext, text: string, approval: Approval): Promise<Outcome> {
  const { code, without = [], fields = [], business } = approval;
  // Checked before anything is claimed: a typing error must not cost the login.
  if (code !== undefined && !/^[0-9]{2}$/.test(code))
    throw new WalletRefusal("wrong_code", "the page shows two digits; give exactly these");
  const link = readLink(ctx, text);
  const request = await openRequest(ctx, link);
  const { codeNeeded, concerns, requester } = request.description;
  if (codeNeeded && code === undefined) return { kind: "code-required" };
  if (!codeNeeded && code !== undefined)
    throw new WalletRefusal("wrong_code", "this request takes no digits");
  refuseUntaken(request, { without, fields, business });
  // A broker may now say something else than what the person decided on, and the wallet may hold other fields.
  const shown = request.said === undefined ? {} : await checkSaid(ctx, link, request.said);
  const open = concerns.filter((concern) => approval.accept?.has(concern) !== true);
  if (open.length > 0) throw new ConcernsRefusal(open, sayRequester(requester));
  const checked = { code: code ?? "", without, fields, business, ...shown };
  const outcome = await answerRequest(ctx, link, { request, approval: checked });
  if (!isAccepted(outcome)) return outcome;
  await forgetSaid(ctx, link);
  await request.settled?.();
  return outcome;
}

/** Refuses choices that have no meaning for this request. @throws {WalletRefusal} invalid_input */
function refuseUntaken(
  { takes }: OpenRequest,
  { without, fields, business }: Pick<CheckedApproval, "without" | "fields" | "business">,
): void {
  if (without.length > 0 && takes?.without !== true)
    throw new WalletRefusal("invalid_input", "this request asks for no fields");
  if (fields.length > 0 && takes?.fields !== true)
    throw new WalletRefusal("invalid_input", "this link leaves no choice of fields");
  if (business !== undefined && takes?.business !== true)
    throw new WalletRefusal("invalid_input", "this request is not for a business");
}

/**
 * Signs and sends the answer to a request, and records it in the history; a request that is only accepted here is
 * decided elsewhere.
 */
async function answerRequest(
  ctx: WalletContext,
  link: Link,
  { request, approval }: { request: OpenRequest; approval: CheckedApproval },
): Promise<Outcome> {
  const { requester } = request.description;
  const approved = await entryOf(ctx, link, { requester, outcome: "approved" });
  // A broker accepts one answer to a request; a link of anybody else may be answered any number of times.
  const connection = requester.known ? request.description.connection : undefined;
  if ("claim" in request) {
    const outcome = await request.claim(approval);
    const entry = { ...approved, ...request.trace?.(approval) };
    if (isAccepted(outcome)) await recordHistory(ctx, entry, connection);
    return outcome;
  }
  const result = await request.answer(approval);
  const txHash = "txHash" in result ? { txHash: result.txHash } : {};
  const entry = { ...approved, ...request.trace?.(approval), ...txHash };
  const delivery = deliveryOf(link, result);
  // The receiver of the data could prevent an entry that is written only afterwards, by its answer or by giving none.
  const isSent = delivery.type === "callback" || request.perform !== undefined;
  const sent = isSent ? await recordHistory(ctx, { ...entry, outcome: "sent" }, connection) : null;
  await request.perform?.();
  const outcome = await deliver(ctx, delivery, result);
  if (sent === null) await recordHistory(ctx, entry, connection);
  else if (isAccepted(outcome))
    await putRecord(ctx, sent.place, { ...sent.entry, outcome: "approved" });
  return outcome;
}

async function decline(
  ctx: WalletContext,
  text: string,
  { notStarted = false, accept }: Denial,
): Promise<Outcome> {
  const link = readLink(ctx, text);
  const signed = link.identity !== undefined || accept?.has("unknown-requester") === true;
  const refusal = await refuseRequest(ctx, link, { notStarted, signed });
  const delivery = deliveryOf(link, refusal);
  const requester = requesterOf(link, null);
  const entry = await entryOf(ctx, link, { requester, outcome: "declined" });
  const id = refusal.id === undefined ? {} : { id: refusal.id };
  const isKnown = (await findBroker(ctx, link)) !== null;
  await recordHistory(ctx, { ...entry, ...id }, isKnown ? connectionOf(link) : undefined);
  const outcome = await deliver(ctx, delivery, refusal);
  // A refusal on the same device is still to be delivered by the browser, and only this wallet can repeat it.
  const isOver = outcome.kind === "delivered" && outcome.refusal === undefined;
  if (link.action === "login" && link.connection !== undefined && isOver)
    await forgetClaim(ctx, link.connection);
  return outcome;
}

/** True also for an answer that was shown, opened or handed over: nobody says whether it was accepted. */
const isAccepted = (outcome: Outcome): boolean =>
  outcome.kind !== "delivered" || outcome.refusal === undefined;

async function entryOf(
  ctx: WalletContext,
  { action }: Link,
  { requester, outcome }: { requester: Requester; outcome: HistoryEntry["outcome"] },
): Promise<HistoryEntry> {
  const name = requester.known ? (requester.domain ?? requester.clientName) : requester.host;
  return {
    at: await ctx.now(),
    action,
    outcome,
    isVerified: requester.known && requester.domain !== undefined,
    ...(name === undefined ? {} : { requester: name }),
  };
}

/** How the answer is delivered; this is checked before anything is sent. @throws {WalletRefusal} unreachable */
function deliveryOf(link: Link, result: ResultOf[Action] | SentRefusal): Delivery {
  const connection = connectionOf(link);
  const returnType = returnTypeOf(link);
  const route = { returnType, ...(connection === undefined ? {} : { connection }) };
  const delivery = buildResult(result, route);
  if ("url" in delivery && /^http:/i.test(delivery.url)) requireSecure(delivery.url);
  return delivery;
}

async function deliver(
  ctx: WalletContext,
  delivery: Delivery,
  result: ResultOf[Action] | SentRefusal,
): Promise<Outcome> {
  switch (delivery.type) {
    case "callback":
      return post(ctx, delivery.url, delivery.body);
    case "app-link":
      return { kind: "opened", url: delivery.url };
    case "qr":
    case "text":
      return { kind: "shown", payload: delivery.payload };
    case "nfc": {
      const { mediaType, payload } = delivery;
      await ctx.nfc?.({ mediaType, payload });
      return { kind: "handed-over" };
    }
    case "p2p":
      break;
  }
  // A refusal contains nothing that would have to be picked up in secret.
  if ("error" in result) return { kind: "shown", payload: delivery.payload };
  const expiresAt = "expiresAt" in result ? result.expiresAt : (await ctx.now()) + pickUpSeconds;
  const left = await leaveInMailbox(ctx, delivery.payload, expiresAt);
  return { kind: "left", ...left };
}

async function post(
  ctx: WalletContext,
  url: string,
  body: Readonly<Record<string, unknown>>,
): Promise<Outcome> {
  const answer = await sendAnswer(ctx, url, body);
  const { claimSecret: _claimSecret, code: _code, ...shown } = body;
  const { status } = answer;
  const delivered = {
    kind: "delivered",
    status,
    result: shown,
    answer: membersOf(answer.text),
  } as const;
  return status < 300 ? delivered : { ...delivered, refusal: refusalOfAnswer(url, answer).message };
}

/** Calls the other side; from a page that may not do so, through the relay of the first broker. */
async function sendAnswer(
  ctx: WalletContext,
  url: string,
  body: Readonly<Record<string, unknown>>,
): Promise<CallAnswer> {
  const brokers = await ctx.brokers();
  const [relay] = brokers;
  const isForeign = !brokers.includes(originOfConnection(url) ?? "");
  if (!isForeign) return callWithRetries(ctx, { url, body });
  if (ctx.relaysAnswers !== true || relay === undefined) return call(ctx.fetch, { url, body });
  const path = "/w/relay";
  const relayed = await ctx.sessions.call(relay, { path, body: { url, body } });
  if (relayed.status !== 200) throw refusalOfAnswer(`${relay}${path}`, relayed);
  const { status, text } = membersOf(relayed.text);
  if (typeof status !== "number")
    throw new WalletRefusal("broker_refused", `${relay} relayed an invalid answer`);
  return { status, text: typeof text === "string" ? text : null };
}
