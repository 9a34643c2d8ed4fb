import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, test } from "node:test";
import { isRecord } from "@svc/protocol";
import { routeTags } from "../service/src/platform/http/route-tags.ts";
import { apiPage, readDocument, type Route, routesOf, writeApiReference } from "./generate-api.ts";

let document: Awaited<ReturnType<typeof readDocument>>;
let routes: Route[];

before(async () => {
  document = await readDocument();
  routes = routesOf(document);
});

test("the page of the API says what /openapi.json says", () => {
  const remedy = "run node --conditions=source tools/generate-api.ts";
  const [written, wanted] = [readFileSync(apiPage, "utf8"), writeApiReference(routes)].map((text) =>
    text.split("\n"),
  );
  assert.deepEqual(
    wanted?.filter((line) => written?.includes(line) !== true),
    [],
    remedy,
  );
  assert.equal(written?.length, wanted?.length, remedy);
});

test("the reference shows every form of a body that may have several", () => {
  const told = writeApiReference(routes).split("\n### ");
  const proposals = told.find((text) =>
    text.startsWith("POST /w/businesses/\\<address>/proposals\n"),
  );
  for (const operation of ["changeCharter", "moveTo", "startRemoval", "withdraw"])
    assert.match(proposals ?? "", new RegExp(`^\\| \`operation\` +\\| \`${operation}\``, "m"));
});

test("the document gives a parameter that may be repeated as a list, and the reference says that it may be repeated", () => {
  const lists = routes.flatMap(({ method, path, operation }) => {
    const form = operation.requestBody?.content["application/x-www-form-urlencoded"]?.schema;
    const given = [
      ...(operation.parameters ?? []).map(({ name, schema }) => [name, schema] as const),
      ...Object.entries(form?.properties ?? {}),
    ];
    assert.deepEqual(
      given.filter(([, { anyOf }]) => anyOf !== undefined),
      [],
      path,
    );
    const repeated = given.filter(([, { type }]) => type === "array");
    return repeated.map(([name]) => `${method} ${path} ${name}`);
  });
  assert.ok(lists.includes("GET /api/v1/blockchain/verified items"), String(lists));
  assert.ok(lists.includes("POST /oauth2/token audience"), String(lists));
  const text = writeApiReference(routes);
  const told = text.matchAll(/^\| `(?:audience|resource|items)` .* may be repeated/gm);
  const sameAsGet = 2;
  assert.equal([...told].length, lists.length - sameAsGet);
});

test("every route that may refuse a DPoP proof says where it stands", () => {
  for (const { method, path, operation } of routes) {
    const isRefused = Object.values(operation.responses).some(({ description }) =>
      description.includes("invalid_dpop_proof"),
    );
    const isNamed = operation.parameters?.some(({ name }) => name === "dpop") === true;
    assert.equal(isNamed, isRefused, `${method} ${path}`);
  }
});

test("every route says what it is for, and belongs to one section", () => {
  for (const { method, path, operation } of routes) {
    assert.ok(operation.summary, `${method} ${path} has no summary`);
    assert.equal(operation.tags?.length, 1, `${method} ${path} needs one tag`);
    assert.ok(operation.tags[0] !== undefined && operation.tags[0] in routeTags, path);
  }
});

/** @yields the places of parameters and members that have no description; a reference has that of its members */
function* listUndescribed(part: unknown, place: string): Generator<string> {
  if (Array.isArray(part)) for (const each of part) yield* listUndescribed(each, place);
  if (!isRecord(part)) return;
  const members = isRecord(part["properties"]) ? Object.entries(part["properties"]) : [];
  const parameters = Array.isArray(part["parameters"]) ? part["parameters"].entries() : [];
  for (const [name, each] of [...members, ...parameters])
    if (!isRecord(each) || (each["description"] === undefined && each["$ref"] === undefined))
      yield `${place} ${name}`;
  for (const [name, each] of Object.entries(part)) yield* listUndescribed(each, `${place} ${name}`);
}

test("every parameter and every member of a body or an event says what it means", () => {
  const { paths, webhooks, components } = document;
  assert.deepEqual([...listUndescribed({ paths, webhooks, components }, "")], []);
});

test("no webhook shares its section with a route, whose file generators would write over", () => {
  const ofRoutes = new Set(routes.flatMap(({ operation }) => operation.tags));
  const explained = new Set(document.tags.map(({ name }) => name));
  const webhooks = Object.values(document.webhooks);
  assert.ok(webhooks.length > 10);
  for (const { tags = [] } of webhooks.map(({ post }) => post)) {
    assert.equal(tags.length, 1);
    for (const tag of tags) assert.ok(!ofRoutes.has(tag) && explained.has(tag), tag);
  }
});

test("every route that takes something says how it refuses, and every answer says what it means", () => {
  const takesNothing = /^\/(?:\.well-known\/.+|health\/alive|w\/push\/key)$/;
  for (const { method, path, operation } of routes) {
    const statuses = Object.keys(operation.responses);
    const isRefusing = statuses.some((status) => /^[45]/.test(status));
    assert.ok(isRefusing || takesNothing.test(path), `${method} ${path} lists no refusal`);
    for (const [status, { description }] of Object.entries(operation.responses))
      assert.notEqual(description, "Default Response", `${method} ${path} ${status}`);
  }
});

test("every route that answers 401 says how to show who calls, and every one that keeps a key where to put it", () => {
  const schemes = new Set<string>();
  for (const { method, path, operation } of routes) {
    const { security = [], responses, parameters = [] } = operation;
    const named = security.flatMap((each) => Object.keys(each));
    // Ends a session where there is one, and refuses nobody.
    const isAsked = "401" in responses || (method === "DELETE" && path === "/w/session");
    assert.equal(named.length, isAsked ? 1 : 0, `${method} ${path}`);
    named.forEach((scheme) => schemes.add(scheme));
    const isKept = responses["409"]?.description.includes("idempotency_key_conflict") === true;
    const isNamed = parameters.some(({ name }) => name === "idempotency-key");
    assert.equal(isNamed, isKept, `${method} ${path}`);
  }
  assert.deepEqual([...schemes].toSorted(), ["accessToken", "key", "oauthClient", "walletSession"]);
});

test("a call that is refused without a key says that the key is required", () => {
  const required = routes.filter(({ operation }) =>
    operation.parameters?.some((each) => each.name === "idempotency-key" && each.required === true),
  );
  assert.deepEqual(
    required.map(({ path }) => path).toSorted(),
    ["data-requests/offers", "signature-requests", "signature-requests/offers"].map(
      (path) => `/api/v1/kyb/${path}`,
    ),
  );
});

test("every route has a name of its own for generated clients, which says what it does", () => {
  const names = routes.map(({ operation }) => operation.operationId ?? "");
  for (const name of names) assert.match(name, /^[a-z]+(?:[A-Z][a-z]*)*$/);
  assert.equal(new Set(names).size, routes.length);
});

test("a form of OAuth says what every call needs", () => {
  const needed = ["auth", "token", "introspect", "revoke"].map((name) => {
    const route = routes.find(
      ({ path, method }) => path === `/oauth2/${name}` && method === "POST",
    );
    const [form] = Object.values(route?.operation.requestBody?.content ?? {});
    return form?.schema.required;
  });
  assert.deepEqual(needed, [["client_id"], ["grant_type"], ["token"], ["token"]]);
});

test("every route says whether it authenticates its callers", () => {
  const silent = routes.filter(({ operation }) => operation.security === undefined);
  assert.deepEqual(
    silent.map(({ path }) => path),
    [],
  );
});

test("a refusal is one type for generated clients, and so is a record that several routes answer", () => {
  const names = Object.keys(document.components.schemas);
  for (const name of ["Refusal", "OAuthError", "DataRequest", "Order", "Receipt", "Tokens"])
    assert.ok(names.includes(name), name);
  const answers = Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .flatMap(({ responses }) => Object.entries(responses))
    .filter(([status, { content }]) => /^[45]/.test(status) && content?.["application/json"]);
  assert.ok(answers.length > 500);
  for (const [, { content }] of answers)
    assert.match(
      JSON.stringify(content),
      /\{"\$ref":"#\/components\/schemas\/(?:Refusal|OAuthError)"\}/,
    );
});

test("the document marks a body as optional where it may be left out, and no other", () => {
  const optional = routes
    .filter(
      ({ operation: { requestBody } }) =>
        requestBody !== undefined && requestBody.required !== true,
    )
    .map(({ method, path }) => `${method} ${path}`);
  assert.deepEqual(optional.toSorted(), [
    "DELETE /w/push",
    "POST /api/v1/kyb/data-requests/{id}/cancel",
    "POST /api/v1/kyb/data-requests/{id}/redeliver",
    "POST /api/v1/kyb/events/{id}/redeliver",
    "POST /api/v1/kyb/offers/{id}/cancel",
    "POST /api/v1/kyb/signature-requests/{id}/cancel",
    "POST /api/v1/kyb/signature-requests/{id}/redeliver",
    "POST /api/v1/kyb/webhook-endpoint/reactivate",
    "POST /api/v1/kyb/webhook-endpoint/rotate-secret",
    "POST /api/v1/kyb/webhook-endpoint/test",
    "POST /userinfo",
    "POST /w/businesses/{address}/abandon",
    "POST /w/businesses/{address}/proposals/{id}/retract",
    "POST /w/f/{token}/open",
    "POST /w/mailbox/{id}/take",
    "POST /w/o/{token}/open",
  ]);
});

test("no type has the name that generators give to a member of another, or they would leave it out of the client", () => {
  const { schemas } = document.components;
  const memberTypes = Object.entries(schemas).flatMap(([name, { properties = {} }]) =>
    Object.keys(properties).map(
      (member) => name + member.slice(0, 1).toUpperCase() + member.slice(1),
    ),
  );
  assert.ok(memberTypes.includes("OrderStatus"));
  assert.deepEqual(
    memberTypes.filter((name) => name in schemas),
    [],
  );
});

test("a choice between fixed texts is one type for generated clients", () => {
  assert.doesNotMatch(
    JSON.stringify(routes),
    /"anyOf":\[(?:\{"type":"string","enum":\["[^"]*"\]\},?)+\]/,
  );
  const list = routes.find(({ path }) => path === "/api/v1/kyb/events") ?? assert.fail();
  const status = list.operation.parameters?.find(({ name }) => name === "status");
  assert.deepEqual(status?.schema, { type: "string", enum: ["delivered", "undelivered"] });
});

test("a number in a query is a number for generated clients, within the bounds that the route takes", () => {
  const list = routes.find(({ path }) => path === "/api/v2/kyc/deliveries") ?? assert.fail();
  const told = (list.operation.parameters ?? []).filter(({ schema }) => schema.type === "integer");
  const bounds = told.map(({ name, schema: { minimum, maximum } }) => [name, minimum, maximum]);
  assert.deepEqual(bounds, [
    ["after", 0, 999_999_999],
    ["limit", 1, 100],
    ["afterAttempt", 0, 999_999_999],
  ]);
});

test("the document says of a lookup that user and items are required, and the user is given once", () => {
  for (const path of ["/api/v1/blockchain/verified", "/api/v1/blockchain/proof"]) {
    const { operation } = routes.find((route) => route.path === path) ?? assert.fail(path);
    const told = (operation.parameters ?? []).map(({ name, required, schema }) => {
      const takesOne = schema.type === "string";
      return [name, required, takesOne];
    });
    assert.deepEqual(told, [
      ["user", true, true],
      ["items", true, false],
    ]);
  }
});

test("where a browser-only client may call, authentication is one of two ways", () => {
  const ways = JSON.stringify([{ oauthClient: [] }, {}]);
  const open = routes.filter(({ operation }) => JSON.stringify(operation.security) === ways);
  assert.deepEqual(open.map(({ path }) => path).toSorted(), [
    "/oauth2/par",
    "/oauth2/revoke",
    "/oauth2/token",
  ]);
});
