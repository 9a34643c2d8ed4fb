import {
  businessCategory,
  charterMembersMax,
  governanceFunctions,
  isBusinessField,
  isHexOf,
  isRecord,
  parseAddress,
  secondsMax,
  type Address,
  type BusinessCategory,
  type BusinessFieldName,
  type Charter,
  type Hex,
  type Hex32,
  type TypedDataDocument,
} from "@svc/protocol";

/** What a broker puts to a member of a business. */
export type InboxKind =
  | "data_request"
  | "signature_request"
  | "business_login"
  | "governance"
  | "invitation";

/** Who asks a business, as the broker that vouches for it says. */
interface InboxRequester {
  readonly name: string;
  /** Verified by the broker; absent if none is verified. */
  readonly domain?: string;
}

/** Members with the names that their fellows gave them, and rules. */
export interface NamedCharter extends Charter {
  readonly names: ReadonlyMap<Address, string>;
}

/** The members that all kinds have. */
interface Common {
  readonly id: string;
  readonly business: { readonly address: Address; readonly name: string };
  readonly chainId: number;
  /** No vote is accepted after this, Unix seconds. */
  readonly expiresAt: number;
  /** Null if the business itself asks. */
  readonly requester: InboxRequester | null;
}

/** What an approval names in addition to its hash. */
interface Voted extends Common {
  readonly category: BusinessCategory;
  readonly epoch: number;
  /** Unix seconds. */
  readonly validUntil: number;
}

export interface DataRequestItem extends Voted {
  readonly kind: "data_request";
  readonly audience: string;
  readonly required: readonly BusinessFieldName[];
  readonly optional: readonly BusinessFieldName[];
  /** Optional fields that the business does not have, so they cannot be released. */
  readonly unavailable: readonly BusinessFieldName[];
  /** The optional fields that are released, once another member's approval has fixed them. */
  readonly fixedOptional: readonly BusinessFieldName[] | null;
  readonly purpose: string;
  readonly deadline: number;
}

export interface SignatureRequestItem extends Voted {
  readonly kind: "signature_request";
  readonly document:
    | { readonly messageKind: "TEXT"; readonly message: string }
    | { readonly messageKind: "TYPED_DATA"; readonly typedData: TypedDataDocument };
  /** As the broker sent it: it is compared, never signed. */
  readonly digest: string;
  readonly purpose: string;
}

export interface BusinessLoginItem extends Voted {
  readonly kind: "business_login";
  readonly session: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly scope: string;
  readonly actingMember: Address;
}

export interface GovernanceItem extends Voted {
  readonly kind: "governance";
  /** The name of the contract's function, as it was sent. */
  readonly operation: string;
  readonly arguments: Hex;
  readonly nonce: number;
  /** Names of members, only to be shown; an approval does not cover names. */
  readonly names: ReadonlyMap<Address, string>;
  /**
   * The charter that would change, according to the broker; before an approval the chain is asked. Null if the broker
   * does not say.
   */
  readonly current: NamedCharter | null;
}

export interface InvitationItem extends Common {
  readonly kind: "invitation";
  readonly factory: Address;
  readonly salt: Hex32;
  readonly charter: NamedCharter;
  readonly deadline: number;
}

export type InboxItem =
  | DataRequestItem
  | SignatureRequestItem
  | BusinessLoginItem
  | GovernanceItem
  | InvitationItem;

/** Thrown while an item is read; never leaves this file. */
class Unreadable extends Error {
  override name = "Unreadable";
}

type Members = Readonly<Record<string, unknown>>;

const categoryOfKind = {
  data_request: businessCategory.data,
  signature_request: businessCategory.signature,
  business_login: businessCategory.login,
  governance: businessCategory.governance,
} as const;

/** Reads one item; null where a member that the approval is recomputed from is missing or of the wrong form. */
export function readInboxItem(value: unknown): InboxItem | null {
  try {
    return isRecord(value) ? readItem(value) : null;
  } catch (error) {
    if (error instanceof Unreadable) return null;
    throw error;
  }
}

function readItem(item: Members): InboxItem {
  const { kind } = item;
  const common = readCommon(item);
  if (kind === "invitation")
    return {
      ...common,
      kind,
      factory: address(item, "factory"),
      salt: hash(item, "salt"),
      charter: readCharter(item["charter"]),
      deadline: moment(item, "deadline"),
    };
  const isKnown = typeof kind === "string" && Object.hasOwn(categoryOfKind, kind);
  if (!isKnown) throw new Unreadable();
  const known = kind as keyof typeof categoryOfKind;
  const voted = {
    ...common,
    category: categoryOfKind[known],
    epoch: whole(item, "epoch"),
    validUntil: moment(item, "validUntil"),
  };
  if (item["category"] !== voted.category) throw new Unreadable();
  switch (known) {
    case "data_request":
      return { ...voted, kind: known, ...readDataRequest(item) };
    case "signature_request":
      return { ...voted, kind: known, ...readSignatureRequest(item) };
    case "business_login":
      return { ...voted, kind: known, ...readLogin(item) };
    case "governance":
      break;
  }
  return { ...voted, kind: known, ...readGovernance(item) };
}

function readCommon(item: Members): Common {
  const { business, requester } = item;
  if (!isRecord(business)) throw new Unreadable();
  return {
    id: text(item, "id"),
    business: { address: address(business, "address"), name: text(business, "name") },
    chainId: whole(item, "chainId"),
    expiresAt: moment(item, "expiresAt"),
    requester: readRequester(requester),
  };
}

function readRequester(value: unknown): InboxRequester | null {
  if (value === null || value === undefined) return null;
  if (!isRecord(value)) throw new Unreadable();
  const domain = value["domain"] === undefined ? {} : { domain: text(value, "domain") };
  return { name: text(value, "name"), ...domain };
}

function readDataRequest(item: Members): Omit<DataRequestItem, keyof Voted | "kind"> {
  const { fixedOptional = null, unavailable = [] } = item;
  const [required, optional] = [names(item["required"]), names(item["optional"])];
  const fixed = fixedOptional === null ? null : names(fixedOptional);
  const isTwice = new Set([...required, ...optional]).size < required.length + optional.length;
  const isBeyond = fixed?.some((name) => !optional.includes(name)) === true;
  // The item that is shown has to be a single request, and the same that is approved.
  if (isTwice || isBeyond || item["requestId"] !== item["id"]) throw new Unreadable();
  return {
    audience: text(item, "audience"),
    required,
    optional,
    unavailable: names(unavailable),
    fixedOptional: fixed,
    purpose: text(item, "purpose"),
    deadline: moment(item, "deadline"),
  };
}

function readSignatureRequest(item: Members): Omit<SignatureRequestItem, keyof Voted | "kind"> {
  const { messageKind, typedData } = item;
  const terms = { digest: text(item, "digest"), purpose: text(item, "purpose") };
  if (messageKind === "TEXT")
    return { ...terms, document: { messageKind, message: text(item, "message") } };
  if (messageKind !== "TYPED_DATA" || !isRecord(typedData)) throw new Unreadable();
  const { domain, types, primaryType, message } = typedData;
  const isDocument = isRecord(domain) && isRecord(types) && isRecord(message);
  if (!isDocument || typeof primaryType !== "string") throw new Unreadable();
  // Nothing in it is trusted until it has been hashed, because hashing checks the types.
  const document = { domain, types, primaryType, message } as unknown as TypedDataDocument;
  return { ...terms, document: { messageKind, typedData: document } };
}

function readLogin(item: Members): Omit<BusinessLoginItem, keyof Voted | "kind"> {
  return {
    session: text(item, "session"),
    issuer: text(item, "issuer"),
    clientId: text(item, "clientId"),
    clientName: text(item, "clientName"),
    scope: text(item, "scope"),
    actingMember: address(item, "actingMember"),
  };
}

function readGovernance(item: Members): Omit<GovernanceItem, keyof Voted | "kind"> {
  const { arguments: encoded, charter } = item;
  const next = isRecord(charter) ? readCharter(charter).names : new Map<Address, string>();
  const current = isRecord(item["current"]) ? readCharter(item["current"]) : null;
  const operation = text(item, "operation");
  // Without the present charter nobody could see who leaves, and all names would be those that the proposer chose.
  if (operation === governanceFunctions.changeCharter && current === null) throw new Unreadable();
  if (typeof encoded !== "string" || !/^0x(?:[0-9a-f]{2})*$/i.test(encoded)) throw new Unreadable();
  return {
    operation,
    arguments: encoded.toLowerCase() as Hex,
    nonce: whole(item, "nonce"),
    // Those who are members already keep their present names.
    names: new Map([...next, ...(current?.names ?? [])]),
    current,
  };
}

/** Reads members and rules as they are sent; null if they are malformed. */
export function readNamedCharter(value: unknown): NamedCharter | null {
  try {
    return readCharter(value);
  } catch (error) {
    if (error instanceof Unreadable) return null;
    throw error;
  }
}

function readCharter(value: unknown): NamedCharter {
  if (!isRecord(value) || !isRecord(value["rules"]) || !Array.isArray(value["members"]))
    throw new Unreadable();
  if (value["members"].length > charterMembersMax) throw new Unreadable();
  const { rules } = value;
  const rule = (name: keyof Charter["rules"]): Charter["rules"][typeof name] => {
    const given = rules[name];
    if (given !== "MAJORITY" && given !== "UNANIMOUS") throw new Unreadable();
    return given;
  };
  const members = value["members"].map((each: unknown) => {
    if (!isRecord(each) || typeof each["votingRights"] !== "boolean") throw new Unreadable();
    const { name } = each;
    return {
      address: address(each, "address"),
      isVoting: each["votingRights"],
      name: typeof name === "string" ? name : "",
    };
  });
  return {
    rules: {
      signature_requests: rule("signature_requests"),
      data_requests: rule("data_requests"),
      governance: rule("governance"),
    },
    members: members.map(({ address: member, isVoting }) => ({ address: member, isVoting })),
    names: new Map(members.map(({ address: member, name }) => [member, name])),
  };
}

function text(members: Members, name: string): string {
  const value = members[name];
  // A text that is not valid UTF-8 has no hash that could be approved.
  if (typeof value !== "string" || value === "" || !value.isWellFormed()) throw new Unreadable();
  return value;
}

function whole(members: Members, name: string): number {
  const value = members[name];
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0)
    throw new Unreadable();
  return value;
}

/** Unix seconds. They are also signed, in some types as 48 bits, so they must fit. */
function moment(members: Members, name: string): number {
  const value = whole(members, name);
  if (value > secondsMax) throw new Unreadable();
  return value;
}

function address(members: Members, name: string): Address {
  const value = members[name];
  const parsed = typeof value === "string" ? parseAddress(value) : null;
  if (parsed === null) throw new Unreadable();
  return parsed;
}

function hash(members: Members, name: string): Hex32 {
  const value = members[name];
  if (typeof value !== "string" || !isHexOf(value, 32)) throw new Unreadable();
  return value.toLowerCase() as Hex32;
}

function names(value: unknown): readonly BusinessFieldName[] {
  if (!Array.isArray(value)) throw new Unreadable();
  return value.map((name: unknown) => {
    if (typeof name !== "string" || !isBusinessField(name)) throw new Unreadable();
    return name;
  });
}
