import type { TypedDataTypes } from "./typed-data-types.ts";

/** The domain of everything a person signs for a service (decisions, section 3). */
export const svcDomain = { name: "svc", version: "1" } as const;

/** The types of decisions, section 3, signed in `svcDomain`; wallets show them when they sign. */
export const svcTypes = {
  Login: [
    { name: "session", type: "string" },
    { name: "connection", type: "string" },
    { name: "requester", type: "string" },
    { name: "code", type: "string" },
    { name: "object", type: "bytes32" },
  ],
  Share: [
    { name: "request", type: "string" },
    { name: "connection", type: "string" },
    { name: "requester", type: "string" },
    { name: "object", type: "bytes32" },
    { name: "fields", type: "bytes32" },
    { name: "data", type: "bytes32" },
    { name: "deadline", type: "uint64" },
  ],
  Access: [
    { name: "request", type: "string" },
    { name: "connection", type: "string" },
    { name: "requester", type: "string" },
    { name: "object", type: "bytes32" },
    { name: "fields", type: "bytes32" },
    { name: "deadline", type: "uint64" },
  ],
  Transfer: [
    { name: "from", type: "address" },
    { name: "data", type: "bytes32" },
    { name: "expiresAt", type: "uint64" },
    { name: "audience", type: "string" },
    { name: "nonce", type: "string" },
  ],
  Decline: [
    { name: "request", type: "string" },
    { name: "connection", type: "string" },
  ],
  Session: [
    { name: "origin", type: "string" },
    { name: "challenge", type: "string" },
    { name: "deadline", type: "uint64" },
  ],
} as const satisfies TypedDataTypes;

/** The types of decisions, section 6, signed in the domain of a business wallet or of the factory. */
export const businessTypes = {
  BusinessApproval: [
    { name: "category", type: "uint8" },
    { name: "hash", type: "bytes32" },
    { name: "epoch", type: "uint64" },
    { name: "validUntil", type: "uint48" },
  ],
  Release: [
    { name: "requestId", type: "string" },
    { name: "audience", type: "string" },
    { name: "business", type: "address" },
    { name: "required", type: "bytes32" },
    { name: "optional", type: "bytes32" },
    { name: "purpose", type: "bytes32" },
    { name: "deadline", type: "uint64" },
  ],
  Governance: [
    { name: "operation", type: "bytes32" },
    { name: "arguments", type: "bytes32" },
    { name: "nonce", type: "uint256" },
  ],
  BusinessLogin: [
    { name: "session", type: "string" },
    { name: "issuer", type: "string" },
    { name: "clientId", type: "string" },
    { name: "requester", type: "string" },
    { name: "scope", type: "string" },
    { name: "business", type: "address" },
    { name: "actingMember", type: "address" },
  ],
  Invitation: [
    { name: "factory", type: "address" },
    { name: "salt", type: "bytes32" },
    { name: "roster", type: "bytes32" },
    { name: "rules", type: "bytes32" },
    { name: "deadline", type: "uint64" },
  ],
  Keep: [{ name: "nonce", type: "uint256" }],
} as const satisfies TypedDataTypes;
