import {
  approvalDigest,
  encodeCharter,
  invitationDigest,
  isRecord,
  parseAddress,
  type Address,
  type Charter,
  type Hex,
} from "@svc/protocol";
import { addressOfBusiness, chainIdOf, readBusiness } from "./business-wallet.ts";
import { ConcernsRefusal, type Concern } from "./concern.ts";
import type { WalletContext } from "./context.ts";
import { signDecline } from "./decline.ts";
import { placeOf, recordAt, type HistoryEntry, type Noted } from "./history.ts";
import type { GovernanceItem, InboxItem, InboxKind, InvitationItem } from "./inbox-item.ts";
import { askInTurn } from "./asking-brokers.ts";
import { findItem, type FoundItem } from "./inbox.ts";
import { endRemoval } from "./keep.ts";
import { questionOf, releasedOptional, sayAsker } from "./question.ts";
import {
  getDroppingDamaged,
  getRecord,
  listDroppingDamaged,
  putRecord,
  hashedRecordKey,
  type RecordContext,
} from "./records.ts";
import { WalletRefusal } from "./refusal.ts";
import { readShown } from "./shown-items.ts";
import type { StorageKey } from "./storage.ts";
import { membersOf } from "./transport.ts";

/** What a member decides. */
export interface Decision {
  readonly vote: "approve" | "reject";
  /** Optional fields of a data request that are withheld. */
  readonly without?: readonly string[];
  /** The concerns that were confirmed. */
  readonly accept?: ReadonlySet<Concern>;
  /** The kind that the caller expects; if the item is of another kind, there is no vote. */
  readonly kind?: InboxKind;
}

/** The state of an item after a vote. */
export interface VoteOutcome {
  readonly id: string;
  readonly kind: string;
  readonly vote: Decision["vote"];
  /** As the broker says: `open`, `approved` or `refused`. */
  readonly status: string;
  /**
   * If this identity was being removed from the business: whether the vote ended that. `open` if the wallet cannot read
   * which business it was; then `keepMembership` ends it.
   */
  readonly removal?: "ended" | "open";
}

/** A vote as it was sent, stored so that it can be sent again if the answer is lost. */
interface SentVote {
  readonly broker: string;
  readonly kind: string;
  /** Null if the item could not be read. */
  readonly business: Address | null;
  readonly expiresAt: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** Null in records of earlier versions. */
  readonly noted: Noted | null;
}

/** Approvals count on chain for this long after the end of voting, in seconds (decisions, section 6, Approval). */
export const chainGraceSeconds = 3600;

/**
 * Votes on what waits in the inbox. An approval is signed over what this wallet recomputes from what it shows, by a
 * current member in the epoch that the chain has, and only if that is what the inbox showed last; a rejection names
 * where it is sent. The same vote made again is sent again. A member who votes is not lost, so the vote ends a removal
 * of this identity.
 *
 * @throws {ConcernsRefusal} when a concern is not accepted
 * @throws {WalletRefusal} not_found, invalid_input, invalid_request for what is never approved, expired, chain_refused,
 * broker_refused
 */
export async function castVote(
  ctx: WalletContext,
  id: string,
  decision: Decision,
): Promise<VoteOutcome> {
  if (!isVote(decision.vote))
    throw new WalletRefusal("invalid_input", "a vote is either approve or reject");
  const shown = await readShown(ctx);
  // A broker may send something else under the id that the person chose, or under the id of another broker's item.
  const brokers = await ctx.brokers();
  const [showed, ...others] = shown.brokersOf(id).filter((broker) => brokers.includes(broker));
  if (others.length > 0)
    throw new WalletRefusal(
      "invalid_request",
      `${[showed, ...others].join(" and ")} both show something as ${id}: remove one of them with broker remove`,
    );
  const { found, unasked } = await askInTurn(ctx, async (broker) =>
    showed === undefined || showed === broker ? findItem(ctx, broker, id) : null,
  );
  if (found === null) return sendVoteAgain(ctx, { id, decision, unasked });
  requireKind(id, found.kind, decision);
  const { vote, without = [] } = decision;
  if (vote === "approve" && shown.isOther(found, without))
    throw new WalletRefusal("invalid_request", "it is not what was shown: look at the inbox again");
  return castVoteOn(ctx, found, decision);
}

/** JavaScript callers may pass anything: `vote: "no"` must not count as an approval. */
function isVote(vote: unknown): boolean {
  return vote === "approve" || vote === "reject";
}

/** @throws {WalletRefusal} invalid_input if it is of another kind than expected */
function requireKind(id: string, found: string, { kind }: Decision): void {
  if (kind === undefined || kind === found) return;
  throw new WalletRefusal(
    "invalid_input",
    `${id} is of the kind ${found}, not ${kind}: decide on it with vote ${id}`,
  );
}

/** Votes on exactly this item. @throws {WalletRefusal} as {@link castVote} */
export async function castVoteOn(
  ctx: WalletContext,
  found: FoundItem,
  decision: Decision,
): Promise<VoteOutcome> {
  const { id, broker, kind, item } = found;
  const body =
    decision.vote === "reject"
      ? await refuse(ctx, found)
      : await approve(ctx, { broker, item: readable(item), decision });
  const expiresAt = item?.expiresAt ?? (await ctx.now());
  const entry = await entryOf(ctx, found, decision);
  const noted = (await findNoted(ctx, id, body)) ?? { place: placeOf(ctx, entry), entry };
  const business = item?.business.address ?? null;
  const vote = { broker, kind, business, expiresAt, body, noted };
  return outcomeOf(ctx, { id, vote, answer: await send(ctx, id, vote) });
}

function readable(item: InboxItem | null): InboxItem {
  if (item !== null) return item;
  throw new WalletRefusal("invalid_request", "this wallet cannot read what it would approve");
}

async function refuse(
  ctx: WalletContext,
  { id, broker }: FoundItem,
): Promise<Readonly<Record<string, unknown>>> {
  const { signature } = await signDecline(ctx, {
    request: id,
    connection: `${broker}/w/votes/${id}`,
  });
  return { vote: "reject", signature };
}

async function approve(
  ctx: WalletContext,
  { broker, item, decision }: { broker: string; item: InboxItem; decision: Decision },
): Promise<Readonly<Record<string, unknown>>> {
  const { without = [], accept } = decision;
  checkWithheld(item, without);
  const chainId = await chainIdOf(ctx, broker);
  const { hash, concerns, refusal } = questionOf(item, { broker, chainId }, { without });
  if (refusal !== null) throw new WalletRefusal("invalid_request", refusal);
  if (item.expiresAt < (await ctx.now())) throw new WalletRefusal("expired", "the vote has ended");
  const open = concerns.filter((concern) => accept?.has(concern) !== true);
  if (open.length > 0) throw new ConcernsRefusal(open, sayAsker(item, { broker }));
  if (item.kind === "invitation")
    return { vote: "approve", signature: await signInvitation(ctx, item) };
  if (hash === null) throw new WalletRefusal("invalid_request", "there is nothing to approve");
  await checkMembership(ctx, broker, item);
  const { category, epoch, validUntil, business } = item;
  if (validUntil > item.expiresAt + chainGraceSeconds)
    throw new WalletRefusal("invalid_request", "the approval would last longer than votes do");
  const approval = { chainId, business: business.address, category, hash, epoch, validUntil };
  const signature = await ctx.identity.sign(approvalDigest(approval));
  const optional =
    item.kind === "data_request" ? { optional: releasedOptional(item, { without }) } : {};
  return { vote: "approve", signature, epoch, validUntil, ...optional };
}

/** A field that is withheld has to be optional, and the choice still open. */
function checkWithheld(item: InboxItem, without: readonly string[]): void {
  if (without.length === 0) return;
  if (item.kind !== "data_request")
    throw new WalletRefusal("invalid_input", "this vote is not about fields");
  const known = new Set<string>([...item.optional, ...item.unavailable]);
  const required = without.find((name) => !known.has(name));
  if (required !== undefined)
    throw new WalletRefusal("invalid_input", `${required} is not among the optional fields`);
  const gone = without.find((name) => item.fixedOptional?.includes(name as never));
  if (gone !== undefined)
    throw new WalletRefusal(
      "invalid_input",
      `another member has already decided that ${gone} is released: approve exactly that, or reject`,
    );
}

/**
 * Checks on the chain, not by what the item says, that this identity has a vote in the business now, and so has the
 * member whose login it decides on.
 */
async function checkMembership(
  ctx: WalletContext,
  broker: string,
  item: Exclude<InboxItem, InvitationItem>,
): Promise<void> {
  const { address } = item.business;
  const { charter, epoch, nonce } = await readBusiness(ctx, broker, address);
  requireVote(charter, ctx.identity.address, address);
  if (item.kind === "business_login") requireVote(charter, item.actingMember, address);
  const isStale = epoch !== item.epoch;
  const isOtherAct =
    item.kind === "governance" && (nonce !== item.nonce || !isCurrent(item, charter));
  if (isStale || isOtherAct)
    throw new WalletRefusal("invalid_request", "the business has changed: look at the inbox again");
}

/** @throws {WalletRefusal} invalid_request */
function requireVote({ members }: Charter, member: Address, business: Address): void {
  if (members.some(({ address, isVoting }) => isVoting && address === member)) return;
  throw new WalletRefusal("invalid_request", `${member} has no vote in ${business}`);
}

/** Whether the charter that was shown as the present one is what the chain has. */
function isCurrent({ current }: GovernanceItem, charter: Charter): boolean {
  return current === null || encodeCharter(current) === encodeCharter(charter);
}

async function signInvitation(ctx: WalletContext, item: InvitationItem): Promise<Hex> {
  const { chainId, factory, salt, deadline, business } = item;
  const charter = encodeCharter(item.charter);
  const isInvited = item.charter.members.some(({ address }) => address === ctx.identity.address);
  if (!isInvited) throw new WalletRefusal("invalid_request", "this identity is not on the roster");
  if (addressOfBusiness({ factory, charter, salt }) !== business.address)
    throw new WalletRefusal(
      "invalid_request",
      "the wallet would have a different address from the one shown",
    );
  return ctx.identity.sign(invitationDigest({ chainId, factory, salt, charter, deadline }));
}

type Answer = Readonly<Record<string, unknown>>;

async function send(ctx: WalletContext, id: string, vote: SentVote): Promise<Answer> {
  const { broker, body, noted } = vote;
  // Stored before it is sent: whatever happens then, the same vote can be sent again, and has one entry in the history.
  await keepVote(ctx, id, vote);
  if (noted !== null) await note(ctx, noted);
  const path = `/w/votes/${encodeURIComponent(id)}`;
  const answer = await ctx.sessions.ask(broker, { path, body });
  if (noted !== null) await putRecord(ctx, noted.place, noted.entry);
  return membersOf(answer.text);
}

/** The outcome of a vote. On the chain a removal ends by a separate signature, which the broker asks for. */
async function outcomeOf(
  ctx: WalletContext,
  { id, vote, answer }: { id: string; vote: SentVote; answer: Answer },
): Promise<VoteOutcome> {
  const { broker, kind, business: address, body } = vote;
  const { status, removalOpen } = answer;
  const outcome: VoteOutcome = {
    id,
    kind,
    vote: body["vote"] === "reject" ? "reject" : "approve",
    status: typeof status === "string" ? status : "open",
  };
  if (removalOpen !== true) return outcome;
  if (address === null) return { ...outcome, removal: "open" };
  await endRemoval(ctx, { address, broker });
  return { ...outcome, removal: "ended" };
}

/** Sends the same vote again that this wallet stored. @throws {WalletRefusal} not_found if it stored no such vote */
async function sendVoteAgain(
  ctx: WalletContext,
  { id, decision, unasked }: { id: string; decision: Decision; unasked: WalletRefusal | null },
): Promise<VoteOutcome> {
  const sent = await getRecord(ctx, keyOfVote(ctx, id));
  const { broker, kind, business, expiresAt, body, noted } = isRecord(sent) ? sent : {};
  const isSame = isRecord(body) && body["vote"] === decision.vote;
  const isListed = typeof broker === "string" && (await ctx.brokers()).includes(broker);
  if (!isSame || !isListed) {
    const earlier = isRecord(body) && !isSame ? ", which has sent another vote on it before" : "";
    const fault = `nothing of the id ${id} waits for this identity${earlier}`;
    throw unasked ?? new WalletRefusal("not_found", fault);
  }
  requireKind(id, String(kind), decision);
  const given: readonly unknown[] = Array.isArray(body["optional"]) ? body["optional"] : [];
  const gone = decision.without?.find((name) => given.includes(name));
  if (gone !== undefined)
    throw new WalletRefusal(
      "invalid_input",
      `you have already approved the release of ${gone}: it can no longer be withheld`,
    );
  const again = {
    broker,
    kind: String(kind),
    business: typeof business === "string" ? parseAddress(business) : null,
    expiresAt: typeof expiresAt === "number" ? expiresAt : 0,
    body,
    noted: isRecord(noted) ? (noted as unknown as Noted) : null,
  };
  return outcomeOf(ctx, { id, vote: again, answer: await send(ctx, id, again) });
}

/** Sends an approval again that this wallet cast before; null if it has cast none under this id. */
export async function approveAgain(ctx: WalletContext, id: string): Promise<VoteOutcome | null> {
  const kept = await getDroppingDamaged(ctx, keyOfVote(ctx, id));
  const { body } = isRecord(kept) ? kept : {};
  if (!isRecord(body) || body["vote"] !== "approve") return null;
  return sendVoteAgain(ctx, { id, decision: { vote: "approve" }, unasked: null });
}

async function keepVote(ctx: WalletContext, id: string, vote: SentVote): Promise<void> {
  await putRecord(ctx, keyOfVote(ctx, id), vote);
  const now = await ctx.now();
  // A record that cannot be read could not be sent again either.
  for (const { key, value } of await listDroppingDamaged(ctx, "vote")) {
    const expiresAt = isRecord(value) ? value["expiresAt"] : null;
    if (typeof expiresAt !== "number" || expiresAt + chainGraceSeconds < now)
      await ctx.storage.remove(key);
  }
}

/** Where the history already has the same vote, sent or not; null if it has none. */
async function findNoted(
  ctx: WalletContext,
  id: string,
  body: SentVote["body"],
): Promise<Noted | null> {
  const kept = await getDroppingDamaged(ctx, keyOfVote(ctx, id));
  const { body: sent, noted } = isRecord(kept) ? kept : {};
  if (JSON.stringify(sent) !== JSON.stringify(body) || !isRecord(noted)) return null;
  return noted as unknown as Noted;
}

/** Called before the vote is sent: a broker could prevent an entry that is written only after its answer. */
async function note(ctx: WalletContext, { place, entry }: Noted): Promise<void> {
  if ((await getDroppingDamaged(ctx, place)) !== null) return;
  const isApproval = entry.outcome === "approved";
  await recordAt(ctx, place, isApproval ? { ...entry, outcome: "sent" } : entry);
}

function keyOfVote({ identity }: RecordContext, id: string): StorageKey {
  return hashedRecordKey("vote", identity.address, id);
}

async function entryOf(
  ctx: WalletContext,
  { id, item }: FoundItem,
  { vote, without = [] }: Decision,
): Promise<HistoryEntry> {
  const requester = item?.requester ?? null;
  const name = requester?.domain ?? requester?.name;
  const isRelease = item?.kind === "data_request" && vote === "approve";
  return {
    at: await ctx.now(),
    action: "vote",
    outcome: vote === "approve" ? "approved" : "declined",
    isVerified: requester?.domain !== undefined,
    id,
    ...(name === undefined ? {} : { requester: name }),
    ...(item === null ? {} : { business: item.business.address }),
    ...(item !== null && "purpose" in item ? { purpose: item.purpose } : {}),
    ...(isRelease
      ? { fields: [...item.required, ...releasedOptional(item, { without })], withheld: without }
      : {}),
  };
}
