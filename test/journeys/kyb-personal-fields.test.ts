// What is known of a person takes kyb:pii, and of a sole proprietor everything is known of a person: at the quote, the
// create, the claim of an offer, and the release.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { setEntitlement } from "../../service/src/accounts/index.ts";
import { openDataWorld, requestsPath } from "../kyb-data-world.ts";
import { insertBusinesses } from "../kyb-many-businesses.ts";
import { checkMoney } from "../kyb-money-checks.ts";
import type { Answer } from "../kyb-world.ts";

await using world = await openDataWorld();
const { ctx, organizationId } = world;
const companyOnly = { fields: ["BUSINESS_LEGAL_NAME"], optionalFields: [] };
const purpose = "To open an account for the company";

const reasonOf = ({ status, body }: Answer): string =>
  `${status} ${body.error?.reason ?? ""}`.trim();

async function grantPii(isGranted: boolean): Promise<void> {
  await setEntitlement(ctx, { organizationId, entitlement: "kyb:pii", isGranted }, "test");
  // The organization's keys learn of it by notification.
  await world.until("the keys follow", async () => {
    const { status } = await world.call("POST", `${requestsPath}/quote`, {
      body: { fields: ["BUSINESS_DIRECTOR_NAME"], optionalFields: [] },
    });
    return (status === 200) === isGranted ? true : null;
  });
}

/** A company with the world's usual record. */
async function company(): Promise<Address> {
  const [address] = await insertBusinesses(world, 1, ["alice", "bob", "carol"]);
  return address as Address;
}

const becomeSoleProprietor = async (business: Address, forDays?: number): Promise<string> =>
  world.issueRecord(
    business,
    [{ field: "BUSINESS_COMPANY_TYPE", data: "SOLE_PROPRIETOR" }],
    forDays,
  );

const quote = async (business: Address | null, fields: readonly string[]): Promise<Answer> =>
  world.call("POST", `${requestsPath}/quote`, {
    body: {
      fields,
      optionalFields: [],
      ...(business === null ? {} : { businessWalletAddress: business }),
    },
  });

async function offer(terms: object): Promise<Answer> {
  return world.call("POST", `${requestsPath}/offers`, {
    headers: { "idempotency-key": randomBytes(8).toString("hex") },
    body: { ...terms, purpose },
  });
}

async function claim(offered: Answer, business: Address): Promise<Answer> {
  const link = String(offered.body["link"]);
  const parameters = new URLSearchParams(link.slice(link.indexOf("?")));
  const { pathname } = new URL(parameters.get("conn") ?? "");
  const body = { svcID: world.person("alice").address, business };
  return world.walletCall("alice", "POST", `${pathname}/claim`, { body });
}

async function approve(id: string, optional: readonly string[] = []): Promise<void> {
  for (const name of ["alice", "bob"]) await world.voteAs(name, id, { optional });
}

await test("without kyb:pii a company's own fields go, and those of its people do not", async () => {
  const business = await company();
  await grantPii(false);
  assert.equal(reasonOf(await quote(null, ["BUSINESS_LEGAL_NAME"])), "200");
  assert.equal(reasonOf(await quote(business, ["BUSINESS_LEGAL_NAME"])), "200");
  for (const whose of [null, business])
    assert.equal(reasonOf(await quote(whose, ["BUSINESS_DIRECTOR_NAME"])), "403 pii_not_entitled");
  const personal = { fields: ["BUSINESS_DIRECTOR_NAME"], optionalFields: [] };
  const asOptional = { ...companyOnly, optionalFields: ["BUSINESS_DIRECTOR_NAME"] };
  for (const terms of [personal, asOptional]) {
    const asked = await world.ask({ ...terms, businessWalletAddress: business });
    assert.equal(reasonOf(asked), "403 pii_not_entitled");
    assert.equal(reasonOf(await offer(terms)), "403 pii_not_entitled");
  }
  const asked = await world.ask({ ...companyOnly, businessWalletAddress: business });
  assert.equal(asked.status, 201);
  const id = String(asked.body["requestId"]);
  await approve(id);
  await world.waitFor(id, "released");
});

await test("a sole proprietor's company fields are gated at the quote and the create, at the company's price", async () => {
  const business = await company();
  await becomeSoleProprietor(business);
  await grantPii(false);
  assert.equal(reasonOf(await quote(null, ["BUSINESS_LEGAL_NAME"])), "200", "of nobody yet");
  assert.equal(reasonOf(await quote(business, ["BUSINESS_LEGAL_NAME"])), "403 pii_not_entitled");
  const terms = { ...companyOnly, businessWalletAddress: business };
  assert.equal(reasonOf(await world.ask(terms)), "403 pii_not_entitled");
  await grantPii(true);
  const quoted = await quote(business, ["BUSINESS_LEGAL_NAME"]);
  assert.deepEqual(quoted.body["lines"], [{ field: "BUSINESS_LEGAL_NAME", tier: "A", cents: 100 }]);
  const asked = await world.ask(terms);
  assert.equal(asked.status, 201);
  const [field] = asked.body["fields"] as { naturalPersonPii: boolean }[];
  assert.equal(field?.naturalPersonPii, true);
  const id = String(asked.body["requestId"]);
  await world.call("POST", `${requestsPath}/${id}/cancel`, { body: {} });
});

await test("an offer for company fields is gated when a sole proprietor claims it, and another business may", async () => {
  const [sole, other] = [await company(), await company()];
  await becomeSoleProprietor(sole);
  await grantPii(false);
  const offered = await offer(companyOnly);
  assert.equal(offered.status, 201);
  const refused = await claim(offered, sole);
  assert.equal(reasonOf(refused), "403 pii_not_entitled");
  const claimed = await claim(offered, other);
  assert.ok(claimed.status < 300, reasonOf(claimed));
  const id = String(claimed.body["requestId"]);
  await world.call("POST", `${requestsPath}/${id}/cancel`, { body: {} });
});

await test("kyb:pii is withdrawn between the create and the release: nothing of a person goes, nothing is paid", async () => {
  const business = await company();
  await grantPii(true);
  const asked = await world.ask({
    fields: ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_NAME"],
    optionalFields: [],
    businessWalletAddress: business,
  });
  const id = String(asked.body["requestId"]);
  await world.voteAs("alice", id);
  await grantPii(false);
  await world.voteAs("bob", id);
  const record = await world.waitFor(id, "failed");
  assert.equal(record["reason"], "unavailable");
  const told = JSON.stringify(await world.eventsOf(id));
  assert.ok(!told.includes("attestation"));
  const { body } = await world.call("GET", "/api/v1/kyb/billing/account");
  assert.equal(body["frozenChf"], 0);
  await checkMoney(ctx);
});

await test("kyb:pii is withdrawn, and the person's field was optional: the rest goes and is paid alone", async () => {
  const business = await company();
  await grantPii(true);
  const asked = await world.ask({
    ...companyOnly,
    optionalFields: ["BUSINESS_DIRECTOR_NAME", "BUSINESS_DIRECTOR_COUNT"],
    businessWalletAddress: business,
  });
  const id = String(asked.body["requestId"]);
  const optional = ["BUSINESS_DIRECTOR_NAME", "BUSINESS_DIRECTOR_COUNT"];
  await world.voteAs("alice", id, { optional });
  await grantPii(false);
  await world.voteAs("bob", id, { optional });
  await world.waitFor(id, "released");
  const [, released] = await world.eventsOf(id);
  assert.deepEqual(released?.data["fields"], ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_COUNT"]);
  const claims = Buffer.from(released?.attestation?.split(".")[1] ?? "", "base64url").toString();
  assert.ok(claims.includes("BUSINESS_LEGAL_NAME") && !claims.includes("Canary"));
  const { body } = await world.call("GET", "/api/v1/kyb/billing/charges?limit=1");
  const [charge] = body["items"] as { requestId: string; totalCents: number }[];
  assert.deepEqual([charge?.requestId, charge?.totalCents], [id, 350]);
  await checkMoney(ctx);
});

await test("a company that becomes a sole proprietor before the release: its fields are a person's from then on", async () => {
  const business = await company();
  await grantPii(false);
  const asked = await world.ask({ ...companyOnly, businessWalletAddress: business });
  assert.equal(asked.status, 201);
  const id = String(asked.body["requestId"]);
  await world.voteAs("alice", id);
  await becomeSoleProprietor(business);
  await world.voteAs("bob", id);
  const record = await world.waitFor(id, "failed");
  assert.equal(record["reason"], "unavailable");
  await checkMoney(ctx);
});

await test("a sole proprietor's company fields stay a person's when its type has expired", async () => {
  const [business, late] = [await company(), await company()];
  await becomeSoleProprietor(business, 30);
  await becomeSoleProprietor(late, 30);
  await world.advance(29.5 * 86_400);
  await grantPii(true);
  const asked = await world.ask({ ...companyOnly, businessWalletAddress: late });
  const id = String(asked.body["requestId"]);
  await world.voteAs("alice", id);
  await world.advance(86_400 / 2);
  await grantPii(false);
  const gated = "403 pii_not_entitled";
  assert.equal(reasonOf(await quote(business, ["BUSINESS_LEGAL_NAME"])), gated);
  const terms = { ...companyOnly, businessWalletAddress: business };
  assert.equal(reasonOf(await world.ask(terms)), gated);
  assert.equal(reasonOf(await claim(await offer(companyOnly), business)), gated);
  await world.voteAs("bob", id);
  assert.equal((await world.waitFor(id, "failed"))["reason"], "unavailable");
});
