import assert from "node:assert/strict";
import { test } from "node:test";
import type { BusinessFieldName } from "@svc/protocol";
import type { Entitlement } from "../../accounts/index.ts";
import type { CompanyField } from "../../credentials/index.ts";
import type { Business } from "../business/business.ts";
import type { DataRequest } from "../request/data-request.ts";
import { addressOf } from "../test-kyb-store.ts";
import { attestationClaims, decideRelease } from "./release.ts";

const fieldOf = (name: BusinessFieldName, optional: boolean) =>
  ({ name, optional, naturalPersonPii: false, tier: "A", cents: 100 }) as const;

const request: DataRequest = {
  id: "request",
  clientDomainId: "client-domain",
  organizationId: "organization",
  environment: "sandbox",
  business: addressOf("1"),
  purpose: "purpose",
  reference: null,
  fields: [
    fieldOf("BUSINESS_LEGAL_NAME", false),
    fieldOf("BUSINESS_DIRECTOR_COUNT", true),
    fieldOf("BUSINESS_DIRECTOR_NAME", true),
    fieldOf("BUSINESS_COMPANY_TYPE", true),
  ],
  quotedRappen: 400,
  status: "pending_approval",
  reason: null,
  sequence: 1,
  createdAt: 0,
  expiresAt: 1000,
  fixedOptional: ["BUSINESS_DIRECTOR_COUNT", "BUSINESS_DIRECTOR_NAME"],
  approvedAt: 5,
};

const business: Business = {
  address: request.business,
  environment: "sandbox",
  name: "Test Ltd",
  status: "active",
  creator: addressOf("a"),
  charter: {
    rules: { signature_requests: "MAJORITY", data_requests: "MAJORITY", governance: "MAJORITY" },
    members: [],
  },
  epoch: 0,
  nonce: 0,
  verifiedAt: 1,
  registeredAt: 1,
  successor: null,
};

const liveOf = (...names: BusinessFieldName[]): CompanyField[] =>
  names.map((name) => ({
    name,
    subject: "",
    subjectType: "BUSINESS",
    value: "value",
    pepper: `0x${"11".repeat(32)}`,
    leaf: `0x${"22".repeat(32)}`,
    expiresAt: 1000,
    asOf: 1,
    provenance: "Registry",
    credentialId: "credential",
  }));

const all: readonly Entitlement[] = ["kyb:data-request", "kyb:pii", "kyb:signature"];

interface Given {
  readonly changed?: Partial<Business>;
  readonly entitlements?: readonly Entitlement[];
  readonly live?: readonly BusinessFieldName[];
  readonly isSoleProprietor?: boolean;
}

/** The released names, or the reason why none is released. */
function decide({
  changed = {},
  entitlements = all,
  live = request.fields.map(({ name }) => name),
  isSoleProprietor = false,
}: Given = {}): readonly string[] | string {
  const decision = decideRelease(request, {
    business: { ...business, ...changed },
    entitlements: new Set(entitlements),
    live: liveOf(...live),
    isSoleProprietor,
  });
  return decision.kind === "failed" ? decision.reason : decision.fields.map(({ name }) => name);
}

test("those of the agreed fields are released that are valid now and that the organization may have", () => {
  const [legalName, directors, director, type] = request.fields.map(({ name }) => name);
  assert.ok(legalName !== undefined && directors !== undefined);
  assert.ok(director !== undefined && type !== undefined);
  assert.deepEqual(decide(), [legalName, directors, director]);
  assert.deepEqual(decide({ live: [legalName, director, type] }), [legalName, director]);
  const withoutPersons = ["kyb:data-request"] as const;
  assert.deepEqual(decide({ entitlements: withoutPersons }), [legalName, directors]);
});

test("nothing is released without a required field, the entitlement or the good standing", () => {
  const rows: readonly [Given, string][] = [
    [{ live: ["BUSINESS_DIRECTOR_COUNT"] }, "unavailable"],
    [{ entitlements: ["kyb:data-request"], isSoleProprietor: true }, "unavailable"],
    [{ entitlements: ["kyb:pii", "kyb:signature"] }, "unavailable"],
    [{ changed: { verifiedAt: null } }, "business_not_verified"],
    [{ changed: { status: "suspended" } }, "business_not_verified"],
    [{ changed: { status: "moved" } }, "business_wallet_rotated"],
  ];
  for (const [given, reason] of rows) assert.equal(decide(given), reason, JSON.stringify(given));
});

test("an attestation is for the client domain that asked, of the business, about one event and environment", () => {
  const of = { baseUrl: "https://id.example", eventId: "event", sequence: 2, now: 7, values: [] };
  for (const environment of ["live", "sandbox"] as const) {
    const { iss, aud, sub, jti, iat, exp, stream_id, seq, livemode } = attestationClaims(
      { ...request, environment },
      of,
    );
    assert.deepEqual(
      [iss, aud, sub, jti, iat, exp, stream_id, seq, livemode],
      [
        "https://id.example/kyb",
        "client-domain",
        request.business,
        "event",
        7,
        7 + 30 * 86_400,
        "request",
        2,
        environment === "live",
      ],
    );
  }
});
