import {
  isHexOf,
  parseAddress,
  shortAddress,
  type BusinessRule,
  type Hex32,
  type RuleName,
} from "@svc/protocol";
import {
  type ListedProposal,
  namedMembersOf,
  type NamedMember,
  type OwnBusiness,
  type Proposal,
} from "../businesses.ts";
import { WalletRefusal } from "../refusal.ts";
import { shownText } from "../shown-text.ts";
import type { Wallet } from "../wallet.ts";
import { businessOption, withBusiness } from "./business-option.ts";
import type { Home } from "./home.ts";
import { identityOptions, withWallet } from "./identity-options.ts";
import { findPerson } from "./member-names.ts";
import { UsageError, type Input, type Option, type Reply, type Verb } from "./verb.ts";

const ruleNames: readonly string[] = [
  "signature_requests",
  "data_requests",
  "governance",
] satisfies RuleName[];

const rosterOptions = {
  member: {
    value: "name[=0x..]",
    repeated: true,
    description: "A voting member: a name that this wallet knows, or any name with its address.",
  },
  observer: {
    value: "name[=0x..]",
    repeated: true,
    description: "A member without a vote, written in the same way.",
  },
  rule: {
    value: "name=MAJORITY|UNANIMOUS",
    repeated: true,
    description:
      "How many members must approve. The name is signature_requests (which includes logins), data_requests or governance.",
  },
} as const satisfies Record<string, Option>;

const ownOptions = { ...identityOptions, ...businessOption } as const;

const proposalOptions = {
  ...ownOptions,
  show: { description: "Show what the proposal would do, without proposing it." },
} as const satisfies Record<string, Option>;

/** The verbs of businesses: founding one, and changing it. */
export const businessVerbs: readonly Verb[] = [
  {
    name: "business create",
    summary: "Found a business: sign its roster and rules, and invite the other members.",
    notes:
      "The founder is a voting member. The wallet of the business is deployed once everybody has accepted, which must happen within 7 days. Rules that you do not give are MAJORITY, but governance is UNANIMOUS if at most two members have a vote.",
    options: {
      ...identityOptions,
      name: { value: "text", description: "The name of the business. Required." },
      ...rosterOptions,
      environment: { value: "live|sandbox", description: "The environment. Default: live." },
    },
    example:
      "business create --name 'Alpine AG' --member bob --member carol --rule data_requests=MAJORITY --as alice",
    run: async (home, input) => create(home, input),
  },
  {
    name: "business accept",
    summary: "Accept an invitation to found a business: sign its roster and rules.",
    notes:
      "Before it signs, the wallet recomputes the address of the business from the roster and rules. To decline, use `vote <id> --reject`.",
    parameters: {
      invitation:
        "The invitation's id, or the address of the business. Default: the only invitation.",
    },
    isLastOptional: true,
    options: identityOptions,
    example: "business accept 01JD3Z.. --as bob",
    run: async (home, input) =>
      withWallet(home, input, async (wallet) => accept(wallet, input.optional("invitation"))),
  },
  {
    name: "business abandon",
    summary: "Abandon a founding that this identity began, before everybody has signed.",
    parameters: { business: "The address of the business, as `business list` prints it." },
    options: identityOptions,
    example: "business abandon 0x5f2c.. --as alice",
    run: async (home, input) =>
      withWallet(home, input, async (wallet) => {
        const named = parseAddress(input.text("business"));
        if (named === null)
          throw new UsageError("<business> must be an address of 20 bytes in hex");
        await wallet.abandonBusiness(await wallet.chooseBusiness(named));
        return { value: { address: named, status: "lapsed" } };
      }),
  },
  {
    name: "business list",
    summary:
      "List the businesses of an identity, with their members, rules, proposals, and any removal or move under way.",
    options: identityOptions,
    example: "business list --as alice",
    run: async (home, input) => {
      const items = await withWallet(home, input, async (wallet) => wallet.businesses());
      return { value: { items: items.map(shownBusiness) } };
    },
  },
  {
    name: "business rules",
    summary: "Propose other rules or members, and approve the proposal.",
    notes:
      "The other members vote in their inbox; the stricter of the old and the new governance rule decides. Rules and members that you do not name stay as they are.",
    options: {
      ...proposalOptions,
      ...rosterOptions,
      drop: {
        value: "name|0x..",
        repeated: true,
        description: "A member to remove.",
      },
    },
    example: "business rules --rule data_requests=UNANIMOUS --as alice",
    run: async (home, input) =>
      act(home, input, async (business) => charterProposal(home, input, business)),
  },
  {
    name: "business remove",
    summary: "Propose to remove a member who seems lost, and approve the proposal.",
    notes:
      "A majority of the other voting members decides. The member is removed after 30 days, unless the member objects before that.",
    parameters: { member: "The member's name or address." },
    options: proposalOptions,
    example: "business remove carol --as alice",
    run: async (home, input) =>
      act(home, input, async (business) => {
        const { address } = await findPerson(home, input.text("member"), namedMembersOf(business));
        return { operation: "startRemoval", member: address };
      }),
  },
  {
    name: "business retract",
    summary: "Retract a proposal of this identity before it is decided.",
    parameters: { proposal: "The proposal's id, as `business list` prints it." },
    options: ownOptions,
    example: "business retract 01JD3Z.. --as alice",
    run: async (home, input) =>
      withBusiness(home, input, async (wallet, business) => {
        const proposalId = input.text("proposal");
        await wallet.retractProposal(business, proposalId);
        return { value: { proposalId, status: "retracted" } };
      }),
  },
  {
    name: "business keep",
    summary:
      "Stop the removal of this identity from a business, or a move that the operator announced.",
    options: ownOptions,
    example: "business keep --as carol",
    run: async (home, input) =>
      withBusiness(home, input, async (wallet, business) => {
        const { ended } = await wallet.keepMembership(business);
        return { value: { address: business.address, ended } };
      }),
  },
  {
    name: "business releases",
    summary: "List what the business released and to whom: names of fields, no values.",
    options: ownOptions,
    example: "business releases --as alice",
    run: async (home, input) =>
      withBusiness(home, input, async (wallet, business) => ({
        value: { address: business.address, items: await wallet.releases(business) },
      })),
  },
  {
    name: "business block",
    summary:
      "Block the organization that made a request: the business accepts no further requests from it.",
    notes:
      "Name any data or signature request of the organization, open or ended; `history` lists the ids of those that were voted on. Open requests are not affected. Any single voting member can block, and undo it with --undo.",
    parameters: { request: "The id of a request to the business." },
    options: {
      ...ownOptions,
      undo: { description: "End the block: accept requests of the organization again." },
    },
    example: "business block 01JD3Z.. --as alice",
    run: async (home, input) =>
      withBusiness(home, input, async (wallet, business) => {
        const block = { requestId: input.text("request"), isBlocked: !input.flag("undo") };
        await wallet.blockRequester(business, block);
        return { value: { address: business.address, ...block } };
      }),
  },
  {
    name: "business blocks",
    summary: "List the organizations that the business has blocked.",
    notes: "`business block <requestId> --undo` ends a block.",
    options: ownOptions,
    example: "business blocks --as alice",
    run: async (home, input) =>
      withBusiness(home, input, async (wallet, business) => ({
        value: { address: business.address, items: await wallet.blocks(business) },
      })),
  },
  {
    name: "business move",
    summary:
      "Propose that the business continues in another wallet, permanently, and approve the proposal.",
    parameters: { successor: "The address of the other wallet." },
    options: proposalOptions,
    example: "business move 0x5f2c.. --as alice",
    run: async (home, input) =>
      act(home, input, async () => {
        const { address } = await findPerson(home, input.text("successor"));
        return { operation: "moveTo", successor: address };
      }),
  },
  {
    name: "business withdraw",
    summary: "Propose to withdraw a signature of the business, and approve the proposal.",
    parameters: { hash: "The digest that the business signed." },
    options: proposalOptions,
    example: "business withdraw 0x9ae1.. --as alice",
    run: async (home, input) =>
      act(home, input, async () => {
        const hash = input.text("hash");
        if (!isHexOf(hash, 32)) throw new UsageError("<hash> must be 0x and 64 hex digits");
        return { operation: "withdraw", hash: hash.toLowerCase() as Hex32 };
      }),
  },
];

async function create(home: Home, input: Input): Promise<Reply> {
  const name = input.text("name");
  if (name === "") throw new UsageError("--name is missing");
  const environment = input.optional("environment") ?? "live";
  if (environment !== "live" && environment !== "sandbox")
    throw new UsageError("--environment must be live or sandbox");
  const rules = readRules(input);
  return withWallet(home, input, async (wallet) => {
    const { address } = wallet;
    const own = { address, name: input.optional("as") ?? shortAddress(address), isVoting: true };
    const members = await readRoster(home, input, [own]);
    const plan = { name, environment, members, rules } as const;
    const founded = await wallet.foundBusiness(plan, { keeps: true });
    return {
      value: { ...founded, words: founded.words.join("\n") },
      told: async () => wallet.forgetFounding(plan),
    };
  });
}

async function accept(wallet: Wallet, wanted: string | undefined): Promise<Reply> {
  const decision = { vote: "approve", kind: "invitation" } as const;
  const waiting = await wallet.inbox({ isUnseen: true });
  const invitations = waiting.filter(({ kind }) => kind === "invitation");
  const named = parseAddress(wanted ?? "");
  const fitting = invitations.filter(
    ({ id, item }) =>
      wanted === undefined || id === wanted || (named !== null && item?.business.address === named),
  );
  const [invitation, second] = fitting;
  if (invitation === undefined) {
    // An invitation that was accepted before is accepted again in the same way.
    if (wanted !== undefined && named === null)
      return { value: await wallet.vote(wanted, decision) };
    throw new WalletRefusal(
      "not_found",
      "there is no such invitation for this identity; if it accepted one before, accept that again by its id, which is in the history",
    );
  }
  if (second !== undefined)
    throw new WalletRefusal(
      "invalid_input",
      "several invitations wait: name one; see wallet inbox",
    );
  const outcome = await wallet.vote(invitation.id, decision);
  const address = invitation.item?.business.address;
  return { value: { ...outcome, address, words: invitation.words.join("\n") } };
}

/** Puts something to the members of the business that is meant. */
async function act(
  home: Home,
  input: Input,
  proposalOf: (business: OwnBusiness) => Promise<Proposal>,
): Promise<Reply> {
  return withBusiness(home, input, async (wallet, business) => {
    const proposal = await proposalOf(business);
    if (input.flag("show")) {
      const words = await wallet.sayProposed(business, proposal);
      return { value: { operation: proposal.operation, words: words.join("\n") } };
    }
    const proposed = await wallet.propose(business, proposal);
    return { value: { ...proposed, words: proposed.words.join("\n") } };
  });
}

async function charterProposal(home: Home, input: Input, business: OwnBusiness): Promise<Proposal> {
  const before = namedMembersOf(business).map(({ address, name, isVoting }) => ({
    address,
    name: name || shortAddress(address),
    isVoting,
  }));
  const dropped = await Promise.all(
    input.list("drop").map(async (text) => (await findPerson(home, text, before)).address),
  );
  const stranger = dropped.find((each) => before.every(({ address }) => address !== each));
  if (stranger !== undefined) throw new UsageError(`${stranger} is not a member`);
  const staying = before.filter(({ address }) => !dropped.includes(address));
  const members = await readRoster(home, input, staying);
  const rules = { ...business.charter.rules, ...readRules(input) };
  const changes = ["member", "observer", "rule", "drop"].flatMap((name) => input.list(name));
  if (changes.length === 0) throw new UsageError("no change is given");
  return { operation: "changeCharter", members, rules };
}

/**
 * The roster with the members that the options add; a member who is already on it gets the voting right that the
 * options say.
 */
async function readRoster(
  home: Home,
  input: Input,
  start: readonly NamedMember[],
): Promise<readonly NamedMember[]> {
  const roster = new Map(start.map((member) => [member.address, member]));
  for (const [option, isVoting] of [
    ["member", true],
    ["observer", false],
  ] as const)
    for (const text of input.list(option)) {
      const { name, address } = await findPerson(home, text, start);
      roster.set(address, { name: roster.get(address)?.name ?? name, address, isVoting });
    }
  return [...roster.values()];
}

function readRules(input: Input): Partial<Record<RuleName, BusinessRule>> {
  const rules: Partial<Record<RuleName, BusinessRule>> = {};
  for (const text of input.list("rule")) {
    const [name = "", rule] = text.split("=", 2);
    const isRule = rule === "MAJORITY" || rule === "UNANIMOUS";
    if (!ruleNames.includes(name) || !isRule)
      throw new UsageError(`--rule must be <name>=MAJORITY|UNANIMOUS, not ${text.slice(0, 60)}`);
    rules[name as RuleName] = rule;
  }
  return rules;
}

function shownBusiness(business: OwnBusiness): object {
  const { address, name, environment, status, charter, removal, move, proposals } = business;
  return {
    address,
    name: shownText(name),
    environment,
    status,
    rules: charter.rules,
    members: namedMembersOf(business).map((member) => ({
      address: member.address,
      name: shownText(member.name),
      votingRights: member.isVoting,
    })),
    removal,
    move,
    proposals: proposals.map(shownProposal),
  };
}

function shownProposal({ id, operation, status, words, tally }: ListedProposal): object {
  return {
    id: shownText(id),
    operation: shownText(operation),
    status: shownText(status),
    words: words.join("\n"),
    ...tally,
  };
}
