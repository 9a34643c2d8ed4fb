import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { openTestContext } from "../../../test/test-context.ts";
import type { Ctx } from "../platform/context.ts";
import type { Db } from "../platform/database/db.ts";
import { Problem, type Reason } from "../platform/http/problems.ts";
import {
  addSecret,
  type Client,
  type Clients,
  type ClientSettings,
  createClient,
  createDomain,
  createOrganization,
  disableClient,
  getClient,
  listClients,
  type NewClient,
  openClients,
  revokeSecret,
  updateClient,
} from "./index.ts";
import * as store from "./client-store.ts";
import type { ClientRecord } from "./clients.ts";

await using ctx = await openTestContext();
await using clients = await openClients(ctx);
const { id: organizationId } = await createOrganization(ctx, { name: "Example AG" }, "cli");
const site = { organizationId, domain: "localhost:3000", environment: "sandbox" };
const { id: clientDomainId } = await createDomain(ctx, site, "cli");

const refusedWith =
  (reason: Reason) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.reason === reason;

async function create(
  settings: Partial<NewClient> = {},
): Promise<{ client: ClientRecord; secret: string }> {
  const { client, secret } = await createClient(
    ctx,
    { clientDomainId, name: "Shop", authenticationMethod: "client_secret_basic", ...settings },
    "cli",
  );
  return { client, secret: secret ?? "" };
}

async function find(id: string): Promise<Client> {
  const client = await clients.find(id);
  assert.ok(client);
  return client;
}

/** A lookup of its own that counts its database calls. */
async function openCounted(): Promise<Clients & { calls(): number }> {
  let calls = 0;
  const query: Db["query"] = async (statement) => {
    calls += 1;
    return ctx.db.query(statement);
  };
  const lookup = await openClients({ ...ctx, db: { ...ctx.db, query } });
  return Object.assign(lookup, { calls: () => calls });
}

/** Resolves when a change made by `work` has reached the caches of this process. */
async function announced<T>(work: () => Promise<T>): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const unsubscribe = await ctx.notifications.subscribe("client", () => resolve());
  const result = await work();
  await promise;
  unsubscribe();
  return result;
}

await test("a new client is found with its settings, its domain and its environment, frozen", async () => {
  const { client } = await create({
    redirectUris: ["http://localhost:3000/callback"],
    audiences: ["reports"],
  });
  const found = await find(client.id);
  assert.equal(found.domain, "localhost:3000");
  assert.equal(found.environment, "sandbox");
  assert.equal(found.organizationId, organizationId);
  assert.deepEqual(found.redirectUris, ["http://localhost:3000/callback"]);
  assert.deepEqual(found.audiences, ["reports"]);
  assert.equal(found.numberMatching, true);
  assert.equal(found.pkceRequired, true);
  assert.ok(
    Object.isFrozen(found) && Object.isFrozen(found.redirectUris) && Object.isFrozen(found.secrets),
  );
});

await test("the secret holds 256 bits, is shown once and only its SHA-256 is stored", async () => {
  const { client, secret } = await create();
  assert.match(secret, /^[A-Za-z0-9_-]{43}$/);
  assert.equal(clients.verifySecret(await find(client.id), secret), true);
  assert.equal(clients.verifySecret(await find(client.id), `${secret}x`), false);
  assert.ok(!JSON.stringify(await getClient(ctx, client.id)).includes(secret));
  const [row] = await ctx.db.query<{ found: boolean }>({
    name: "",
    text: "select exists (select from client_secret s where s::text like '%' || $1 || '%') or exists (select from audit_entry a where a::text like '%' || $1 || '%') as found",
    values: [secret],
  });
  assert.equal(row?.found, false);
});

await test("clients without secrets get none and cannot add one", async () => {
  const jwksUri = "https://example.com/jwks.json";
  for (const settings of [
    { authenticationMethod: "none" },
    { authenticationMethod: "private_key_jwt", jwksUri },
  ] as const) {
    const { client, secret } = await create(settings);
    assert.equal(secret, "");
    await assert.rejects(addSecret(ctx, client.id, "cli"), refusedWith("invalid_request"));
    assert.equal(clients.verifySecret(await find(client.id), ""), false);
  }
});

await test("a secret is replaced without a gap: two live, a third refused, the old revoked at once", async () => {
  const { client, secret } = await create();
  await find(client.id);
  const added = await announced(async () => addSecret(ctx, client.id, "cli"));
  const both = await find(client.id);
  assert.deepEqual(
    [secret, added.secret].map((each) => clients.verifySecret(both, each)),
    [true, true],
  );
  await assert.rejects(addSecret(ctx, client.id, "cli"), refusedWith("too_many_secrets"));
  const [old] = client.secrets;
  const given = { clientId: client.id, secretId: old?.id ?? "" };
  await announced(async () => revokeSecret(ctx, given, "cli"));
  const after = await find(client.id);
  assert.deepEqual(
    [secret, added.secret].map((each) => clients.verifySecret(after, each)),
    [false, true],
  );
  await assert.rejects(revokeSecret(ctx, given, "cli"), refusedWith("secret_not_found"));
  const { secrets } = await getClient(ctx, client.id);
  assert.deepEqual(
    secrets.map(({ id }) => id),
    [added.id],
  );
  await addSecret(ctx, client.id, "cli");
  await assert.rejects(addSecret(ctx, client.id, "cli"), refusedWith("too_many_secrets"));
});

await test("of many secrets added at once one is made", async () => {
  // Several rounds: in the first, opening a connection takes longer than another's whole transaction.
  for (let round = 0; round < 5; round += 1) {
    const { client } = await create();
    const results = await Promise.allSettled(
      Array.from({ length: 5 }, async () => addSecret(ctx, client.id, "cli")),
    );
    assert.equal(results.filter((each) => each.status === "fulfilled").length, 1);
    assert.equal((await getClient(ctx, client.id)).secrets.length, 2);
  }
});

await test("another client's secret cannot be revoked through this one", async () => {
  const [mine, theirs] = [await create(), await create()];
  const secretId = theirs.client.secrets[0]?.id ?? "";
  await assert.rejects(
    revokeSecret(ctx, { clientId: mine.client.id, secretId }, "cli"),
    refusedWith("secret_not_found"),
  );
});

await test("a known client costs no database call, and a change is seen at once", async () => {
  const { client } = await create();
  await using lookup = await openCounted();
  for (let times = 0; times < 100; times += 1)
    assert.equal((await lookup.find(client.id))?.numberMatching, true);
  assert.equal(lookup.calls(), 1);
  await announced(async () =>
    updateClient(ctx, { clientId: client.id, changes: { numberMatching: false } }, "cli"),
  );
  assert.equal((await lookup.find(client.id))?.numberMatching, false);
  assert.equal(lookup.calls(), 2);
});

await test("callers that ask for a client at the same time share one database call", async () => {
  const { client } = await create();
  await using lookup = await openCounted();
  await Promise.all(Array.from({ length: 50 }, async () => lookup.find(client.id)));
  assert.equal(lookup.calls(), 1);
});

await test("unknown ids are looked up once, odd ones never", async () => {
  await using lookup = await openCounted();
  for (let times = 0; times < 10; times += 1)
    assert.equal(await lookup.find("00000000-0000-4000-8000-000000000000"), null);
  assert.equal(lookup.calls(), 1);
  for (const id of ["", "a b", "'", "\0", "a".repeat(65), "é"])
    assert.equal(await lookup.find(id), null);
  assert.equal(lookup.calls(), 1);
});

await test("a disabled client is unknown from then on and cannot be changed", async () => {
  const { client } = await create();
  await find(client.id);
  await announced(async () => disableClient(ctx, client.id, "cli"));
  assert.equal(await clients.find(client.id), null);
  await assert.rejects(
    updateClient(ctx, { clientId: client.id, changes: { name: "Again" } }, "cli"),
    refusedWith("client_not_found"),
  );
  await assert.rejects(addSecret(ctx, client.id, "cli"), refusedWith("client_not_found"));
  // An operator whose first call got no answer repeats it, and has to learn that it was done.
  await assert.rejects(disableClient(ctx, client.id, "cli"), { message: "the client is disabled" });
  const listed = (await listClients(ctx, clientDomainId)).find((each) => each.id === client.id);
  assert.ok(listed?.disabledAt);
});

await test("an update changes what is given and refuses another type", async () => {
  const { client } = await create({ audiences: ["a"] });
  const changed = await updateClient(
    ctx,
    {
      clientId: client.id,
      changes: { acrMinimum: "urn:svc:acr:qr-near", authenticationMethod: "client_secret_post" },
    },
    "cli",
  );
  assert.deepEqual(changed.settings.audiences, ["a"]);
  assert.equal(changed.settings.acrMinimum, "urn:svc:acr:qr-near");
  assert.equal(changed.settings.authenticationMethod, "client_secret_post");
  await assert.rejects(
    updateClient(ctx, { clientId: client.id, changes: { authenticationMethod: "none" } }, "cli"),
    refusedWith("invalid_request"),
  );
});

await test("redirect URIs that an earlier version registered stand in the way of no other change", async () => {
  const { client } = await create();
  const redirectUris = ["http://localhost:3000/callback?state=1"];
  const postLogoutRedirectUris = ["http://localhost:3000/bye?state=2"];
  const earlier = { ...client.settings, redirectUris, postLogoutRedirectUris };
  await store.updateClient(ctx.db, client.id, earlier);
  const change = async (changes: Partial<ClientSettings>): Promise<ClientRecord> =>
    updateClient(ctx, { clientId: client.id, changes }, "cli");
  assert.deepEqual((await change({ dpopRequired: true })).settings, {
    ...earlier,
    dpopRequired: true,
  });
  const isRefused = refusedWith("invalid_request");
  const more = [...redirectUris, "http://localhost:3000/callback?state=3"];
  await assert.rejects(change({ redirectUris: more }), isRefused);
  await assert.rejects(change({ redirectUris: postLogoutRedirectUris }), isRefused);
  await change({ redirectUris: [] });
  await assert.rejects(change({ redirectUris }), isRefused);
});

await test("no client has another one's id as an audience, not even a disabled one's", async () => {
  const [{ client: api }, { client }] = [await create(), await create()];
  const isRefused = refusedWith("invalid_request");
  const take = async (audience: string): Promise<ClientRecord> =>
    updateClient(ctx, { clientId: client.id, changes: { audiences: ["a", audience] } }, "cli");
  for (const state of ["live", "ended"]) {
    await assert.rejects(create({ audiences: [api.id] }), isRefused, state);
    await assert.rejects(take(api.id), isRefused, state);
    if (state === "live") await disableClient(ctx, api.id, "cli");
  }
  assert.deepEqual((await take(client.id)).settings.audiences, ["a", client.id]);
  const unknown = randomUUID();
  assert.deepEqual((await take(unknown)).settings.audiences, ["a", unknown]);
});

await test("the last use of a secret is kept to the minute, off the path that uses it", async () => {
  const { client, secret } = await create();
  const lookup = await openCounted();
  const found = await lookup.find(client.id);
  assert.ok(found);
  for (let times = 0; times < 20; times += 1)
    assert.equal(lookup.verifySecret(found, secret), true);
  assert.equal(lookup.calls(), 1);
  await lookup[Symbol.asyncDispose]();
  assert.equal(lookup.calls(), 2);
  const used = (await getClient(ctx, client.id)).secrets[0]?.lastUsedAt ?? 0;
  assert.ok(Math.abs(used - ctx.clock.now()) < 60);
});

await test("the use of a secret is noted at that secret, even if an older one was revoked", async () => {
  const { client } = await create();
  const added = await addSecret(ctx, client.id, "cli");
  const secretId = client.secrets[0]?.id ?? "";
  await revokeSecret(ctx, { clientId: client.id, secretId }, "cli");
  const lookup = await openCounted();
  const found = await lookup.find(client.id);
  assert.ok(found && lookup.verifySecret(found, added.secret));
  await lookup[Symbol.asyncDispose]();
  assert.ok((await getClient(ctx, client.id)).secrets[0]?.lastUsedAt);
});

await test("a client of a missing domain is refused", async () => {
  await assert.rejects(
    create({ clientDomainId: "00000000-0000-7000-8000-000000000000" }),
    refusedWith("client_domain_not_found"),
  );
});

await test("in production a redirect host needs the verified domain, and localhost is never verified", async () => {
  const config = { ...ctx.config, profile: "production" as const };
  const production = { ...ctx, config };
  const given = {
    clientDomainId,
    name: "Shop",
    authenticationMethod: "client_secret_basic" as const,
    redirectUris: ["https://shop.example.com/callback"],
  };
  await assert.rejects(
    createClient(production, given, "cli"),
    /needs a verified client domain first/,
  );
  const { client } = await create({ pkceRequired: false });
  await using lookup = await openClients(production);
  const found = await lookup.find(client.id);
  assert.equal(found?.domain, null);
  assert.equal(found?.pkceRequired, true);
});

await test("a client that proves itself by nothing else has PKCE required, whatever its row says", async () => {
  const { client } = await create({ authenticationMethod: "none" });
  const values = [client.id];
  const text = "update oauth_client set pkce_required = false where id = $1";
  await ctx.db.query({ name: "", text, values });
  await using lookup = await openClients(ctx);
  assert.equal((await lookup.find(client.id))?.pkceRequired, true);
});

await test("a list of clients is that of one domain", async () => {
  const other = { organizationId, domain: "localhost:3001", environment: "sandbox" };
  const { id } = await createDomain(ctx, other, "cli");
  const { client } = await create({ clientDomainId: id });
  await create();
  assert.deepEqual(
    (await listClients(ctx, id)).map((each) => each.id),
    [client.id],
  );
});

await test("in production an audience that a client has is no other organization's, also of two that take it at once", async () => {
  const production: Ctx = { ...ctx, config: { ...ctx.config, profile: "production" } };
  const add = async (
    domain: string,
    audiences: string[],
    by: Ctx = production,
  ): Promise<ClientRecord> => {
    const given = { clientDomainId: domain, name: "Shop", audiences };
    const authenticationMethod = "client_secret_basic" as const;
    return (await createClient(by, { ...given, authenticationMethod }, "cli")).client;
  };
  const other = await createOrganization(ctx, { name: "Other AG" }, "cli");
  const elsewhere = { organizationId: other.id, domain: "localhost:3001", environment: "live" };
  const { id: theirs } = await createDomain(ctx, elsewhere, "cli");
  const isRefused = refusedWith("invalid_request");
  const api = await add(clientDomainId, ["https://api.example.com", "plain"]);
  await add(clientDomainId, ["https://api.example.com"]);
  for (const audience of ["https://api.example.com", "plain"])
    await assert.rejects(add(theirs, ["https://own.example.com", audience]), isRefused, audience);
  const client = await add(theirs, ["https://own.example.com"]);
  const take = async (...audiences: string[]): Promise<ClientRecord> =>
    updateClient(production, { clientId: client.id, changes: { audiences } }, "cli");
  await assert.rejects(take("https://own.example.com", "plain"), isRefused);
  await disableClient(ctx, api.id, "cli");
  await take("plain");
  const shared = await add(theirs, ["https://api.example.com"], ctx);
  const kept = { clientId: shared.id, changes: { name: "Shop in dev before" } };
  assert.deepEqual((await updateClient(production, kept, "cli")).settings.audiences, [
    "https://api.example.com",
  ]);
  for (let round = 0; round < 8; round += 1) {
    const both = [clientDomainId, theirs].map(async (domain) => add(domain, [`at-once-${round}`]));
    const outcomes = (await Promise.allSettled(both)).map(({ status }) => status).toSorted();
    assert.deepEqual(outcomes, ["fulfilled", "rejected"]);
  }
});
