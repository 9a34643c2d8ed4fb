import { decodeInfos, type Info } from "@svc/protocol";
import { isConcern, type Concern } from "../concern.ts";
import type { Outcome } from "../outcome.ts";
import { businessOption, readBusinessOption } from "./business-option.ts";
import { identityOptions, withWallet } from "./identity-options.ts";
import { UsageError, type Input, type Reply, type Verb } from "./verb.ts";

const link = {
  link: "The text of the QR code, or the svc: or universal link; put it in single quotes.",
};
export const acceptOption = {
  value: "concern",
  repeated: true,
  description:
    "Confirm a concern about the request: other-network, unknown-requester, or the warning that a refusal names.",
} as const;

/** The verbs that work on a link. */
export const linkVerbs: readonly Verb[] = [
  {
    name: "show",
    summary: "Show what a link asks for, in words and in data.",
    notes:
      "For a login at a known broker this claims the login; a later approve or decline, from any process, continues with that claim.",
    parameters: link,
    options: identityOptions,
    example: "show 'svc:login?sess=..&conn=..' --as alice",
    async run(home, input) {
      const description = await withWallet(home, input, async (wallet) =>
        wallet.describe(input.text("link")),
      );
      return { value: { ...description, words: description.words.join("\n") } };
    },
  },
  {
    name: "approve",
    summary:
      "Approve what a link asks for: sign, and deliver the answer in the way that the link says.",
    notes: `If a login by QR code needs digits and --code is missing, the login is only claimed: the result is {"status":"code_required"}, and the exit status is 2.`,
    parameters: link,
    options: {
      ...identityOptions,
      code: { value: "digits", description: "The two digits that the page shows now." },
      without: {
        value: "field",
        repeated: true,
        description: "Withhold an optional field, named as it is shown or as the link writes it.",
      },
      field: {
        value: "field",
        repeated: true,
        description: "Share this field, if a data transfer leaves the choice to you.",
      },
      ...businessOption,
      accept: acceptOption,
    },
    example: "approve 'svc:login?sess=..&conn=..' --as alice --code 42",
    async run(home, input) {
      const code = input.optional("code");
      const accept = readAccepted(input);
      const business = readBusinessOption(input);
      return withWallet(home, input, async (wallet) =>
        replyOf(
          await wallet.approve(input.text("link"), {
            accept,
            without: input.list("without"),
            fields: input.list("field"),
            ...(code === undefined ? {} : { code }),
            ...(business === undefined ? {} : { business }),
          }),
        ),
      );
    },
  },
  {
    name: "decline",
    summary: "Decline what a link asks for.",
    notes:
      "An unknown requester learns only that the request was declined; with --accept unknown-requester also who declined it, with a signature.",
    parameters: link,
    options: {
      ...identityOptions,
      "not-started": { description: "Report that somebody else started this login." },
      accept: acceptOption,
    },
    example: "decline 'svc:login?sess=..&conn=..' --as alice --not-started",
    async run(home, input) {
      const denial = { notStarted: input.flag("not-started"), accept: readAccepted(input) };
      return withWallet(home, input, async (wallet) =>
        replyOf(await wallet.decline(input.text("link"), denial)),
      );
    },
  },
  {
    name: "pick-up",
    summary: "Pick up what another wallet left behind a link. This works once; then it is gone.",
    notes:
      "Nothing in it is verified: the identity and the values are what the creator of the link wrote.",
    parameters: { link: "The link that the other wallet showed; put it in single quotes." },
    options: identityOptions,
    example: "pick-up 'https://wallet.example/p#..' --as bob",
    async run(home, input) {
      const text = input.text("link");
      return withWallet(home, input, async (wallet) => {
        const result = await wallet.pickUp(text, { keeps: true });
        return {
          value: { result, ...infosOf(result), verified: false },
          told: async () => wallet.forgetPickUp(text),
        };
      });
    },
  },
];

/** The fields inside, if it holds any. */
function infosOf({ infos }: Readonly<Record<string, unknown>>): { infos?: readonly Info[] } {
  const decoded = typeof infos === "string" ? decodeInfos(infos) : null;
  return decoded === null || "fault" in decoded ? {} : { infos: decoded };
}

/** The concerns that `--accept` names. @throws {UsageError} */
export function readAccepted(input: Input): ReadonlySet<Concern> {
  const given = input.list("accept");
  const concerns = given.filter(isConcern);
  const unknown = given.find((text) => !isConcern(text));
  if (unknown !== undefined) throw new UsageError(`--accept knows no concern called ${unknown}`);
  return new Set(concerns);
}

function replyOf(outcome: Outcome): Reply {
  switch (outcome.kind) {
    case "delivered": {
      const { status, result, answer, refusal } = outcome;
      const value = { status, result, answer };
      return refusal === undefined ? { value } : { value, status: 1, line: refusal };
    }
    case "opened":
      return { value: { open: outcome.url } };
    case "shown":
      return { value: { payload: outcome.payload } };
    case "left":
      return { value: { payload: outcome.link, expiresAt: outcome.expiresAt } };
    case "handed-over":
      return { value: { status: "handed_over" } };
    case "code-required":
      break;
  }
  return { value: { status: "code_required" }, status: 2 };
}
