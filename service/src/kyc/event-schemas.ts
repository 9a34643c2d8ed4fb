import { type Static, type TObject, Type, UserText } from "../platform/http/schema.ts";
import type { WebhookAbout } from "../platform/http/webhook-document.ts";
import {
  attemptNumber,
  expirationTime,
  initiatedHash,
  keyText,
  orderStatus,
  referenceText,
} from "./order-schema.ts";

const common = {
  referenceKey: keyText,
  reference: Type.Optional(referenceText),
  attempt: attemptNumber,
  user: UserText,
};
const names = (description: string) => Type.Array(Type.String(), { description });

const statusData = Type.Object({
  ...common,
  fields: names("The fields that were asked for, including optional ones."),
  ...orderStatus.properties,
  expiration: expirationTime,
});
const transferData = Type.Object({
  ...common,
  infos: Type.String({
    description: "Base64 of a JSON array of `field`, `data` (Base64) and `pepper` (Base64).",
  }),
  expiration: expirationTime,
  initiatedTxHash: initiatedHash,
});
const invalidData = Type.Object({
  ...common,
  fields: names("The fields delivered in this attempt or an earlier one that are no longer valid."),
});

export type CommonData = Pick<Static<typeof statusData>, keyof typeof common>;
export type StatusData = Static<typeof statusData>;
export type TransferData = Static<typeof transferData>;
export type InvalidData = Static<typeof invalidData>;

const signature = {
  header: "Svc-Signature",
  description:
    "`t=<seconds>,s=<hex>`: HMAC-SHA256 over `<t>.<raw body>` with the package's signing key.",
};

/** What differs between the events. */
interface OrderEvent extends Pick<WebhookAbout, "name" | "summary"> {
  readonly title: string;
  readonly data: TObject;
}

const orderEvent = ({ name, summary, title, data }: OrderEvent): WebhookAbout => ({
  name,
  summary,
  body: Type.Object(
    {
      event: Type.Literal(name, { description: `${summary}.` }),
      event_id: Type.String({ description: "The event's id: the same in every delivery." }),
      sequence: Type.Integer({ description: "Counts the events of one order, from 1." }),
      timestamp: Type.Integer({ description: "When it happened, Unix seconds." }),
      livemode: Type.Boolean({ description: "False for an order of the sandbox." }),
      data: { ...data, description: "The order that the event is about, and what is new." },
    },
    { title },
  ),
  signature,
});

/** The events of orders for the OpenAPI document. */
export const orderWebhooks: readonly WebhookAbout[] = [
  orderEvent({
    name: "status.updated",
    summary: "An order reached a status",
    title: "StatusUpdated",
    data: statusData,
  }),
  orderEvent({
    name: "data.transferred",
    summary: "The user released fields",
    title: "DataTransferred",
    data: transferData,
  }),
  orderEvent({
    name: "data.invalidated",
    summary: "Delivered fields are no longer valid",
    title: "DataInvalidated",
    data: invalidData,
  }),
];
