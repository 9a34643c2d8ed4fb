import { type Static, type TObject, Type } from "../platform/http/schema.ts";
import type { WebhookAbout } from "../platform/http/webhook-document.ts";
import { orderStatus } from "./order-schema.ts";

const common = {
  referenceKey: Type.String(),
  reference: Type.Optional(Type.String({ description: "Your own reference, as you gave it." })),
  attempt: Type.Integer({ description: "The attempt of the order, from 1." }),
  user: Type.String(),
};
const expiration = Type.Integer({ description: "Until when the user may approve, Unix seconds." });
const names = (description: string) => Type.Array(Type.String(), { description });

const statusData = Type.Object({
  ...common,
  fields: names("The fields that were asked for, including optional ones."),
  ...orderStatus.properties,
  expiration,
});
const transferData = Type.Object({
  ...common,
  infos: Type.String({
    description: "Base64 of a JSON array of `field`, `data` (Base64) and `pepper` (Base64).",
  }),
  expiration,
  initiatedTxHash: Type.Optional(Type.String()),
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

const eventBody = (name: string, title: string, data: TObject): TObject =>
  Type.Object(
    {
      event: Type.Literal(name),
      event_id: Type.String({ description: "The event's id: the same in every delivery." }),
      sequence: Type.Integer({ description: "Counts the events of one order, from 1." }),
      timestamp: Type.Integer({ description: "When it happened, Unix seconds." }),
      livemode: Type.Boolean(),
      data,
    },
    { title },
  );

/** The events of orders for the OpenAPI document. */
export const orderWebhooks: readonly WebhookAbout[] = [
  {
    name: "status.updated",
    summary: "An order reached a status",
    body: eventBody("status.updated", "StatusUpdated", statusData),
    signature,
  },
  {
    name: "data.transferred",
    summary: "The user released fields",
    body: eventBody("data.transferred", "DataTransferred", transferData),
    signature,
  },
  {
    name: "data.invalidated",
    summary: "Delivered fields are no longer valid",
    body: eventBody("data.invalidated", "DataInvalidated", invalidData),
    signature,
  },
];
