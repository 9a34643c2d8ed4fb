import { type TObject, type TSchema, Type } from "../../platform/http/schema.ts";
import type { WebhookAbout } from "../../platform/http/webhook-document.ts";
import { type KybEventKind, kybEventKinds } from "./events.ts";
import { priceLine } from "../billing/price-line-schema.ts";
import {
  businessAddress,
  cents,
  eip155Id,
  currencyCode,
  digest,
  endReason,
  messageKind,
  requestId,
  seconds,
  shownAddress,
  signature,
  signingTransaction,
  verificationMembers,
} from "../member-schemas.ts";

const attestation = Type.String({ description: "A JWT, signed by an attestation key." });

const ofRequest = (status: string) => ({
  request_id: requestId,
  business_wallet_address: businessAddress,
  status: Type.Literal(status, {
    description: "The status of the request since this event, as the kind of the event says.",
  }),
  reason: Type.Optional(endReason),
  expires_at: seconds("Until when members may vote"),
});

const ofDataRequest = (status: string) => ({
  ...ofRequest(status),
  reference: Type.Optional(Type.String({ description: "Your own reference, as you gave it." })),
  created_at: seconds("When the request was made"),
  price: Type.Object(
    {
      quoted_cents: cents("The maximum price, held until the request ends"),
      currency: currencyCode,
    },
    { description: "What was quoted when the request was made." },
  ),
});

const ofSignatureRequest = (status: string) => ({
  ...ofRequest(status),
  message_kind: messageKind,
  digest,
});

const released = {
  ...ofDataRequest("released"),
  released_at: seconds("When it was released"),
  fields: Type.Array(Type.String(), {
    description: "The names of the released fields; their values are in `attestation`.",
  }),
  charge: Type.Object(
    {
      cents: cents("The sum of the lines"),
      currency: currencyCode,
      lines: Type.Array(priceLine, {
        description: "One line for each released field, however many persons it covers.",
      }),
    },
    { description: "What the release cost; the rest of the quoted price is free again." },
  ),
};

const signed = {
  ...ofSignatureRequest("signed"),
  signature,
  signed_at: seconds("When the contract recorded it"),
  transaction_hash: signingTransaction,
  verification: Type.Object(
    {
      method: verificationMembers.method,
      contract: verificationMembers.contract,
      chain_id: eip155Id,
      selector: verificationMembers.selector,
    },
    { description: "How to check the signature on chain." },
  ),
};

const moved = {
  business_wallet_address: shownAddress("The wallet until now"),
  new_business_wallet_address: shownAddress("The wallet in which the business goes on"),
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
  const isTest = kind === "kyb.endpoint.test";
  return Type.Object({
    event: Type.Literal(kind, {
      description: "The kind of the event, which decides what `data` holds.",
    }),
    event_id: Type.String({ description: "The event's id: the same in every delivery." }),
    stream_id: Type.String({
      description:
        "The request that the event belongs to; tests and moves have streams of their own.",
    }),
    seq: Type.Integer({ description: "Counts the events of one stream, from 1." }),
    timestamp: seconds("When it happened"),
    api_version: Type.Literal("v1", { description: "The version of this form of events." }),
    livemode: Type.Boolean({ description: "False in the sandbox." }),
    data: Type.Object(data, {
      description: isTest ? "Empty." : "What happened, without personal data.",
    }),
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
