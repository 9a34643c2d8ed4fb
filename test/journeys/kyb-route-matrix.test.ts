// Every KYB route of merchants, as the service itself lists them, called by everybody who may not.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import {
  createApiKey,
  createDomain,
  createOrganization,
  revokeApiKey,
} from "../../service/src/accounts/index.ts";
import { runVerb } from "../operator-verbs.ts";
import { openDataWorld, requestsPath, someRequest } from "../kyb-data-world.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import { matrix, type Needed } from "../kyb-routes.ts";
import { type Answer, reasonOf } from "../kyb-world.ts";

type Method = "GET" | "POST" | "PUT";
const reasonOfMissing: Record<Needed, string> = {
  "kyb:read": "kyb_not_entitled",
  "kyb:data-request": "kyb_not_entitled",
  "kyb:signature": "kyb_signature_not_entitled",
};

await using world = await openDataWorld({ fundsRappen: 100_000n });
const { ctx, business } = world;
const businessWalletAddress = business.address;

const messageOf = ({ body }: Answer): string => body.error?.message ?? "";
const fresh = (): Record<string, string> => ({
  "idempotency-key": randomBytes(8).toString("hex"),
});

/** Valid bodies for the routes that need one. */
const bodies: Record<string, Record<string, unknown>> = {
  "PUT /api/v1/kyb/webhook-endpoint": { url: "http://localhost:4998/hooks" },
  "POST /api/v1/kyb/valid": {
    businessWalletAddress,
    fields: [{ name: "BUSINESS_LEGAL_NAME", subject: "", hash: `0x${"00".repeat(32)}` }],
  },
  "POST /api/v1/kyb/data-requests/quote": { fields: ["BUSINESS_LEGAL_NAME"] },
  "POST /api/v1/kyb/data-requests": {
    businessWalletAddress,
    ...someRequest,
    fields: ["BUSINESS_LEGAL_NAME"],
  },
  "POST /api/v1/kyb/data-requests/offers": { ...someRequest, fields: ["BUSINESS_LEGAL_NAME"] },
  "POST /api/v1/kyb/signature-requests": { businessWalletAddress, ...someText },
  "POST /api/v1/kyb/signature-requests/offers": someText,
};

const ids = await openObjects();
const routes = await listRoutes();

interface Route {
  readonly name: string;
  readonly method: Method;
  readonly path: string;
  readonly needed: Needed;
  /** Whether the path names one object of a client domain. */
  readonly isOfObject: boolean;
  /** As the service describes it. */
  readonly described: string;
}

async function make(path: string, body: object): Promise<string> {
  const made = await world.call("POST", path, { headers: fresh(), body });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return String(made.body["requestId"] ?? made.body["offerId"]);
}

/** An object of each kind, of the world's client domain. */
async function openObjects(): Promise<Record<string, string>> {
  const requestId = await make(requestsPath, { businessWalletAddress, ...someRequest });
  const { body } = await world.call("GET", `${requestsPath}/${requestId}/events`);
  const [event] = body["items"] as { eventId: string }[];
  assert.ok(event);
  return {
    [requestsPath]: requestId,
    "/api/v1/kyb/events": event.eventId,
    [signaturesPath]: await make(signaturesPath, { businessWalletAddress, ...someText }),
    "/api/v1/kyb/offers": await make(`${signaturesPath}/offers`, someText),
    data: await make(`${requestsPath}/offers`, someRequest),
  };
}

async function listRoutes(): Promise<Route[]> {
  const { body } = await world.call("GET", "/openapi.json", { apiKey: null });
  const paths = Object.entries(body["paths"] as Record<string, Record<string, unknown>>);
  return paths
    .filter(([path]) => path.startsWith("/api/v1/kyb/"))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([each, operation]): Route => {
        const method = each.toUpperCase() as Method;
        const name = `${method} ${path}`;
        const [collection = ""] = path.split("/{id}");
        return {
          name,
          method,
          path: path
            .replace("{wallet}", businessWalletAddress)
            .replace("{id}", ids[collection] ?? "01J"),
          needed: matrix[name] ?? "kyb:read",
          isOfObject: path.includes("/{id}"),
          described: JSON.stringify(operation),
        };
      }),
    );
}

async function callWith(
  { name, method, path }: Route,
  apiKey: string | null,
  changed: Record<string, unknown> = {},
): Promise<Answer> {
  const body = method === "GET" ? undefined : { ...bodies[name], ...changed };
  return world.call(method, path, {
    apiKey,
    headers: fresh(),
    ...(body === undefined ? {} : { body }),
  });
}

interface Merchant {
  /** The API key's id. */
  readonly id: string;
  readonly apiKey: string;
  readonly organizationId: string;
}

/** A key of a new client domain, of a new organization unless one is given. */
async function newMerchant(
  given: { organizationId?: string; environment?: string; domain?: string } = {},
): Promise<Merchant> {
  const { environment = "live", domain = "localhost" } = given;
  const organizationId =
    given.organizationId ?? (await createOrganization(ctx, { name: "Other" }, "test")).id;
  const made = await createDomain(ctx, { organizationId, domain, environment }, "test");
  const added = { clientDomainId: made.id, name: "Backend" };
  const { id, key: apiKey } = await createApiKey(ctx, added, "test");
  return { id, apiKey, organizationId };
}

/** Calls `svc grant`. */
const grant = async (...args: string[]) =>
  runVerb(world, ["grant", ...args], { BASE_URL: ctx.config.baseUrl, CHAIN: "off" });

/** Waits until every route answers as expected: keys learn of changes by notification. */
async function become(what: string, check: () => Promise<boolean>): Promise<void> {
  await world.until(what, async () => ((await check()) ? true : null));
}

async function assertRefused(route: Route, apiKey: string | null, reason: string): Promise<void> {
  const answer = await callWith(route, apiKey, { more: 1 });
  const { error } = answer.body;
  assert.equal(error?.reason, reason, route.name);
  assert.ok(messageOf(answer).startsWith(`${reason}: `), `${route.name}: ${messageOf(answer)}`);
  assert.ok(route.described.includes(`\`${reason}\``), `${route.name} lists ${reason}`);
  assert.equal(answer.status, error.code);
  assert.equal(answer.headers.get("x-request-id"), (error as { requestId?: string }).requestId);
}

const isEntitled = ({ body }: Answer): boolean => body.error?.reason?.includes("entitled") !== true;

await test("the routes are those that the service describes, no more and no fewer", () => {
  assert.deepEqual(routes.map(({ name }) => name).toSorted(), Object.keys(matrix).toSorted());
});

await test("no KYB route can be called without a valid key", async () => {
  const [kind = "", environment = "", ...rest] = world.apiKey.split("_");
  const other = environment === "live" ? "test" : "live";
  const revoked = await newMerchant();
  await revokeOf(revoked);
  const wrong: [string | null, string][] = [
    [null, "apikey_missing"],
    ["", "apikey_missing"],
    ["nothing", "apikey_invalid"],
    [`Bearer ${world.apiKey}`, "apikey_invalid"],
    [`${world.apiKey}x`, "apikey_invalid"],
    [`${world.apiKey.slice(0, -1)}${world.apiKey.endsWith("0") ? "1" : "0"}`, "apikey_invalid"],
    [[kind, other, ...rest].join("_"), "apikey_invalid"],
    [revoked.apiKey, "apikey_invalid"],
  ];
  for (const route of routes)
    for (const [apiKey, reason] of wrong) await assertRefused(route, apiKey, reason);
});

async function revokeOf({ id, apiKey }: Merchant): Promise<void> {
  await revokeApiKey(ctx, id, "test");
  await become("the key is gone", async () => {
    const { status } = await world.call("GET", "/api/v1/kyb/pricing", { apiKey });
    return status === 401;
  });
}

await test("an organization may kyb:read from the start, and nothing else; each entitlement is granted and withdrawn by its UUID", async () => {
  const { apiKey, organizationId } = await newMerchant();
  for (const route of routes)
    if (route.name.includes("/kyb/offers/")) await assertRefused(route, apiKey, "kyb_not_entitled");
    else if (route.needed === "kyb:read")
      assert.ok(isEntitled(await callWith(route, apiKey)), route.name);
    else await assertRefused(route, apiKey, reasonOfMissing[route.needed]);
  for (const entitlement of ["kyb:data-request", "kyb:signature"] as const) {
    const gated = routes.filter(({ needed }) => needed === entitlement);
    const [granted, said] = await grant(organizationId, entitlement);
    assert.equal(granted, 0, said);
    const [one] = gated;
    assert.ok(one !== undefined);
    await become("it is granted", async () => isEntitled(await callWith(one, apiKey)));
    for (const route of routes) {
      if (route.needed === entitlement)
        assert.ok(isEntitled(await callWith(route, apiKey)), route.name);
      else if (route.needed !== "kyb:read")
        await assertRefused(route, apiKey, reasonOfMissing[route.needed]);
    }
    const [withdrawn, told] = await grant(organizationId, entitlement, "--withdraw");
    assert.equal(withdrawn, 0, told);
    await become("it is withdrawn", async () => !isEntitled(await callWith(one, apiKey)));
    for (const route of gated) await assertRefused(route, apiKey, reasonOfMissing[entitlement]);
  }
  for (const [organization, entitlement] of [
    [organizationId, "kyb:read"],
    [organizationId, "kyb:everything"],
    ["0199c3a0-5c1e-7d4f-9a61-2b7c8e5d4f10", "kyb:pii"],
    ["Other", "kyb:pii"],
  ] as const)
    assert.notEqual((await grant(organization, entitlement, "--withdraw"))[0], 0);
});

await test("personal data take kyb:pii, wherever fields are named", async () => {
  const { apiKey, organizationId } = await newMerchant();
  await grant(organizationId, "kyb:data-request");
  const naming = routes.filter(
    ({ name }) => bodies[name]?.["purpose"] !== undefined || name.endsWith("/quote"),
  );
  const gated = naming.filter(({ needed }) => needed === "kyb:data-request");
  assert.equal(gated.length, 3);
  const personal = { fields: ["BUSINESS_DIRECTOR_NAME"] };
  const isAllowed = async (): Promise<boolean[]> =>
    Promise.all(gated.map(async (route) => isEntitled(await callWith(route, apiKey, personal))));
  await become("the key may ask", async () => {
    const plain = await Promise.all(gated.map(async (route) => callWith(route, apiKey)));
    return plain.every(isEntitled);
  });
  // Also with a malformed body, because 403 comes before 400.
  for (const body of [personal, { ...personal, optionalFields: 1 }, { ...personal, more: 1 }])
    for (const route of gated)
      assert.deepEqual(reasonOf(await callWith(route, apiKey, body)), [403, "pii_not_entitled"]);
  await grant(organizationId, "kyb:pii");
  await become("personal data are granted", async () => !(await isAllowed()).includes(false));
  await grant(organizationId, "kyb:pii", "--withdraw");
  await become("they are withdrawn", async () => !(await isAllowed()).includes(true));
});

await test("an offer exists only for keys that may make offers of its kind", async () => {
  const { organizationId } = world;
  const dataOffer = `/api/v1/kyb/offers/${ids["data"]}`;
  const signatureOffer = `/api/v1/kyb/offers/${ids["/api/v1/kyb/offers"]}`;
  for (const [entitlement, path, other, reason] of [
    ["kyb:data-request", dataOffer, signatureOffer, "kyb_not_entitled"],
    ["kyb:signature", signatureOffer, dataOffer, "kyb_signature_not_entitled"],
  ] as const) {
    await grant(organizationId, entitlement, "--withdraw");
    await become("it is withdrawn", async () => (await world.call("GET", path)).status === 403);
    assert.deepEqual(reasonOf(await world.call("GET", path)), [403, reason]);
    assert.deepEqual(reasonOf(await world.call("POST", `${path}/cancel`)), [403, reason]);
    for (const { name, described } of routes)
      if (name.includes("/kyb/offers/")) assert.ok(described.includes(`\`${reason}\``), name);
    assert.equal((await world.call("GET", other)).status, 200);
    await grant(organizationId, entitlement);
    await become("it is granted", async () => (await world.call("GET", path)).status === 200);
  }
});

/** The error of an answer, without the id of the call. */
function toldBy({ body }: Answer): Record<string, unknown> {
  const { requestId: _, ...told } = (body.error ?? {}) as Record<string, unknown>;
  return told;
}

/** Whether even the owner's key gets 404, because this part does not exist yet. */
const isOver = ({ name }: Route): boolean => /\/(?:release|proofs|signature)$/.test(name);

function unknownOf(path: string): string {
  if (path.includes("/kyb/events/")) return "event_not_found";
  return path.includes("/kyb/offers/") ? "offer_not_found" : "request_not_found";
}

await test("objects are those of one client domain: for every other key they are not there", async () => {
  const foreign = await newMerchant();
  const sibling = await newMerchant({
    organizationId: world.organizationId,
    domain: "example.com",
  });
  const sandbox = await newMerchant({
    organizationId: world.organizationId,
    environment: "sandbox",
  });
  for (const entitlement of ["kyb:data-request", "kyb:pii", "kyb:signature"])
    await grant(foreign.organizationId, entitlement);
  const ofObjects = routes.filter(({ isOfObject }) => isOfObject);
  assert.ok(ofObjects.length >= 15);
  for (const { apiKey } of [foreign, sibling, sandbox]) {
    await become("the key may ask", async () =>
      isEntitled(await world.call("GET", requestsPath, { apiKey })),
    );
    for (const route of ofObjects) {
      const answer = await callWith(route, apiKey);
      const reason = unknownOf(route.path);
      assert.deepEqual(reasonOf(answer), [404, reason], route.name);
      assert.ok(messageOf(answer).startsWith(`${reason}: `), route.name);
      const long = await callWith(
        { ...route, path: route.path.replace(/01[^/]{24}/, "0".repeat(300)) },
        apiKey,
      );
      assert.deepEqual(reasonOf(long), [404, reason], route.name);
      const unknown = await callWith(
        { ...route, path: route.path.replace(/01[^/]{24}/, "01J") },
        apiKey,
      );
      assert.deepEqual(
        toldBy(unknown),
        toldBy(answer),
        "one of somebody else looks like one that never was",
      );
    }
    for (const path of [requestsPath, signaturesPath, "/api/v1/kyb/billing/charges"])
      assert.deepEqual((await world.call("GET", path, { apiKey })).body["items"], []);
    const endpoint = await world.call("GET", "/api/v1/kyb/webhook-endpoint", { apiKey });
    assert.deepEqual(reasonOf(endpoint), [404, "endpoint_not_found"]);
  }
  for (const route of routes)
    assert.ok((await callWith(route, world.apiKey)).status !== 404 || isOver(route), route.name);
});

await test("a sandbox key knows no live business, and the other way round", async () => {
  const { apiKey } = await newMerchant({
    organizationId: world.organizationId,
    environment: "sandbox",
    domain: "sandbox.example.com",
  });
  await world.call("PUT", "/api/v1/kyb/webhook-endpoint", {
    apiKey,
    body: bodies["PUT /api/v1/kyb/webhook-endpoint"],
  });
  const sandboxBusiness = await world.found({
    members: ["alice"],
    name: "Probe AG",
    environment: "sandbox",
  });
  const about = routes.filter(
    ({ name }) =>
      name.includes("{wallet}") || bodies[name]?.["businessWalletAddress"] !== undefined,
  );
  assert.equal(about.length, 6);
  for (const route of about.filter(({ name }) => !name.endsWith("/valid"))) {
    const { address } = sandboxBusiness;
    const path = route.path.replace(businessWalletAddress, address);
    const theirs = route.method === "GET" ? {} : { businessWalletAddress: address };
    assert.deepEqual(reasonOf(await callWith(route, apiKey)), [404, "business_not_found"]);
    assert.deepEqual(reasonOf(await callWith({ ...route, path }, world.apiKey, theirs)), [
      404,
      "business_not_found",
    ]);
  }
  for (const part of ["status", "verify", "members"]) {
    const path = `/api/v1/kyb/${part}/${sandboxBusiness.address}`;
    assert.equal((await world.call("GET", path, { apiKey })).status, 200);
  }
});

await test("members of a body that no route knows are refused by name, and parameters of a query too", async () => {
  for (const route of routes) {
    const answer =
      route.method === "GET"
        ? await callWith({ ...route, path: `${route.path}?limit=0` }, world.apiKey)
        : await callWith(route, world.apiKey, { unheardOf: 1 });
    if (route.method === "GET" && !/requests$|charges$|events$|deliveries$/.test(route.name))
      continue;
    assert.deepEqual(reasonOf(answer), [400, "malformed_request"], route.name);
    if (route.method !== "GET") assert.match(answer.body.error?.message ?? "", /unheardOf/);
  }
});

await test("bodies that are no JSON object are refused, and so are other content types", async () => {
  for (const route of routes.filter(({ method }) => method !== "GET")) {
    const headers = { authorization: world.apiKey, ...fresh() };
    const { method, path } = route;
    const send = async (type: string, body: string): Promise<[number, string]> => {
      const sent = { method, headers: { ...headers, "content-type": type }, body };
      const answer = await fetch(`${world.baseUrl}${path}`, sent);
      const { error } = (await answer.json()) as Answer["body"];
      const { reason = "", message = "" } = error ?? {};
      assert.ok(message.startsWith(`${reason}: `), message);
      return [answer.status, reason];
    };
    const malformed = [400, "malformed_request"];
    assert.deepEqual(await send("application/json", "{"), malformed, route.name);
    assert.equal((await send("application/json", "[]"))[0], 400, route.name);
    assert.equal((await send("application/json", '"text"'))[0], 400, route.name);
    for (const type of ["text/plain", "application/x-www-form-urlencoded"])
      assert.deepEqual(await send(type, "{}"), [415, "unsupported_media_type"], route.name);
    const deep = `${'{"a":'.repeat(33)}1${"}".repeat(33)}`;
    assert.equal((await send("application/json", deep))[0], 400, route.name);
  }
});

await test("other methods are answered with those that there are, and other paths with 404", async () => {
  const methodsOf = Map.groupBy(routes, ({ path }) => path);
  for (const [path, of] of methodsOf) {
    // GET takes the last part of these paths for a request's id, and finds none.
    const isRead = of.some((each) => each.method === "GET") || /\/(?:quote|offers)$/.test(path);
    for (const method of ["DELETE", "PATCH", ...(isRead ? [] : ["GET"])]) {
      const answer = await fetch(`${world.baseUrl}${path}`, {
        method,
        headers: { authorization: world.apiKey },
      });
      const { error } = (await answer.json()) as { error: { reason: string } };
      assert.deepEqual([answer.status, error.reason], [405, "method_not_allowed"], path);
      const allowed = (answer.headers.get("allow") ?? "").split(", ");
      for (const each of of) assert.ok(allowed.includes(each.method), `${path}: ${each.method}`);
      assert.ok(!allowed.includes(method));
    }
  }
  for (const path of ["/api/v1/kyb", "/api/v1/kyb/nothing", `${requestsPath}/01J/nothing`])
    for (const apiKey of [null, world.apiKey])
      assert.deepEqual(reasonOf(await world.call("GET", path, { apiKey })), [
        404,
        "route_not_found",
      ]);
});

await test("of several faults the first in the documented order is told: 401, 403, 400, 404, 409 or 422, 402", async () => {
  const { apiKey, organizationId } = await newMerchant();
  const nobody = { businessWalletAddress: `0x${"ab".repeat(20)}` };
  const siwe = { message: "evil.example wants you to sign in with your Ethereum account:\n0x00" };
  const faults = { ...nobody, ...siwe };
  const create = async (
    changed: object,
    key: string | null,
  ): Promise<[number, string | undefined]> =>
    reasonOf(
      await world.call("POST", signaturesPath, {
        apiKey: key,
        headers: fresh(),
        body: { businessWalletAddress, ...someText, ...changed },
      }),
    );
  assert.deepEqual(await create({ ...faults, more: 1 }, null), [401, "apikey_missing"]);
  assert.deepEqual(await create({ ...faults, more: 1 }, apiKey), [
    403,
    "kyb_signature_not_entitled",
  ]);
  for (const entitlement of ["kyb:signature", "kyb:data-request"])
    await grant(organizationId, entitlement);
  await become("it is granted", async () => (await create({ more: 1 }, apiKey))[0] === 400);
  assert.deepEqual(await create({ ...faults, more: 1 }, apiKey), [400, "malformed_request"]);
  const keyless = { apiKey, body: { ...someText, ...faults } };
  assert.deepEqual(reasonOf(await world.call("POST", signaturesPath, keyless)), [
    400,
    "idempotency_key_required",
  ]);
  assert.deepEqual(await create(faults, apiKey), [404, "business_not_found"]);
  assert.deepEqual(await create(siwe, apiKey), [409, "no_webhook_endpoint"]);
  await world.call("PUT", "/api/v1/kyb/webhook-endpoint", {
    apiKey,
    body: bodies["PUT /api/v1/kyb/webhook-endpoint"],
  });
  assert.deepEqual(await create(siwe, apiKey), [422, "document_refused"]);
  const ask = async (changed: object): Promise<[number, string | undefined]> =>
    reasonOf(
      await world.call("POST", requestsPath, {
        apiKey,
        headers: fresh(),
        body: { ...bodies["POST /api/v1/kyb/data-requests"], optionalFields: [], ...changed },
      }),
    );
  assert.deepEqual(await ask({ ...nobody, fields: ["BUSINESS_WEBSITE"] }), [
    404,
    "business_not_found",
  ]);
  assert.deepEqual(await ask({ fields: ["BUSINESS_WEBSITE"] }), [422, "field_not_available"]);
  assert.deepEqual(await ask({}), [402, "no_credit_account"]);
});
