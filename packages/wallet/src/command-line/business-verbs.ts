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
    description: "A voting member: a name of this wallet, or with the address.",
  },
  observer: {
    value: "name[=0x..]",
    repeated: true,
    description: "A member without a vote.",
  },
  rule: {
    value: "name=MAJORITY|UNANIMOUS",
    repeated: true,
    description:
      "How many have to approve; name is signature_requests (logins too), data_requests or governance.",
  },
} as const satisfies Record<string, Option>;

const ownOptions = { ...identityOptions, ...businessOption } as const;

const proposalOptions = {
  ...ownOptions,
  show: { description: "Say what it would do, without asking anybody yet." },
} as const satisfies Record<string, Option>;

/** The verbs of businesses: founding one, and changing it. */
export const businessVerbs: readonly Verb[] = [
  {
    name: "business create",
    summary: "Founds a business: signs first, and invites the other members.",
    notes:
      "The founder is a voting member. The wallet of the business is deployed once everybody has accepted, within 7 days. Rules: MAJORITY unless named; governance is UNANIMOUS if no more than two members have a vote.",
    options: {
      ...identityOptions,
      name: { value: "text", description: "What the business is called." },
      ...rosterOptions,
      environment: { value: "live|sandbox", description: "live unless given." },
    },
    example:
      "business create --name 'Alpine AG' --member bob --member carol --rule data_requests=MAJORITY --as alice",
    run: async (home, input) => create(home, input),
  },
  {
    name: "business accept",
    summary: "Accepts an invitation to found a business: signs its roster and rules.",
    notes:
      "The wallet recomputes the address of the business from them before it signs. `vote <id> --reject` declines.",
    parameters: { invitation: "Its id, or the address of the business; the only one if missing." },
    isLastOptional: true,
    options: identityOptions,
    example: "business accept 01JD3Z.. --as bob",
    run: async (home, input) =>
      withWallet(home, input, async (wallet) => accept(wallet, input.optional("invitation"))),
  },
  {
    name: "business abandon",
    summary: "Ends a founding of this identity before everybody has signed.",
    parameters: { business: "Its address; `business list` shows it." },
    options: identityOptions,
    example: "business abandon 0x5f2c.. --as alice",
    run: async (home, input) =>
      withWallet(home, input, async (wallet) => {
        const named = parseAddress(input.text("business"));
        if (named === null) throw new UsageError("a business is an address of 20 bytes in hex");
        await wallet.abandonBusiness(await wallet.chooseBusiness(named));
        return { value: { address: named, status: "lapsed" } };
      }),
  },
  {
    name: "business list",
    summary:
      "Lists the businesses of an identity, with members, rules, proposals and removals under way.",
    options: identityOptions,
    example: "business list --as alice",
    run: async (home, input) => {
      const items = await withWallet(home, input, async (wallet) => wallet.businesses());
      return { value: { items: items.map(shownBusiness) } };
    },
  },
  {
    name: "business rules",
    summary: "Proposes other rules or members, and approves that.",
    notes:
      "The others vote in their inbox; the stricter of the old and the new rule of governance decides. Rules and members that are not named stay.",
    options: {
      ...proposalOptions,
      ...rosterOptions,
      drop: {
        value: "name|0x..",
        repeated: true,
        description: "Somebody who is no longer to be a member.",
      },
    },
    example: "business rules --rule data_requests=UNANIMOUS --as alice",
    run: async (home, input) =>
      act(home, input, async (business) => charterProposal(home, input, business)),
  },
  {
    name: "business remove",
    summary: "Begins the removal of a member who seems lost, and approves that.",
    notes:
      "A majority of the other voting members decides. The member is removed after 30 days, unless the member objects before that.",
    parameters: { member: "Its name or address." },
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
    summary: "Takes back what this identity proposed, before it is decided.",
    parameters: { proposal: "The id that it was proposed with; `business list` shows it." },
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
    summary: "Ends the removal of this identity from a business, or a move by the operator.",
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
    summary: "Lists what the business released, and to whom: names of fields, no values.",
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
      "Blocks the organization that made this request: the business accepts no more from it.",
    notes:
      "A request of either kind, open or ended; the history has the ids of those that were voted on. Open requests are not affected. Any single voting member can do this, and undo it with --undo.",
    parameters: { request: "The id of a request to the business." },
    options: { ...ownOptions, undo: { description: "Accept its requests again." } },
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
    summary: "Lists the organizations that the business has blocked.",
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
    summary: "Proposes that the business continues in another wallet, for good, and approves that.",
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
    summary: "Proposes to withdraw a signature of the business, and approves that.",
    parameters: { hash: "The digest that the business signed." },
    options: proposalOptions,
    example: "business withdraw 0x9ae1.. --as alice",
    run: async (home, input) =>
      act(home, input, async () => {
        const hash = input.text("hash");
        if (!isHexOf(hash, 32)) throw new UsageError("a digest is 0x and 64 hex digits");
        return { operation: "withdraw", hash: hash.toLowerCase() as Hex32 };
      }),
  },
];

async function create(home: Home, input: Input): Promise<Reply> {
  const name = input.text("name");
  if (name === "") throw new UsageError("--name is missing");
  const environment = input.optional("environment") ?? "live";
  if (environment !== "live" && environment !== "sandbox")
    throw new UsageError("--environment is live or sandbox");
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
      "there is no such invitation for this identity; one that it accepted before is in its history, and is accepted again by its id",
    );
  }
  if (second !== undefined)
    throw new WalletRefusal("invalid_input", "which invitation? see wallet inbox");
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
  if (stranger !== undefined) throw new UsageError(`${stranger} is no member`);
  const staying = before.filter(({ address }) => !dropped.includes(address));
  const members = await readRoster(home, input, staying);
  const rules = { ...business.charter.rules, ...readRules(input) };
  const changes = ["member", "observer", "rule", "drop"].flatMap((name) => input.list(name));
  if (changes.length === 0) throw new UsageError("what should change?");
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
      throw new UsageError(`--rule is <name>=MAJORITY|UNANIMOUS, not ${text.slice(0, 60)}`);
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
