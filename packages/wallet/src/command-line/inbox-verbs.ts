import type { InboxEntry } from "../inbox.ts";
import { shownText } from "../shown-text.ts";
import { identityOptions, withWallet } from "./identity-options.ts";
import { acceptOption, readAccepted } from "./link-verbs.ts";
import { UsageError, type Verb } from "./verb.ts";

/** The verbs of what members of a business decide together. */
export const inboxVerbs: readonly Verb[] = [
  {
    name: "inbox",
    summary: "List what waits for this identity's vote as a member of a business.",
    notes:
      "The inbox holds requests for data and signatures, logins for the business, changes of the business itself, and invitations.",
    options: identityOptions,
    example: "inbox --as bob",
    async run(home, input) {
      const entries = await withWallet(home, input, async (wallet) => wallet.inbox());
      return { value: { votes: entries.map(shownEntry) } };
    },
  },
  {
    name: "vote",
    summary: "Approve or reject an entry of the inbox.",
    notes:
      "The wallet signs what it recomputes from what it shows, never a digest that was sent to it. Approvals of signatures and of changes are public on the chain. Repeating the same vote changes nothing.",
    parameters: { id: "The entry's id, as `inbox` prints it." },
    options: {
      ...identityOptions,
      approve: { description: "Vote to approve." },
      reject: { description: "Vote to reject." },
      without: {
        value: "field",
        repeated: true,
        description:
          "Withhold an optional field of a data request; the first approval decides for all members.",
      },
      accept: acceptOption,
    },
    example: "vote 01JD3Z.. --approve --as bob",
    async run(home, input) {
      const [isFor, isAgainst] = [input.flag("approve"), input.flag("reject")];
      if (isFor === isAgainst) throw new UsageError("give either --approve or --reject");
      const decision = {
        vote: isFor ? "approve" : "reject",
        without: input.list("without"),
        accept: readAccepted(input),
      } as const;
      const value = await withWallet(home, input, async (wallet) =>
        wallet.vote(input.text("id"), decision),
      );
      return { value };
    },
  },
];

/**
 * An entry as one JSON object: some members are in every entry, null if it has no such value; the others depend on its
 * kind.
 */
function shownEntry({ id, kind, broker, item, words, concerns, refusal }: InboxEntry): object {
  const shown = {
    broker,
    words: words.join("\n"),
    concerns,
    ...(refusal === undefined ? {} : { refusal }),
  };
  if (item === null)
    return { id, kind, business: null, requester: null, purpose: null, expiresAt: null, ...shown };
  const { business, requester, expiresAt } = item;
  const { name } = business;
  return {
    id,
    kind,
    business: { address: business.address, name: shownText(name) },
    requester: requester === null ? null : { ...requester, name: shownText(requester.name) },
    purpose: "purpose" in item ? item.purpose.split("\n").map(shownText).join("\n") : null,
    ...contentOf(item),
    expiresAt,
    ...shown,
  };
}

function contentOf(item: NonNullable<InboxEntry["item"]>): object {
  switch (item.kind) {
    case "data_request": {
      const { required, optional, fixedOptional } = item;
      return { fields: [...required, ...optional], optional, fixedOptional };
    }
    case "signature_request": {
      const { messageKind, ...content } = item.document;
      return { messageKind, ...content, digest: item.digest };
    }
    case "business_login": {
      const { clientName, scope, actingMember } = item;
      return { clientName: shownText(clientName), scope, actingMember };
    }
    case "governance":
      return { operation: item.operation, arguments: item.arguments };
    case "invitation":
      break;
  }
  const { rules, members, names } = item.charter;
  return {
    rules,
    members: members.map(({ address, isVoting }) => ({
      address,
      name: shownText(names.get(address) ?? ""),
      votingRights: isVoting,
    })),
  };
}
