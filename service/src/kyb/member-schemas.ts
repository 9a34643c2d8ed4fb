// Schemas of members that several routes of businesses have.
import { Type } from "../platform/http/schema.ts";

/** An address in a request, as `readAddress` takes it. @param whose without a full stop */
export const givenAddress = (whose: string) =>
  Type.String({
    maxLength: 100,
    description: `${whose}: 40 hex digits, with or without 0x; in mixed case, with the checksum of EIP-55.`,
  });

/** An address in an answer. @param whose without a full stop */
export const shownAddress = (whose: string) =>
  Type.String({ description: `${whose}: 0x and 40 hex digits in lower case.` });

/** 32 bytes in an answer. @param what without a full stop */
export const shownHash = (what: string) =>
  Type.String({ description: `${what}: 0x and 64 hex digits.` });

/** A time. @param when without a full stop */
export const seconds = (when: string) => Type.Integer({ description: `${when}, Unix seconds.` });

/** An amount of money. @param what without a full stop */
export const cents = (what: string) =>
  Type.Integer({ description: `${what}, in Rappen (a hundredth of a franc).` });

export const currencyCode = Type.String({ description: "The currency of the amounts: `CHF`." });

/** The path parameters of a route about one thing. @param description of its id */
export const idParams = (description: string) => Type.Object({ id: Type.String({ description }) });

export const RequestParams = idParams("The `requestId`.");

export const requestId = Type.String({ description: "The id of the request, a ULID." });

export const businessAddress = shownAddress("The business");

export const nameOfBusiness = Type.String({ description: "The name that its members gave it." });

export const organizationName = Type.String({ description: "The name of the organization." });

export const fieldName = Type.String({ description: "The name of the field in the catalogue." });

export const subjectType = Type.String({
  description:
    "Whom the field tells of: `BUSINESS`, `DIRECTOR`, `UBO`, `REPRESENTATIVE` or `SHAREHOLDER`.",
});

export const eip155Id = Type.Integer({ description: "The chain's EIP-155 id." });

/** Why a request ended, in its record and in its event. */
export const endReason = Type.String({
  description:
    "`declined` or `expired`; or why it failed: `business_not_verified`, `business_wallet_rotated`, `unavailable`. Absent while it is open, if it succeeded, or if you cancelled it.",
});

export const messageKind = Type.String({
  description: "What is signed: a text (`TEXT`), or an EIP-712 document (`TYPED_DATA`).",
});

export const digest = shownHash(
  "The EIP-191 digest of a TEXT, or the EIP-712 digest of TYPED_DATA",
);

/** What the contract recorded when the business signed. */
export const signature = Type.String({
  description:
    "For `isValidSignature` of the business's wallet: 0x01 and the 64 digits of the digest.",
});

export const signingTransaction = shownHash("The transaction that recorded the signature");

/** How to check a signature, but for the id of the chain, whose name differs between routes and events. */
export const verificationMembers = {
  method: Type.Literal("eip1271", {
    description: "Ask the contract, by `isValidSignature` of ERC-1271.",
  }),
  contract: shownAddress("The business's wallet"),
  selector: Type.Literal("0x1626ba7e", {
    description: "What the contract answers if the signature is valid.",
  }),
};
