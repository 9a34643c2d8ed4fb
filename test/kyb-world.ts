// A world with businesses in it: an embedded chain, members with keys and wallet sessions, founded over the public
// routes, and a wallet reduced to what goes over the wire.
import { randomBytes } from "node:crypto";
import {
  type Address,
  approvalDigest,
  type BusinessCategory,
  businessLoginHash,
  type BusinessRule,
  declineDigest,
  defaultGovernanceRule,
  encodeCharter,
  governanceHash,
  type Hex,
  type Hex32,
  invitationDigest,
  isHexOf,
  keepDigest,
  releaseHash,
  type RuleName,
} from "@svc/protocol";
import { createApiKey, setEntitlement } from "../service/src/accounts/index.ts";
import { findBusiness, setBusinessVerified } from "../service/src/kyb/index.ts";
import { until } from "./patience.ts";
import { type Identity, newIdentity, openWalletSession } from "./raw-wallet.ts";
import { openWorld, type World } from "./world.ts";
import { signDigest } from "./signing.ts";

/** A business as the service stores it. */
type Business = NonNullable<Awaited<ReturnType<typeof findBusiness>>>;

export interface KybWorldOptions {
  /** Names of the members, all of whom vote. Default: alice, bob, carol. */
  readonly members?: readonly string[];
  readonly rules?: Partial<Record<RuleName, BusinessRule>>;
  /** Default: true; somebody vouches for the record of the business. */
  readonly isVerified?: boolean;
  /** Settings of the service. */
  readonly environment?: NodeJS.ProcessEnv;
}

export interface TestBusiness {
  readonly address: Address;
  readonly name: string;
  readonly members: readonly string[];
}

export interface KybWorld extends World {
  /** A key of the world's client domain, whose organization has every entitlement. */
  readonly apiKey: string;
  /** Founded at the start. */
  readonly business: TestBusiness;
  /** The identity of that name; made when it is first named. */
  person(name: string): Identity;
  /** Founds another business and waits until it is active. */
  found(options?: FoundOptions): Promise<TestBusiness>;
  /** Only the first step of a founding: what the founder sends. */
  askFounding(options?: FoundOptions): Promise<Answer>;
  /** A call with the API key, or with what is given. */
  call(method: "GET" | "POST" | "PUT", path: string, options?: CallOptions): Promise<Answer>;
  /** A call in the wallet session of a person. */
  walletCall(
    name: string,
    method: "GET" | "POST",
    path: string,
    options?: CallOptions,
  ): Promise<Answer>;
  inboxOf(name: string): Promise<InboxItem[]>;
  /** Approves or rejects an item in the inbox of the person, as an honest wallet would. */
  voteAs(name: string, id: string, options?: VoteOptions): Promise<Answer>;
  /** Waits until an item is in the inbox of the person. */
  findVote(name: string, id: string): Promise<InboxItem>;
  /** A business as one of its members sees it. */
  businessOf(name: string, address?: Address): Promise<Record<string, unknown>>;
  /** Proposes an act of governance and votes for it until it is decided. @returns the proposal's id */
  govern(
    proposer: string,
    request: Record<string, unknown>,
    options?: { business?: Address; voters?: readonly string[] },
  ): Promise<string>;
  /** Voting members, for a change of the charter. @param more replaces members of each entry */
  rosterOf(names: readonly string[], more?: object): object[];
  /** Waits until the service has followed the wallet to this epoch. */
  reachEpoch(address: Address, epoch: number): Promise<Business>;
  /** Waits until a proposal has this status, as a member of its business sees it. */
  reachProposal(name: string, id: string, status: string): Promise<Record<string, unknown>>;
  /** Waits until `look` answers with something. */
  until<T>(what: string, look: () => Promise<T | null>): Promise<T>;
  /** The signature by which a member ends its removal and stays. */
  keepSignature(name: string, given: { business: Address; nonce: number }): Hex;
}

interface FoundOptions {
  readonly members?: readonly string[];
  /** Those of the members without a vote. */
  readonly observers?: readonly string[];
  readonly rules?: Partial<Record<RuleName, BusinessRule>>;
  readonly name?: string;
  readonly environment?: "live" | "sandbox";
  readonly isVerified?: boolean;
  /** The address of another process. */
  readonly baseUrl?: string;
  /** Members of the body to replace. */
  readonly changed?: Record<string, unknown>;
}

interface CallOptions {
  readonly body?: unknown;
  readonly apiKey?: string | null;
  readonly headers?: Record<string, string>;
  /** The address of another process. */
  readonly baseUrl?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown> & {
    readonly error?: {
      readonly code: number;
      readonly reason: string;
      readonly message: string;
      readonly details?: Record<string, unknown>;
    };
  };
}

/** The status of an answer, and why it refuses if it does. */
export const reasonOf = ({ status, body }: Answer): [number, string | undefined] => [
  status,
  body.error?.reason,
];

export interface InboxItem {
  readonly id: string;
  readonly kind: string;
  readonly business: { readonly address: Address; readonly name: string };
  readonly [member: string]: unknown;
}

export interface VoteOptions {
  /** Default: approve. */
  readonly vote?: "approve" | "reject";
  /** Optional fields that are released. Default: those that another vote fixed, else none. */
  readonly optional?: readonly string[];
  /** Members of the approval to replace before it is signed. */
  readonly changed?: Partial<Parameters<typeof approvalDigest>[0]>;
  /** Members of the body to replace before it is sent. */
  readonly sent?: Record<string, unknown>;
  /** Whose key signs. */
  readonly signer?: Identity;
  readonly baseUrl?: string;
  /** The item, if it is known already; else it is looked for in the inbox. */
  readonly item?: InboxItem;
}

export async function openKybWorld(options: KybWorldOptions = {}): Promise<KybWorld> {
  const { members = ["alice", "bob", "carol"], rules = {}, isVerified = true } = options;
  const world = await openWorld({
    CHAIN: "on",
    SETTLEMENT_WINDOW_SECONDS: "0",
    ...options.environment,
  });
  try {
    const { ctx, clientDomainId, organizationId } = world;
    const { key: apiKey } = await createApiKey(ctx, { clientDomainId, name: "Backend" }, "test");
    for (const entitlement of ["kyb:data-request", "kyb:pii", "kyb:signature"])
      await setEntitlement(ctx, { organizationId, entitlement, isGranted: true }, "test");
    const actors = actorsOf(world, apiKey);
    const business = await actors.found({ members, rules, isVerified });
    return { ...world, apiKey, ...actors, business };
  } catch (error) {
    await world[Symbol.asyncDispose]();
    throw error;
  }
}

type Actors = Omit<KybWorld, keyof World | "apiKey" | "business">;

/** What can be done in a world, by name. */
export function actorsOf(world: World, apiKey: string): Actors {
  const { ctx } = world;
  const people = new Map<string, Identity>();
  const sessions = new Map<string, Promise<Record<string, string>>>();
  let firstBusiness: Address | null = null;
  const person = (name: string): Identity => {
    const known = people.get(name) ?? newIdentity();
    people.set(name, known);
    return known;
  };
  // A test that moves the time may end a challenge before it is answered.
  const openAgain = async (identity: Identity, tries = 5): Promise<Record<string, string>> => {
    try {
      return await openWalletSession(world.baseUrl, identity);
    } catch (error) {
      if (tries === 1 || !String(error).includes("challenge_wrong")) throw error;
      return openAgain(identity, tries - 1);
    }
  };
  const sessionOf = async (name: string): Promise<Record<string, string>> => {
    const opening = sessions.get(name) ?? openAgain(person(name));
    sessions.set(name, opening);
    // The service may be away: the next call tries again.
    opening.catch(() => sessions.delete(name));
    return opening;
  };
  const call: KybWorld["call"] = async (method, path, given = {}) => {
    const { apiKey: key = apiKey, headers = {}, baseUrl = world.baseUrl } = given;
    return send(`${baseUrl}${path}`, {
      method,
      body: given.body,
      headers: { ...(key === null ? {} : { authorization: key }), ...headers },
    });
  };
  const callInSession = async (
    name: string,
    [method, path, given = {}]: Parameters<KybWorld["call"]>,
    tries = 5,
  ): Promise<Answer> => {
    const headers = { ...(await sessionOf(name)), ...given.headers };
    const answer = await call(method, path, { ...given, apiKey: null, headers });
    if (tries === 1 || answer.body.error?.reason !== "wallet_session_required") return answer;
    // Tests move the time, and sessions end.
    sessions.delete(name);
    return callInSession(name, [method, path, given], tries - 1);
  };
  const walletCall: KybWorld["walletCall"] = async (name, ...called) => callInSession(name, called);
  const inboxOf = async (name: string): Promise<InboxItem[]> => {
    const { body } = await walletCall(name, "GET", "/w/inbox");
    return body["items"] as InboxItem[];
  };
  const findVote: KybWorld["findVote"] = async (name, id) =>
    until(`${id} lies in the inbox of ${name}`, async () => {
      const items = await inboxOf(name);
      return items.find((each) => each.id === id) ?? null;
    });
  const voteAs: KybWorld["voteAs"] = async (name, id, given = {}) => {
    const item = given.item ?? (await findVote(name, id));
    const body = voteOf(world, item, { signer: person(name), ...given });
    const { baseUrl } = given;
    const place = baseUrl === undefined ? {} : { baseUrl };
    return walletCall(name, "POST", `/w/votes/${id}`, { body, ...place });
  };
  const askFounding: KybWorld["askFounding"] = async (given = {}) => {
    const names = given.members ?? ["alice", "bob", "carol"];
    const body = foundingOf(
      world,
      names.map((name) => ({ name, ...person(name) })),
      given,
    );
    const { baseUrl } = given;
    const place = baseUrl === undefined ? {} : { baseUrl };
    return walletCall(names[0] ?? "", "POST", "/w/businesses", { body, ...place });
  };
  const businessOf: KybWorld["businessOf"] = async (name, address) => {
    const wanted = address ?? firstBusiness;
    const { body } = await walletCall(name, "GET", "/w/businesses");
    const items = body["items"] as Record<string, unknown>[];
    const found = items.find((each) => each["address"] === wanted);
    if (found === undefined) throw new Error(`${name} is a member of no business ${wanted}`);
    return found;
  };
  const found: KybWorld["found"] = async (given = {}) => {
    const names = given.members ?? ["alice", "bob", "carol"];
    const asked = await askFounding(given);
    if (asked.status !== 201) throw new Error(`founding: ${JSON.stringify(asked.body)}`);
    const id = String(asked.body["invitationId"]);
    const address = asked.body["address"] as Address;
    await Promise.all(
      names.slice(1).map(async (name) => {
        const { status, body } = await voteAs(name, id);
        if (status !== 200) throw new Error(`invitation: ${JSON.stringify(body)}`);
      }),
    );
    firstBusiness ??= address;
    await until(`${address} is active`, async () => {
      const { status } = await businessOf(names[0] ?? "", address);
      return status === "active" ? true : null;
    });
    if (given.isVerified !== false)
      await setBusinessVerified(ctx, { address, isVerified: true }, "test");
    return { address, name: given.name ?? "Muster AG", members: names };
  };
  const govern: KybWorld["govern"] = async (proposer, request, given = {}) => {
    const business = given.business ?? firstBusiness ?? "";
    const path = `/w/businesses/${business}/proposals`;
    const { status, body } = await walletCall(proposer, "POST", path, { body: request });
    if (status !== 201) throw new Error(`proposal: ${JSON.stringify(body)}`);
    const id = String(body["proposalId"]);
    for (const name of given.voters ?? [proposer]) {
      const voted = await voteAs(name, id);
      if (voted.status !== 200) throw new Error(`vote: ${JSON.stringify(voted.body)}`);
    }
    return id;
  };
  const reachEpoch: KybWorld["reachEpoch"] = async (address, epoch) =>
    until(`epoch ${epoch}`, async () => {
      const row = await findBusiness(ctx.db, address);
      return row?.epoch === epoch ? row : null;
    });
  const reachProposal: KybWorld["reachProposal"] = async (name, id, status) =>
    until(`${id} is ${status}`, async () => {
      const { body } = await walletCall(name, "GET", "/w/businesses");
      const businesses = body["items"] as { proposals: Record<string, unknown>[] }[];
      const proposals = businesses.flatMap((each) => each.proposals);
      return proposals.find((each) => each["id"] === id && each["status"] === status) ?? null;
    });
  const keepSignature: KybWorld["keepSignature"] = (name, { business, nonce }) => {
    const digest = keepDigest({ chainId: ctx.chain.chainId, business, nonce });
    return signDigest(digest, person(name).privateKey);
  };
  return {
    person,
    found,
    askFounding,
    call,
    walletCall,
    inboxOf,
    voteAs,
    findVote,
    businessOf,
    govern,
    rosterOf: (names, more) =>
      names.map((name) => ({ address: person(name).address, name, votingRights: true, ...more })),
    reachEpoch,
    reachProposal,
    until,
    keepSignature,
  };
}

/** What the founder's wallet sends: the first of the members signs. */
function foundingOf(
  { ctx }: World,
  people: readonly (Identity & { name: string })[],
  given: FoundOptions,
): Record<string, unknown> {
  const { observers = [], environment = "live" } = given;
  const members = people.map(({ name, address }) => ({
    address,
    name,
    votingRights: !observers.includes(name),
  }));
  const voters = members.filter(({ votingRights }) => votingRights).length;
  const rules = {
    signature_requests: "MAJORITY",
    data_requests: "MAJORITY",
    governance: defaultGovernanceRule(voters),
    ...given.rules,
  } as const;
  const unsigned = {
    name: given.name ?? "Muster AG",
    environment,
    members,
    rules,
    salt: `0x${randomBytes(32).toString("hex")}` as const,
    deadline: ctx.clock.now() + 3600,
  };
  const { salt: asked, deadline } = { ...unsigned, ...given.changed };
  const salt = isHexOf(asked, 32) ? asked : unsigned.salt;
  const charter = charterOf({ rules, members });
  const factory = ctx.chain.contracts.factories[environment];
  const invitation = { chainId: ctx.chain.chainId, factory, salt, charter, deadline };
  const key = people[0]?.privateKey ?? randomBytes(32);
  const signature = signDigest(invitationDigest(invitation), key);
  return { ...unsigned, signature, ...given.changed };
}

/** The body of a vote. */
function voteOf(
  world: World,
  item: InboxItem,
  given: VoteOptions & { readonly signer: Identity },
): Record<string, unknown> {
  const { id } = item;
  const { vote = "approve", signer, changed = {}, sent = {} } = given;
  const { chainId } = world.ctx.chain;
  if (vote === "reject") {
    const digest = declineDigest({ request: id, connection: `${world.baseUrl}/w/votes/${id}` });
    return { vote, signature: signDigest(digest, signer.privateKey), ...sent };
  }
  if (item.kind === "invitation") {
    const charter = charterOf(item["charter"]);
    const { factory, salt, deadline } = item as unknown as {
      factory: Address;
      salt: Hex32;
      deadline: number;
    };
    const digest = invitationDigest({ chainId, factory, salt, charter, deadline });
    return { vote, signature: signDigest(digest, signer.privateKey), ...sent };
  }
  const optional = given.optional ?? (item["fixedOptional"] as string[] | null) ?? [];
  const { epoch, validUntil, category } = item as unknown as {
    epoch: number;
    validUntil: number;
    category: BusinessCategory;
  };
  const business = item.business.address;
  const hash = hashOf(item, optional);
  const approval = { chainId, business, category, hash, epoch, validUntil, ...changed };
  return {
    vote,
    signature: signDigest(approvalDigest(approval), signer.privateKey),
    epoch,
    validUntil,
    ...(item.kind === "data_request" ? { optional } : {}),
    ...sent,
  };
}

/** What an honest wallet computes from what it shows. */
function hashOf(item: InboxItem, optional: readonly string[]): Hex32 {
  const shown = item as Record<string, unknown>;
  const text = (name: string): string => {
    const value = shown[name];
    return typeof value === "string" ? value : "";
  };
  const business = item.business.address;
  switch (item.kind) {
    case "governance":
      return governanceHash({
        operation: text("operation"),
        arguments: text("arguments") as Hex,
        nonce: Number(shown["nonce"]),
      });
    case "signature_request":
      return text("digest") as Hex32;
    case "data_request":
      return releaseHash({
        requestId: text("requestId"),
        audience: text("audience"),
        business,
        required: namesOf(shown["required"]),
        optional,
        purpose: text("purpose"),
        deadline: Number(shown["deadline"]),
      });
    case "business_login":
      return businessLoginHash({
        session: text("session"),
        issuer: text("issuer"),
        clientId: text("clientId"),
        requester: (shown["requester"] as { domain?: string } | null)?.domain ?? "",
        scope: text("scope"),
        business,
        actingMember: text("actingMember") as Address,
      });
    default:
      throw new Error(`nobody votes on ${item.kind}`);
  }
}

const namesOf = (given: unknown): string[] =>
  (given as (string | { name: string })[]).map((each) =>
    typeof each === "string" ? each : each.name,
  );

/** The encoded charter of rules and members as they go over the wire. */
function charterOf(shown: unknown): Hex {
  const { rules, members } = shown as {
    rules: Record<RuleName, BusinessRule>;
    members: { address: Address; votingRights: boolean }[];
  };
  return encodeCharter({
    rules,
    members: members.map(({ address, votingRights }) => ({ address, isVoting: votingRights })),
  });
}

/** One call with a JSON body, or without one. */
export async function send(
  url: string,
  { method, body, headers }: { method: string; body: unknown; headers: Record<string, string> },
): Promise<Answer> {
  const answer = await fetch(url, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return {
    status: answer.status,
    headers: answer.headers,
    body: (text === "" ? {} : JSON.parse(text)) as Answer["body"],
  };
}
