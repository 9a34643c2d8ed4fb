import { reportRequest } from "../kyb/index.ts";
import { reportOrder } from "../kyc/index.ts";
import { exampleIds } from "./example-ids.ts";
import { inContext, type Verb } from "./verb.ts";

const answers = {
  answers: {
    description: "Include what is kept of the receivers' answers, which may contain personal data.",
  },
};
const notes =
  "`events` and `attempts` hold the newest 100 of each, newest first. `outcome` says why an attempt got no answer, which merchants do not see: `blocked` (by the rules for addresses), `unreachable`, `timeout`, `too_large`, or `error` (a fault of the service itself).";

/** The verbs that show orders and requests with the delivery of their events. */
export const orderVerbs: readonly Verb[] = [
  {
    name: "order show",
    summary: "Show a KYC order with its statuses, its events and the attempts to deliver them.",
    notes: `\`statuses\` holds the last 100, oldest first. ${notes}`,
    parameters: [{ name: "order", description: "The order's referenceKey." }],
    options: answers,
    example: `order show ${exampleIds.order}`,
    run: inContext(async (ctx, input) =>
      reportOrder(ctx, input.text("order"), { withAnswers: input.flag("answers") }),
    ),
  },
  {
    name: "request show",
    summary: "Show a data or signature request with its events and the attempts to deliver them.",
    notes,
    parameters: [{ name: "request", description: "The request's requestId." }],
    options: answers,
    example: `request show ${exampleIds.request}`,
    run: inContext(async (ctx, input) =>
      reportRequest(ctx, input.text("request"), { withAnswers: input.flag("answers") }),
    ),
  },
];
