import { reportRequest } from "../kyb/index.ts";
import { reportOrder } from "../kyc/index.ts";
import { exampleIds } from "./example-ids.ts";
import { inContext, type Verb } from "./verb.ts";

const answers = {
  answers: {
    description: "Show what is kept of the receivers' answers, which may hold personal data.",
  },
};
const notes =
  "`events` and `attempts` are the newest 100 of each, newest first. `outcome` says why an attempt had no answer, which merchants are not told: `blocked` by the rules for addresses, `unreachable`, `timeout`, `too_large`, or `error` for a fault of the service's own.";

/** The verbs that show orders and requests with the delivery of their events. */
export const orderVerbs: readonly Verb[] = [
  {
    name: "order show",
    summary: "Show a KYC order with its statuses, its events and the attempts to deliver them.",
    notes: `\`statuses\` are the last 100, oldest first. ${notes}`,
    parameters: [{ name: "order", description: "Its referenceKey." }],
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
    parameters: [{ name: "request", description: "Its requestId." }],
    options: answers,
    example: `request show ${exampleIds.request}`,
    run: inContext(async (ctx, input) =>
      reportRequest(ctx, input.text("request"), { withAnswers: input.flag("answers") }),
    ),
  },
];
