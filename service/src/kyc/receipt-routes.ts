import { ChainNumber, FieldText, Type } from "../platform/http/schema.ts";
import { wholeFromOne } from "../platform/http/text-form.ts";
import type { Receipt } from "@svc/protocol";
import { apiKeyOf } from "../accounts/index.ts";
import type { Http } from "../platform/http/http.ts";
import { envelope, envelopeBody } from "../platform/http/envelope.ts";
import { keyReasons, refusals } from "../platform/http/refusals.ts";
import type { WalletCaller } from "../platform/http/wallet-caller.ts";
import type { KycContext } from "./kyc-context.ts";
import { attemptNumber, keyMember, keyText } from "./order-schema.ts";
import { getReceipt, getReceiptOf } from "./receipts.ts";

const address = Type.String({ description: "0x and 40 hex digits." });
const hash = Type.String({ description: "0x and 64 hex digits." });
const seconds = Type.Integer({ description: "Unix seconds." });
const proof = Type.Array(hash, { description: "The siblings from the leaf to the root." });

const phase = Type.Object(
  {
    operator: address,
    transactionHash: hash,
    blockNumber: Type.Integer({ description: "The block that holds the transaction." }),
    blockTime: seconds,
    root: hash,
    proof,
  },
  { title: "ReceiptPhase" },
);

/** `Receipt` of the protocol as a schema. */
const receiptBody = Type.Object(
  {
    referenceKey: keyText,
    attempt: attemptNumber,
    salt: hash,
    user: address,
    livemode: Type.Boolean({ description: "False for an order of the sandbox." }),
    requestObject: Type.String({
      description: "The request object in compact form, as the wallet received it.",
    }),
    share: Type.Object(
      {
        request: Type.String({ description: "The `referenceKey` of the order." }),
        connection: Type.String({ description: "The `conn` of the link." }),
        requester: Type.String({ description: "The verified domain, or empty." }),
        object: hash,
        fields: hash,
        data: hash,
        deadline: seconds,
      },
      { description: "The `Share` message that the user signed." },
    ),
    signature: Type.String({
      pattern: "^0x",
      description: "The user's signature over `share`, in hex.",
    }),
    fields: Type.Array(
      Type.Object({
        field: FieldText,
        commitment: hash,
        expiresAt: seconds,
        issuer: address,
        root: hash,
        proof,
      }),
      { description: "The fields that the user released, sorted by name; without values." },
    ),
    chainId: ChainNumber,
    registry: address,
    settlement: address,
    initiate: phase,
    confirm: Type.Optional(phase),
  },
  { title: "Receipt" },
);

const attemptQuery = Type.Optional(
  wholeFromOne({
    description: "The attempt of the order. Default: the newest one that is anchored.",
  }),
);

const description =
  "A receipt proves, without this service, what the user consented to and that this was anchored on chain no later than the time of the block. It holds no values of fields.";
const reasons = ["invalid_request", "order_not_found", "receipt_not_found"] as const;

/** The receipt for the merchant (decisions section 5, Additive). */
export function receiptRoute(ctx: KycContext, scope: Http): void {
  scope.get(
    "/api/v2/kyc/receipt",
    {
      schema: {
        operationId: "getOrderReceipt",
        summary: "Get the receipt of an order",
        description,
        tags: ["kyc"],
        querystring: Type.Object({ ...keyMember, attempt: attemptQuery }),
        response: {
          200: envelopeBody(receiptBody, "The receipt; verify it with your own anchors."),
          ...refusals(...reasons, ...keyReasons),
        },
      },
    },
    async (request) => {
      const asked = askedOf(request.query.referenceKey, request.query.attempt);
      const receipt = await getReceipt(ctx, apiKeyOf(request), asked);
      return envelope(shownReceipt(receipt), "receipt has been sent successfully");
    },
  );
}

/** The same receipt for the wallet that consented. */
export function receiptWalletRoute(
  ctx: KycContext,
  scope: Http,
  getWalletUser: WalletCaller,
): void {
  scope.get(
    "/w/orders/:referenceKey/receipt",
    {
      schema: {
        operationId: "getUserOrderReceipt",
        summary: "Get the receipt of a data request to this identity",
        description,
        tags: ["wallet"],
        params: Type.Object(keyMember),
        querystring: Type.Object({ attempt: attemptQuery }),
        response: {
          200: Type.Object(receiptBody.properties, { description: "The receipt." }),
          ...refusals(...reasons, "wallet_session_required"),
        },
      },
    },
    async (request) => {
      const user = await getWalletUser(request.headers.authorization);
      const asked = askedOf(request.params.referenceKey, request.query.attempt);
      return shownReceipt(await getReceiptOf(ctx, user, asked));
    },
  );
}

function askedOf(referenceKey: string, attempt: string | undefined) {
  return { referenceKey, attempt: attempt === undefined ? null : Number(attempt) };
}

const shownPhase = (given: Receipt["initiate"]) => ({ ...given, proof: [...given.proof] });

/** The same with mutable arrays, which the type of the schema demands. */
function shownReceipt(receipt: Receipt) {
  const { initiate, confirm, fields, ...rest } = receipt;
  return {
    ...rest,
    fields: fields.map((field) => Object.assign({}, field, { proof: [...field.proof] })),
    initiate: shownPhase(initiate),
    ...(confirm === undefined ? {} : { confirm: shownPhase(confirm) }),
  };
}
