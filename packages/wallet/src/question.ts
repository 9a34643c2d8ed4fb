import {
  bytesOfHex,
  bytesOfText,
  businessLoginHash,
  decodeCharter,
  governanceActs,
  governanceHash,
  hashTypedData,
  hexOfBytes,
  parseAddress,
  personalDigest,
  refusalOfMessage,
  refusalOfTypedData,
  releaseHash,
  TypedDataFault,
  warningsOfMessage,
  warningsOfTypedData,
  type Address,
  type BusinessRule,
  type Charter,
  type GovernanceAct,
  type Hex32,
  type TypedDataDocument,
} from "@svc/protocol";
import { bytesAt, wordOf } from "./business-wallet.ts";
import { sayConcern, type Concern } from "./concern.ts";
import type {
  BusinessLoginItem,
  DataRequestItem,
  GovernanceItem,
  InboxItem,
  InvitationItem,
  SignatureRequestItem,
} from "./inbox-item.ts";
import { sayVouched } from "./requester.ts";
import { quotedName, shownText } from "./shown-text.ts";
import { sayTypedData } from "./typed-data-words.ts";

/** What a member of a business is asked, in words and as the hash that an approval would name. */
export interface Question {
  /** One statement per line. */
  readonly words: readonly string[];
  readonly concerns: readonly Concern[];
  /** Why this wallet never approves it; null if it may. */
  readonly refusal: string | null;
  /** Recomputed from what the words show (decisions, section 6, Approval); null for an invitation, which is signed by itself. */
  readonly hash: Hex32 | null;
}

/** How a member would answer, as far as it changes the hash. */
export interface Release {
  /** Optional names that are not released. */
  readonly without: readonly string[];
}

/** Where a question came from. */
export interface Origin {
  readonly broker: string;
  /** The id of the chain that the wallet knows behind this broker. */
  readonly chainId: number;
}

/** What an item asks. Hashes are never taken from the item, only computed. */
export function questionOf(item: InboxItem, origin: Origin, release: Release): Question {
  const question = questionByKind(item, origin, release);
  const isElsewhere = item.chainId !== origin.chainId;
  return isElsewhere
    ? { ...question, refusal: "it names another chain than the broker's", hash: null }
    : question;
}

function questionByKind(item: InboxItem, origin: Origin, release: Release): Question {
  switch (item.kind) {
    case "data_request":
      return dataQuestion(item, origin, release);
    case "signature_request":
      return signatureQuestion(item, origin);
    case "business_login":
      return loginQuestion(item, origin);
    case "governance":
      return governanceQuestion(item);
    case "invitation":
      break;
  }
  return invitationQuestion(item);
}

/**
 * The optional names that would be released: those that another member's approval fixed, or else those that are not
 * withheld.
 */
export function releasedOptional(
  { fixedOptional, optional }: DataRequestItem,
  { without }: Release,
): readonly string[] {
  return fixedOptional ?? optional.filter((name) => !without.includes(name));
}

const publicWords = "Approvals stand in public on the chain, with the addresses of who approved.";
const quietWords = "Whoever asks learns neither who approved nor how many.";

function dataQuestion(item: DataRequestItem, origin: Origin, release: Release): Question {
  const { id, audience, business, required, optional, fixedOptional, purpose, deadline } = item;
  const released = releasedOptional(item, release);
  const sayOptional = (name: string): string => {
    const goes = released.includes(name);
    const by = fixedOptional === null ? "" : ", as another member decided";
    return `Optional: ${name} (${goes ? "goes" : "stays"}${by}).`;
  };
  return {
    words: [
      `${sayAsker(item, origin)} asks ${sayBusiness(item)} for verified company data.`,
      `Purpose: ${JSON.stringify(purpose)}.`,
      ...required.map((name) => `Required: ${name}.`),
      ...optional.map(sayOptional),
      quietWords,
    ],
    concerns: [],
    refusal: refusalOfEnd(item),
    hash: releaseHash({
      requestId: id,
      audience,
      business: business.address,
      required,
      optional: released,
      purpose,
      deadline,
    }),
  };
}

function signatureQuestion(item: SignatureRequestItem, origin: Origin): Question {
  const { document, purpose } = item;
  const { refusal, hash, words, concerns } =
    document.messageKind === "TEXT"
      ? readText(document.message, item)
      : readTypedData(document.typedData, origin);
  const isOther = hash !== null && hash !== item.digest.toLowerCase();
  return {
    words: [
      `${sayAsker(item, origin)} asks ${sayBusiness(item)} to sign.`,
      `Purpose: ${JSON.stringify(purpose)}.`,
      ...concerns.map((concern) => `Careful: ${sayConcern(concern)}.`),
      ...words,
      "The signature lasts, whoever the members are later, until a vote takes it back.",
      publicWords,
    ],
    concerns,
    refusal: refusal ?? (isOther ? "the digest that was sent is not that of the document" : null),
    hash,
  };
}

type Content = Pick<Question, "refusal" | "hash" | "words" | "concerns">;

function readText(message: string, { requester }: SignatureRequestItem): Content {
  const bytes = bytesOfText(message);
  const domain = requester?.domain;
  const site = `https://${domain ?? ""}`;
  const isSite = domain !== undefined && URL.canParse(site);
  return {
    refusal: refusalOfMessage(bytes, isSite ? site : undefined)?.reason ?? null,
    hash: hexOfBytes(personalDigest(bytes)),
    words: message.split("\n").map((line) => `Text: ${JSON.stringify(line)}`),
    concerns: warningsOfMessage(bytes),
  };
}

function readTypedData(document: TypedDataDocument, { chainId }: Origin): Content {
  const nothing = { hash: null, words: [], concerns: [] };
  try {
    const reserved = refusalOfTypedData(document);
    if (reserved !== null) return { ...nothing, refusal: reserved.reason };
    const hash = hashTypedData(document);
    // A business holds no assets and signs for nobody's account, so a document that moves assets is never meant for it.
    const [warning] = warningsOfTypedData(document);
    const named = document.domain["chainId"];
    // The types may declare it as anything: a list of one number would pass for that number.
    const isNumber = typeof named === "number" || typeof named === "string";
    const isElsewhere = named !== undefined && !(isNumber && Number(named) === chainId);
    const elsewhere = isElsewhere ? "the document is for another chain" : null;
    const refusal = warning === undefined ? elsewhere : sayConcern(warning);
    return { refusal, hash, words: sayTypedData(document), concerns: [] };
  } catch (fault) {
    if (!(fault instanceof TypedDataFault)) throw fault;
    return { ...nothing, refusal: `the document cannot be read: ${fault.message}` };
  }
}

function loginQuestion(item: BusinessLoginItem, { broker }: Origin): Question {
  const { id, session, issuer, clientId, clientName, requester, scope, actingMember } = item;
  const domain = requester?.domain ?? "";
  const isOther = session !== id || issuer !== broker;
  return {
    words: [
      `${actingMember} wants to log in for ${sayBusiness(item)} at ${sayVouched(clientName, { ...requester, broker })}.`,
      `It asks for: ${scope}.`,
      quietWords,
    ],
    concerns: [],
    refusal: isOther ? "the login is another than the vote says" : null,
    hash: businessLoginHash({
      session,
      issuer,
      clientId,
      requester: domain,
      scope,
      business: item.business.address,
      actingMember,
    }),
  };
}

function governanceQuestion(item: GovernanceItem): Question {
  const act = actOf(item);
  const encoded = act?.act.arguments;
  const words = [sayDecided(item)];
  if (act === null || encoded !== item.arguments)
    return {
      words,
      concerns: [],
      refusal: "this wallet cannot tell what the act would do",
      hash: null,
    };
  return {
    words: [...words, ...act.words, publicWords],
    concerns: [],
    refusal: null,
    hash: governanceHash({ ...act.act, nonce: item.nonce }),
  };
}

/** The parts of an act from which its words are made. */
type SaidAct = Pick<GovernanceItem, "operation" | "arguments" | "names" | "current">;

/** What an act of governance does, in words; empty if this wallet cannot tell. */
export function sayAct(act: SaidAct): readonly string[] {
  return actOf(act)?.words ?? [];
}

/** What a proposal would put to the members of a business, in the words that each of them will read. */
export function sayProposal(business: InboxItem["business"], act: SaidAct): readonly string[] {
  return [sayDecided({ business }), ...sayAct(act), publicWords].map(shownText);
}

/** What an act does, reconstructed from its arguments. */
function actOf(item: SaidAct): { act: GovernanceAct; words: readonly string[] } | null {
  const [operation] = item.operation.split("(", 1);
  if (operation === "changeCharter") {
    const packed = bytesAt(bytesOfHex(item.arguments) ?? new Uint8Array(0));
    const charter = decodeCharter(packed);
    if (charter === null) return null;
    const words = [
      ...sayChanges(charter, item),
      "From then on:",
      ...sayCharter(charter, item.names),
    ];
    return { act: governanceActs.changeCharter(packed), words };
  }
  const word = wordOf(item.arguments);
  if (word === null) return null;
  if (operation === "withdraw") {
    const hash = hexOfBytes(word);
    const words = [`It takes back the signature of ${hash}.`];
    return { act: governanceActs.withdraw(hash), words };
  }
  const named = parseAddress(hexOfBytes(word.subarray(12)));
  if (named === null) return null;
  if (operation === "moveTo") {
    const words = [
      `The business goes on in the wallet ${named}, for good; this one decides nothing more.`,
    ];
    return { act: governanceActs.moveTo(named), words };
  }
  if (operation !== "startRemoval") return null;
  const words = [
    `${sayMember(named, item.names)} seems lost and is removed in 30 days, unless that member answers before.`,
  ];
  return { act: governanceActs.startRemoval(named), words };
}

function invitationQuestion(item: InvitationItem): Question {
  return {
    words: [
      `You are invited to found the business ${quotedName(item.business.name)}.`,
      ...sayBusinessToBe(item),
    ],
    concerns: [],
    refusal: refusalOfEnd(item),
    hash: null,
  };
}

/** What was founded, in the words that the others are shown, and what it waits for. */
export function sayFounding(
  founding: Pick<InvitationItem, "business" | "charter">,
  status: string,
): readonly string[] {
  const isComplete = founding.charter.members.length === 1;
  const name = quotedName(founding.business.name);
  return [
    isComplete
      ? `The business ${name} is founded by you alone.`
      : `The other members are invited to found the business ${name}.`,
    ...sayBusinessToBe(founding),
    status === "inviting"
      ? "Each of them accepts in a wallet of their own within 7 days; the wallet of the business is deployed once all have."
      : "Everybody has signed: the wallet of the business is being deployed.",
    "`business list` shows how far it is.",
  ];
}

function sayBusinessToBe({ business, charter }: Pick<InvitationItem, "business" | "charter">) {
  return [
    `Its wallet will be ${business.address}.`,
    ...sayCharter(charter, charter.names),
    "Rules and the addresses of the members stand in public on the chain; names do not.",
  ];
}

/** The end that is signed must be the one that is shown. */
function refusalOfEnd({ deadline, expiresAt }: DataRequestItem | InvitationItem): string | null {
  return deadline === expiresAt ? null : "what is signed would end at another time than is shown";
}

const ruleWords = {
  signature_requests: "Signatures and logins",
  data_requests: "Releases of data",
  governance: "Changes of members and rules",
} as const;
const ruleOrder = ["signature_requests", "data_requests", "governance"] as const;

/**
 * Who joins, who leaves, and what else changes; one line each. Nothing if the broker does not say how it was before.
 */
function sayChanges({ rules, members }: Charter, { current, names }: SaidAct): string[] {
  if (current === null) return [];
  const before = new Map(current.members.map(({ address, isVoting }) => [address, isVoting]));
  const after = new Set(members.map(({ address }) => address));
  return [
    ...members.flatMap(({ address, isVoting }) => {
      const member = sayMember(address, names);
      const had = before.get(address);
      if (had === undefined) return [`New: ${member}, ${sayVote(isVoting)}.`];
      return had === isVoting ? [] : [`Changed: ${member}, from now on ${sayVote(isVoting)}.`];
    }),
    ...current.members
      .filter(({ address }) => !after.has(address))
      .map(({ address }) => `No longer a member: ${sayMember(address, names)}.`),
    ...ruleOrder
      .filter((name) => rules[name] !== current.rules[name])
      .map((name) => `Changed: ${ruleWords[name]}, so far ${sayRule(current.rules[name])}.`),
  ];
}

/** Rules and members, one line each. */
function sayCharter(
  { rules, members }: Charter,
  names: ReadonlyMap<Address, string>,
): readonly string[] {
  return [
    ...ruleOrder.map((name) => `${ruleWords[name]}: ${sayRule(rules[name])} must approve.`),
    ...members.map(
      ({ address, isVoting }) => `Member: ${sayMember(address, names)}, ${sayVote(isVoting)}.`,
    ),
  ];
}

const sayRule = (rule: BusinessRule): string =>
  rule === "UNANIMOUS" ? "all voting members" : "more than half of the voting members";

const sayVote = (isVoting: boolean): string => (isVoting ? "with a vote" : "without a vote");

function sayMember(address: Address, names: ReadonlyMap<Address, string>): string {
  const name = names.get(address) ?? "";
  return name === "" ? address : `${quotedName(name)} (${address})`;
}

function sayDecided(item: Pick<InboxItem, "business">): string {
  return `The members of ${sayBusiness(item)} are asked to decide.`;
}

function sayBusiness({ business }: Pick<InboxItem, "business">): string {
  return `${quotedName(business.name)} (${business.address})`;
}

/** Who asks a business, as the subject of "asks ..". */
export function sayAsker({ requester }: InboxItem, { broker }: Pick<Origin, "broker">): string {
  if (requester === null) return "The business itself";
  return sayVouched(requester.name, { ...requester, broker });
}
