import { type TObject, type TSchema, Type } from "../../platform/http/schema.ts";
import type { WebhookAbout } from "../../platform/http/webhook-document.ts";
import { type KybEventKind, kybEventKinds } from "./events.ts";
import { priceLine } from "../billing/price-line-schema.ts";

const seconds = (description: string): TSchema =>
  Type.Integer({ description: `${description}, Unix seconds.` });
const attestation = Type.String({ description: "A JWT, signed by an attestation key." });

const ofRequest = (status: string) => ({
  request_id: Type.String(),
  business_wallet_address: Type.String(),
  status: Type.Literal(status),
  reason: Type.Optional(Type.String()),
  expires_at: seconds("Until when members may vote"),
});

const ofDataRequest = (status: string) => ({
  ...ofRequest(status),
  reference: Type.Optional(Type.String({ description: "Your own reference, as you gave it." })),
  created_at: seconds("When the request was made"),
  price: Type.Object({ quoted_cents: Type.Integer(), currency: Type.String() }),
});

const ofSignatureRequest = (status: string) => ({
  ...ofRequest(status),
  message_kind: Type.String(),
  digest: Type.String(),
});

const released = {
  ...ofDataRequest("released"),
  released_at: seconds("When it was released"),
  fields: Type.Array(Type.String()),
  charge: Type.Object({
    cents: Type.Integer(),
    currency: Type.String(),
    lines: Type.Array(priceLine),
  }),
};

const signed = {
  ...ofSignatureRequest("signed"),
  signature: Type.String(),
  signed_at: seconds("When the contract recorded it"),
  transaction_hash: Type.String(),
  verification: Type.Object({
    method: Type.Literal("eip1271"),
    contract: Type.String(),
    chain_id: Type.Integer(),
    selector: Type.Literal("0x1626ba7e"),
  }),
};

const moved = {
  business_wallet_address: Type.String({ description: "The address until now." }),
  new_business_wallet_address: Type.String(),
  changed_at: seconds("When it moved"),
};

type Members = Readonly<Record<string, TSchema>>;

/** The members of `data`, and further members of the event that only this kind has. */
function membersOf(kind: KybEventKind): { data: Members; beside?: Members } {
  if (kind === "kyb.data_request.released") return { data: released, beside: { attestation } };
  if (kind === "kyb.signature_request.signed") return { data: signed };
  if (kind === "kyb.business.wallet_address_changed")
    return { data: moved, beside: { attestation } };
  if (kind === "kyb.endpoint.test") return { data: {} };
  const [, subject, status = ""] = kind.split(".");
  return { data: subject === "data_request" ? ofDataRequest(status) : ofSignatureRequest(status) };
}

function eventBody(kind: KybEventKind): TObject {
  const { data, beside = {} } = membersOf(kind);
  return Type.Object({
    event: Type.Literal(kind),
    event_id: Type.String({ description: "The event's id: the same in every delivery." }),
    stream_id: Type.String({
      description:
        "The request that the event belongs to; tests and moves have streams of their own.",
    }),
    seq: Type.Integer({ description: "Counts the events of one stream, from 1." }),
    timestamp: seconds("When it happened"),
    api_version: Type.Literal("v1"),
    livemode: Type.Boolean(),
    data: Type.Object(data),
    ...beside,
  });
}

/** The events of KYB endpoints, for the OpenAPI document. */
export const businessWebhooks: readonly WebhookAbout[] = kybEventKinds.map((kind) => ({
  name: kind,
  summary: `Sent to the endpoint as \`${kind}\``,
  body: eventBody(kind),
  signature: {
    header: "Svc-KYB-Signature",
    description:
      "`t=<seconds>,v1=<hex>,kv=<version>`: HMAC-SHA256 over `<t>.<raw body>` with the endpoint's secret; two pairs while the secret is rotated.",
  },
}));
