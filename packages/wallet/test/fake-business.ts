// What a broker does about businesses, for the wallet's tests: an inbox, votes, a chain with one business wallet. It
// checks what a wallet signs by itself, and lies when told to.
import {
  approvalDigest,
  businessCategory,
  encodeCharter,
  governanceActs,
  invitationDigest,
  parseAddress,
  type Address,
  type Charter,
  type Hex,
  type Hex32,
} from "@svc/protocol";
import { problem, signerOf, type Answer, type FakeBroker, type Received } from "./fake-broker.ts";
import { addressOf } from "./test-wallet.ts";
import { now } from "./fake-fields.ts";

export const business: Address = `0x${"b5".repeat(20)}`;
export const factory: Address = `0x${"fa".repeat(20)}`;
export const audience = "0198c0de-0000-7000-8000-000000000000";
export const chainId = 31_337;

export const charter: Charter = {
  rules: { signature_requests: "MAJORITY", data_requests: "MAJORITY", governance: "MAJORITY" },
  members: [
    { address: addressOf("alice"), isVoting: true },
    { address: addressOf("bob"), isVoting: true },
    { address: `0x${"ca".repeat(20)}`, isVoting: false },
  ],
};

/** A data request as it lies in an inbox. */
export const dataRequestItem = {
  id: "01J",
  kind: "data_request",
  category: businessCategory.data,
  business: { address: business, name: "Alpine AG" },
  requester: { name: "Demo Bank", domain: "bank.example" },
  chainId,
  epoch: 3,
  validUntil: now + 4200,
  expiresAt: now + 600,
  requestId: "01J",
  audience,
  required: ["BUSINESS_LEGAL_NAME"],
  optional: ["BUSINESS_LEI", "BUSINESS_DUNS"],
  fixedOptional: null as string[] | null,
  purpose: "To open an account.",
  deadline: now + 600,
};

export type FakeBusiness = ReturnType<typeof serveBusiness>;

/** Adds the routes to a broker. */
export function serveBusiness(broker: FakeBroker) {
  broker.deadline = now + 300;
  const fake = {
    items: [] as Record<string, unknown>[],
    votes: [] as { id: string; body: Record<string, unknown> }[],
    /** What the chain says. */
    chainId,
    charter,
    epoch: dataRequestItem.epoch,
    nonce: 7,
    removal: null as { member: Address; endsAt: number; keepNonce: number } | null,
    /** Signatures that ended a removal. */
    kept: [] as unknown[],
    claims: [] as Record<string, unknown>[],
    founded: [] as Record<string, unknown>[],
    blocks: [] as Record<string, unknown>[],
    /** Whom the business takes no requests of, as it is listed. */
    blocked: [] as unknown[],
    /** What it released, as it is listed. */
    released: [] as unknown[],
    retracted: [] as string[],
    /** Moves that were proposed. */
    proposed: [] as Record<string, unknown>[],
    /** How long members are asked about what was proposed. */
    votingSeconds: 600,
    /** The members and rules that the broker reports, if not those that the chain has. */
    told: null as Charter | null,
    abandoned: 0,
    /** Of what is founded. */
    address: (_body: Record<string, unknown>): string => business,
    status: "inviting" as unknown,
    reset() {
      Object.assign(fake, { items: [], votes: [], claims: [], founded: [], chainId, charter });
      Object.assign(fake, { epoch: 3, nonce: 7, removal: null, kept: [] });
      Object.assign(fake, { blocks: [], blocked: [], released: [], retracted: [], abandoned: 0 });
      Object.assign(fake, { proposed: [], told: null, status: "inviting", votingSeconds: 600 });
    },
  };
  broker.more = (request, isInSession) => route(fake, request, isInSession);
  return fake;
}

function route(fake: FakeBusiness, received: Received, isInSession: boolean): Answer | null {
  const { method, path, body } = received;
  if (path === "/w/chain") return { status: 200, body: answerRpc(fake, body) };
  if (!/^\/w\/(?:inbox|votes|businesses|f)\b/.test(path)) return null;
  if (/^\/w\/f\/[^/]+\/open$/.test(path)) return null;
  if (!isInSession) return problem(401, "wallet_session_required");
  if (path.startsWith("/w/inbox")) return { status: 200, body: { items: fake.items } };
  const [, id] = /^\/w\/votes\/([^/]+)$/.exec(path) ?? [];
  if (id !== undefined) {
    fake.votes.push({ id, body });
    fake.items = fake.items.filter((item) => item["id"] !== id);
    const removal = fake.removal === null ? {} : { removalOpen: true };
    return { status: 200, body: { id, status: "open", ...removal } };
  }
  if (path === `/w/businesses/${business}/keep`) {
    fake.kept.push(body["signature"]);
    return { status: 200, body: { ended: "removal" } };
  }
  if (path === `/w/businesses/${business}/proposals`) {
    const { successor } = body;
    const isKnown = fake.proposed.some((each) => each["successor"] === successor);
    fake.proposed.push(body);
    if (!isKnown) fake.items.push(moveVote(fake, parseAddress(String(successor))));
    return { status: isKnown ? 200 : 201, body: { proposalId: "p" } };
  }
  if (path === `/w/businesses/${business}/abandon`) {
    fake.abandoned += 1;
    return { status: 200, body: { status: "lapsed" } };
  }
  const [, retracted] = /\/proposals\/([^/]+)\/retract$/.exec(path) ?? [];
  if (retracted !== undefined) {
    fake.retracted.push(retracted);
    return { status: 200, body: { status: "retracted" } };
  }
  if (path === `/w/businesses/${business}/block`) {
    fake.blocks.push(body);
    return { status: 200, body: { isBlocked: body["isBlocked"] } };
  }
  if (path.startsWith(`/w/businesses/${business}/releases`))
    return { status: 200, body: { items: fake.released } };
  if (path.startsWith(`/w/businesses/${business}/blocks`))
    return { status: 200, body: { items: fake.blocked } };
  if (path.endsWith("/claim")) {
    fake.claims.push(body);
    return { status: 200, body: { offerId: "o", requestId: "r", expiresAt: now + 60 } };
  }
  if (path === "/w/businesses" && method === "POST") {
    fake.founded.push(body);
    return {
      status: 201,
      body: { invitationId: "i", address: fake.address(body), status: fake.status },
    };
  }
  if (path === "/w/businesses") return { status: 200, body: listOf(fake) };
  return null;
}

/** The vote on a move. */
function moveVote(
  { epoch, nonce, votingSeconds }: FakeBusiness,
  successor: Address | null,
): Record<string, unknown> {
  return {
    id: "p",
    kind: "governance",
    category: businessCategory.governance,
    business: { address: business, name: "Alpine AG" },
    requester: null,
    chainId,
    epoch,
    nonce,
    ...governanceActs.moveTo(successor ?? business),
    validUntil: now + votingSeconds + 3600,
    expiresAt: now + votingSeconds,
  };
}

function listOf(fake: FakeBusiness): object {
  const { rules, members } = fake.told ?? fake.charter;
  const shown = members.map(({ address, isVoting }) => ({
    address,
    name: "",
    votingRights: isVoting,
  }));
  const item = { address: business, name: "Alpine AG", status: "active", rules, members: shown };
  return { items: [item], chainId, factories: { live: factory, sandbox: factory } };
}

const word = (value: number | string): string =>
  (typeof value === "number" ? value.toString(16) : value.slice(2)).padStart(64, "0");

/** By the selectors of the contract. */
function answerRpc(fake: FakeBusiness, { method, params }: Record<string, unknown>): object {
  if (method === "eth_chainId") return { result: `0x${fake.chainId.toString(16)}` };
  const [{ to, data }] = params as [{ to: string; data: string }];
  const packed = encodeCharter(fake.charter).slice(2);
  const { member, endsAt, keepNonce } = fake.removal ?? { member: "0x", endsAt: 0, keepNonce: 0 };
  const answers: Record<string, string> = {
    // charter()
    "0xc1aadb4d":
      word(32) + word(packed.length / 2) + packed.padEnd(Math.ceil(packed.length / 64) * 64, "0"),
    // epoch()
    "0x900cf0cf": word(fake.epoch),
    // nonce()
    "0xaffed0e0": word(fake.nonce),
    // removal()
    "0x0f941d56": word(member) + word(endsAt) + word(keepNonce),
  };
  return { result: to === business ? `0x${answers[data] ?? ""}` : "0x" };
}

/** Whether this approval of an item was signed by that identity. */
export function isSignedBy(
  who: Address,
  { signature, hash, category }: { signature: unknown; hash: Hex32; category: 1 | 2 | 3 | 4 },
): boolean {
  const approval = { chainId, business, category, hash, epoch: 3, validUntil: now + 3700 };
  return signerOf(approvalDigest(approval), String(signature)) === who;
}

export function invitationSigner(
  given: { salt: Hex32; charter: Charter; deadline: number },
  signature: unknown,
): Address | null {
  const packed: Hex = encodeCharter(given.charter);
  const digest = invitationDigest({ ...given, chainId, factory, charter: packed });
  return signerOf(digest, String(signature));
}
