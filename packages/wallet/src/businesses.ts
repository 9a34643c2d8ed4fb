import {
  defaultGovernanceRule,
  encodeCharter,
  governanceActs,
  hexOfBytes,
  invitationDigest,
  isHexOf,
  isRecord,
  parseAddress,
  type Address,
  type BusinessRule,
  type GovernanceAct,
  type Hex,
  type Hex32,
  type RuleName,
} from "@svc/protocol";
import { askEach, askForList } from "./asking-brokers.ts";
import { addressOfBusiness, chainIdOf, readBusiness } from "./business-wallet.ts";
import type { WalletContext } from "./context.ts";
import { findItem } from "./inbox.ts";
import { readNamedCharter, type NamedCharter } from "./inbox-item.ts";
import { readItems, readPages } from "./pages.ts";
import { sayAct, sayFounding, sayProposal } from "./question.ts";
import { addRecord, getDroppingDamaged, hashedRecordKey } from "./records.ts";
import { WalletRefusal } from "./refusal.ts";
import { shownText } from "./shown-text.ts";
import type { StorageKey } from "./storage.ts";
import { membersOf, refusalOfAnswer } from "./transport.ts";
import { approveAgain, castVoteOn } from "./votes.ts";

/** A business that this identity is a member of. */
export interface OwnBusiness {
  readonly address: Address;
  readonly name: string;
  /** Origin of the broker that has it. */
  readonly broker: string;
  readonly environment: string;
  /** `inviting`, `deploying`, `active`, `suspended`, `moved` or `lapsed`. */
  readonly status: string;
  readonly charter: NamedCharter;
  /** The removal of a member that is under way, as the broker reports it; null if there is none. */
  readonly removal: Readonly<Record<string, unknown>> | null;
  /** A move to another wallet by the operator, which any member can end; null if there is none. */
  readonly move: Readonly<Record<string, unknown>> | null;
  /** What its members were asked to decide about it in the last 30 days, newest first. */
  readonly proposals: readonly ListedProposal[];
}

/** A proposal and its state. */
export interface ListedProposal {
  readonly id: string;
  readonly operation: string;
  /** `open`, `relaying` while the chain has it, `executed`, `failed`, `refused`, `expired` or `retracted`. */
  readonly status: string;
  /** What it does, one statement per line; empty if this wallet cannot tell. */
  readonly words: readonly string[];
  /** The state of the vote on it, as the broker reports it to members; null once it is decided. */
  readonly tally: ProposalTally | null;
}

interface ProposalTally {
  /** Until when it is voted on, Unix seconds. */
  readonly expiresAt: number;
  /** How many have to approve. */
  readonly needed: number;
  readonly approvals: number;
  readonly refusals: number;
}

/** A member of a business that is being founded. */
export interface NamedMember {
  readonly address: Address;
  /** The name that the others are shown; it is never on chain. */
  readonly name: string;
  readonly isVoting: boolean;
}

/** A business that is to be founded. */
export interface FoundingPlan {
  readonly name: string;
  readonly environment: "live" | "sandbox";
  /** All members, including the founder. */
  readonly members: readonly NamedMember[];
  /** MAJORITY if none is named; for governance UNANIMOUS if no more than two members have a vote. */
  readonly rules: Readonly<Partial<Record<RuleName, BusinessRule>>>;
}

/** What the members are asked to decide about their business itself. */
export type Proposal =
  | {
      readonly operation: "changeCharter";
      readonly members: readonly NamedMember[];
      readonly rules: Readonly<Record<RuleName, BusinessRule>>;
    }
  | { readonly operation: "moveTo"; readonly successor: Address }
  | { readonly operation: "startRemoval"; readonly member: Address }
  | { readonly operation: "withdraw"; readonly hash: Hex32 };

/** The result of a founding. */
export interface Founded {
  readonly invitationId: string;
  readonly address: Address;
  readonly status: string;
  /** Until when the others can sign, Unix seconds. */
  readonly deadline: number;
  /** What was founded and what it waits for, one statement per line. */
  readonly words: readonly string[];
}

/** The result of a proposal. */
export interface Proposed {
  readonly proposalId: string;
  readonly operation: Proposal["operation"];
  /** The status after this identity's own approval, as for a vote. */
  readonly status: string;
  /** What was proposed, one statement per line. */
  readonly words: readonly string[];
}

/** Brokers list 20 for each business. Each is put into words with all members: thousands would take minutes. */
const proposalsMax = 100;
const foundingSeconds = 7 * 86_400;
/** Brokers refuse a founding whose deadline is nearer than this. */
const foundingSecondsMin = 60;
/**
 * A proposer signs without having been shown when the vote ends, so an approval that would count for longer than this is
 * not signed.
 */
const votingSecondsMax = 30 * 86_400;
const list = { path: "/w/businesses", bytesMax: 2 * 1024 * 1024 };

/** The businesses of this identity, at every broker on the list. @throws {WalletRefusal} */
export async function listBusinesses(ctx: WalletContext): Promise<readonly OwnBusiness[]> {
  const { answers } = await askForList(ctx, async (broker) =>
    Array.fromAsync(readBusinesses(ctx, broker)),
  );
  return answers.flat();
}

function readBusinesses(ctx: WalletContext, broker: string): AsyncGenerator<OwnBusiness, void> {
  return readItems(ctx, broker, { ...list, read: (value) => businessOf(value, broker) });
}

/**
 * The business that is meant: the named one, or else the only active one in which this identity votes.
 *
 * @param at the only broker that may describe it; without it every broker on the list is asked, since otherwise one
 * broker could describe a business that another has, and that would be approved
 * @throws {WalletRefusal} not_found, invalid_input if there are several; the refusal of a broker that does not answer
 */
export async function chooseBusiness(
  ctx: WalletContext,
  named: Address | undefined,
  at?: string,
): Promise<OwnBusiness> {
  const [meant, other] =
    at === undefined ? await findMeantAnywhere(ctx, named) : await findMeant(ctx, at, named);
  if (meant === undefined) {
    const where = named === undefined ? "no business in which it votes" : `no business ${named}`;
    throw new WalletRefusal("not_found", `this identity has ${where}`);
  }
  if (other === undefined) return meant;
  throw new WalletRefusal(
    "invalid_input",
    named === undefined
      ? "this identity votes in several businesses: name one with --business 0x.."
      : `${meant.broker} and ${other.broker} both say that ${named} is theirs: remove one of them with broker remove`,
  );
}

/** @throws {WalletRefusal} that of the first broker that does not answer */
async function findMeantAnywhere(
  ctx: WalletContext,
  named: Address | undefined,
): Promise<readonly OwnBusiness[]> {
  const ask = async (broker: string) => findMeant(ctx, broker, named);
  const { answers, missing } = await askEach(ctx, ask);
  const [refusal] = missing.values();
  if (refusal !== undefined) throw refusal;
  return answers.flat();
}

/** The businesses on a broker's list that may be meant; two are enough to show that the choice is not clear. */
async function findMeant(
  ctx: WalletContext,
  broker: string,
  named: Address | undefined,
): Promise<readonly OwnBusiness[]> {
  const found: OwnBusiness[] = [];
  for await (const business of readBusinesses(ctx, broker)) {
    if (business.address === named) return [business];
    if (named !== undefined || business.status !== "active" || !hasVote(business.charter, ctx))
      continue;
    found.push(business);
    if (found.length > 1) break;
  }
  return found;
}

/**
 * Founds a business: signs the founder's own invitation and has the others invited. Until an answer arrives, the same
 * plan means the same business, so that repeating a call whose answer was lost does not found a second one.
 *
 * @param options.keeps extends that until `forgetFounding`, for a caller that has yet to show the result to a person
 * @throws {WalletRefusal} unsupported without a broker, broker_refused, unreachable
 */
export async function foundBusiness(
  ctx: WalletContext,
  plan: FoundingPlan,
  { keeps }: { readonly keeps?: true } = {},
): Promise<Founded> {
  const broker = await foundingBroker(ctx);
  const { name, environment, members } = plan;
  const asked = wireFounding(plan);
  const { rules } = asked;
  const charter = encodeCharter({ rules, members });
  const { value: page } = await readPages(ctx, broker, list).next();
  const factory = factoryOf(page?.members["factories"], environment);
  const chainId = await chainIdOf(ctx, broker);
  const key = keyOfFounding(ctx, broker, plan);
  const { salt, deadline } = await drawOnce(ctx, key);
  const digest = invitationDigest({ chainId, factory, salt, charter, deadline });
  const signature = await ctx.identity.sign(digest);
  const path = "/w/businesses";
  const body = { ...asked, salt, deadline, signature };
  const answer = await ctx.sessions.call(broker, { path, body });
  const isFounded = answer.status === 201 || answer.status === 200;
  // A limit or an outage does not say whether an earlier call, whose answer was lost, succeeded; any other answer does.
  if (answer.status < 500 && answer.status !== 429 && !(isFounded && keeps === true))
    await ctx.storage.remove(key);
  if (!isFounded) throw refusalOfAnswer(`${broker}${path}`, answer);
  const { invitationId, address, status } = membersOf(answer.text);
  const expected = addressOfBusiness({ factory, charter, salt });
  if (typeof invitationId !== "string" || typeof status !== "string" || address !== expected)
    throw new WalletRefusal(
      "broker_refused",
      `${broker} founded a business other than the one signed`,
    );
  const names = new Map(members.map((member) => [member.address, member.name]));
  const founding = { business: { address, name }, charter: { rules, members, names } };
  const words = sayFounding(founding, status);
  return { invitationId, address, status, deadline, words };
}

/** From now on the same plan means another business. @throws {WalletRefusal} unsupported without a broker */
export async function forgetFounding(ctx: WalletContext, plan: FoundingPlan): Promise<void> {
  await ctx.storage.remove(keyOfFounding(ctx, await foundingBroker(ctx), plan));
}

async function foundingBroker(ctx: WalletContext): Promise<string> {
  const [broker] = await ctx.brokers();
  if (broker === undefined) throw new WalletRefusal("unsupported", "this wallet knows no broker");
  return broker;
}

function wireFounding(plan: FoundingPlan) {
  const { name, environment, members } = plan;
  return { name, environment, members: members.map(wireMember), rules: rulesOf(plan) };
}

const keyOfFounding = ({ identity }: WalletContext, broker: string, plan: FoundingPlan) =>
  hashedRecordKey("founding", identity.address, broker, JSON.stringify(wireFounding(plan)));

const isHash = (value: unknown): value is Hex32 => isHexOf(value, 32);

/** What distinguishes two foundings of one plan. Kept while the broker may have it without this wallet knowing. */
async function drawOnce(
  ctx: WalletContext,
  key: StorageKey,
): Promise<{ salt: Hex32; deadline: number }> {
  const now = await ctx.now();
  const kept = await getDroppingDamaged(ctx, key);
  const earlier = readDrawn(kept, now);
  if (earlier !== null) return earlier;
  if (kept !== null) await ctx.storage.remove(key);
  const drawn = { salt: hexOfBytes(ctx.random(32)), deadline: now + foundingSeconds };
  // Another call with the same plan may have drawn meanwhile.
  return readDrawn(await addRecord(ctx, key, drawn), now) ?? drawn;
}

function readDrawn(kept: unknown, now: number): { salt: Hex32; deadline: number } | null {
  const { salt, deadline } = isRecord(kept) ? kept : {};
  const isUsable =
    isHash(salt) && typeof deadline === "number" && deadline > now + foundingSecondsMin;
  return isUsable ? { salt, deadline } : null;
}

/**
 * Says what a proposal does, one statement per line, before it is sent to anybody.
 *
 * @throws {WalletRefusal} invalid_request if the broker reports other members or rules than the chain has, since the
 * change would be based on those
 */
export async function sayProposed(
  ctx: WalletContext,
  business: OwnBusiness,
  proposal: Proposal,
): Promise<readonly string[]> {
  const { broker, address, name, charter } = business;
  const { charter: held } = await readBusiness(ctx, broker, address);
  if (encodeCharter(held) !== encodeCharter(charter))
    throw new WalletRefusal(
      "invalid_request",
      `${broker} reports other members or rules of ${address} than the chain does: nothing was proposed`,
    );
  const added = proposal.operation === "changeCharter" ? proposal.members : [];
  const names = new Map(added.map((member) => [member.address, member.name]));
  return sayProposal(
    { address, name },
    {
      ...actOf(proposal),
      names: new Map([...names, ...charter.names]),
      current: charter,
    },
  );
}

/**
 * Puts an act to the members and approves it, since a proposer is in favour of the proposal. The approval is signed
 * only if the vote is about exactly what was proposed.
 *
 * @throws {WalletRefusal}
 */
export async function propose(
  ctx: WalletContext,
  business: OwnBusiness,
  proposal: Proposal,
): Promise<Proposed> {
  const { broker, address } = business;
  const { operation } = proposal;
  const words = await sayProposed(ctx, business, proposal);
  const path = `/w/businesses/${address}/proposals`;
  const body = wireProposal(proposal);
  const answer = await ctx.sessions.ask(broker, { path, body }, [201, 200]);
  const { proposalId } = membersOf(answer.text);
  if (typeof proposalId !== "string")
    throw new WalletRefusal("broker_refused", `${broker} returned no proposal`);
  const found = await findItem(ctx, broker, proposalId);
  // To a repeated proposal the broker answers with the first one, which this wallet may have approved already.
  const again = found === null ? await approveAgain(ctx, proposalId) : null;
  if (again !== null) return { proposalId, operation, status: again.status, words };
  const item = found?.item;
  const isOwn =
    found !== null &&
    item?.kind === "governance" &&
    item.business.address === address &&
    item.operation.split("(", 1)[0] === operation &&
    item.arguments === actOf(proposal).arguments &&
    item.expiresAt <= (await ctx.now()) + votingSecondsMax;
  if (!isOwn) {
    // A proposal that the wallet refuses must not stay open at the broker. A broker that lies may keep it, but without
    // this member's approval.
    await retractProposal(ctx, business, proposalId).catch(() => undefined);
    if (found === null)
      throw new WalletRefusal(
        "not_found",
        "what was proposed does not wait for this identity's vote any more: look at the business again",
      );
    throw new WalletRefusal(
      "broker_refused",
      `${broker} asks for a vote on something other than what was proposed`,
    );
  }
  const { status } = await castVoteOn(ctx, found, { vote: "approve" });
  return { proposalId, operation, status, words };
}

/** Takes back what this identity proposed, before it is decided. @throws {WalletRefusal} broker_refused */
export async function retractProposal(
  ctx: WalletContext,
  { broker, address }: OwnBusiness,
  proposalId: string,
): Promise<void> {
  const path = `/w/businesses/${address}/proposals/${encodeURIComponent(proposalId)}/retract`;
  await ctx.sessions.ask(broker, { path, body: {} });
}

/** Ends a founding of this identity before everybody has signed. @throws {WalletRefusal} */
export async function abandonBusiness(
  ctx: WalletContext,
  { broker, address }: OwnBusiness,
): Promise<void> {
  const path = `/w/businesses/${address}/abandon`;
  await ctx.sessions.ask(broker, { path, body: {} });
}

/** Members with the names that the others gave them, in the order of the roster. */
export function namedMembersOf({ charter }: OwnBusiness): readonly NamedMember[] {
  return charter.members.map(({ address, isVoting }) => ({
    address,
    isVoting,
    name: charter.names.get(address) ?? "",
  }));
}

function actOf(proposal: Proposal): GovernanceAct {
  switch (proposal.operation) {
    case "changeCharter":
      return governanceActs.changeCharter(encodeCharter(proposal));
    case "moveTo":
      return governanceActs.moveTo(proposal.successor);
    case "startRemoval":
      return governanceActs.startRemoval(proposal.member);
    case "withdraw":
      break;
  }
  return governanceActs.withdraw(proposal.hash);
}

function wireProposal(proposal: Proposal): Readonly<Record<string, unknown>> {
  if (proposal.operation !== "changeCharter") return proposal;
  return { ...proposal, members: proposal.members.map(wireMember) };
}

function wireMember({ address, name, isVoting }: NamedMember): Readonly<Record<string, unknown>> {
  return { address, name, votingRights: isVoting };
}

function rulesOf({ rules, members }: FoundingPlan): Record<RuleName, BusinessRule> {
  const voters = members.filter(({ isVoting }) => isVoting).length;
  return {
    signature_requests: rules.signature_requests ?? "MAJORITY",
    data_requests: rules.data_requests ?? "MAJORITY",
    governance: rules.governance ?? defaultGovernanceRule(voters),
  };
}

const hasVote = (charter: NamedCharter, { identity }: WalletContext): boolean =>
  charter.members.some(({ address, isVoting }) => isVoting && address === identity.address);

function businessOf(value: unknown, broker: string): OwnBusiness | null {
  if (!isRecord(value)) return null;
  const { address, name, status, environment, removal, move, proposals } = value;
  const parsed = typeof address === "string" ? parseAddress(address) : null;
  const charter = readNamedCharter(value);
  if (parsed === null || charter === null) return null;
  if (typeof name !== "string" || typeof status !== "string") return null;
  return {
    address: parsed,
    name,
    broker,
    environment: typeof environment === "string" ? environment : "live",
    status,
    charter,
    removal: flatOf(removal),
    move: flatOf(move),
    proposals: Array.isArray(proposals)
      ? proposals.slice(0, proposalsMax).flatMap((each) => proposalOf(each, charter))
      : [],
  };
}

/** An object that a broker sent, without its nested values; null if it is no object. */
function flatOf(value: unknown): Readonly<Record<string, unknown>> | null {
  if (!isRecord(value)) return null;
  return Object.fromEntries(
    Object.entries(value).filter(([, each]) => each === null || typeof each !== "object"),
  );
}

function proposalOf(value: unknown, current: NamedCharter): readonly ListedProposal[] {
  if (!isRecord(value)) return [];
  const { id, operation, status, arguments: encoded, charter } = value;
  if (typeof id !== "string" || typeof operation !== "string" || typeof status !== "string")
    return [];
  const [name = ""] = operation.split("(", 1);
  const isOpen = status === "open";
  const next = readNamedCharter(charter)?.names ?? [];
  const words = sayAct({
    operation,
    arguments: typeof encoded === "string" && isHex(encoded) ? encoded : "0x",
    names: new Map([...next, ...current.names]),
    // Only an open proposal can be compared with the present charter: that which an earlier one changed is gone.
    current: isOpen ? current : null,
  });
  const shown = words.map(shownText);
  return [{ id, operation: name, status, words: shown, tally: isOpen ? tallyOf(value) : null }];
}

function tallyOf(value: Readonly<Record<string, unknown>>): ProposalTally | null {
  const { expiresAt, needed, approvals, refusals } = value;
  const isTold = [expiresAt, needed, approvals, refusals].every(Number.isSafeInteger);
  return isTold ? ({ expiresAt, needed, approvals, refusals } as ProposalTally) : null;
}

const isHex = (text: string): text is Hex => /^0x(?:[0-9a-f]{2})*$/.test(text);

function factoryOf(factories: unknown, environment: string): Address {
  const named = isRecord(factories) ? factories[environment] : null;
  const factory = typeof named === "string" ? parseAddress(named) : null;
  if (factory === null)
    throw new WalletRefusal("unsupported", `the broker makes no ${environment} businesses`);
  return factory;
}
