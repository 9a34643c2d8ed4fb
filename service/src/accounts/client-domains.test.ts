import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { openTestContext } from "../../../test/test-context.ts";
import type { Ctx } from "../platform/context.ts";
import type { OutboundRequest, OutboundResult } from "../platform/outbound/outbound.ts";
import { Problem, type Reason } from "../platform/http/problems.ts";
import { sql } from "../platform/database/db.ts";
import { untilBlocked } from "../../../test/lock-waits.ts";
import { leaseDueDomains, recordCheck } from "./client-domain-store.ts";
import { recheckDomains } from "./client-domains.ts";
import {
  accountJobs,
  type ClientDomain,
  createApiKey,
  createClient,
  createDomain,
  createOrganization,
  getDomain,
  isVerifiedNow,
  listDomains,
  moveLocalDomain,
  openApiKeys,
  openClients,
  proofOf,
  proveDomain,
} from "./index.ts";

const day = 86_400;

await using base = await openTestContext();

/** The far end of the network: TXT records by name, files by URL. */
const txt = new Map<string, string[]>();
const files = new Map<string, OutboundResult>();
const asked: string[] = [];
let offsetSeconds = 0;
const warned: object[] = [];
const ctx: Ctx = {
  ...base,
  log: {
    ...base.log,
    warn: (fields: object | string, message?: string) => void warned.push({ fields, message }),
  },
  clock: {
    now: () => base.clock.now() + offsetSeconds,
    nowMs: () => base.clock.nowMs() + offsetSeconds * 1000,
  },
  resolveTxt: async (name) => {
    asked.push(name);
    return txt.get(name) ?? [];
  },
  outbound: {
    send: async ({ url }: OutboundRequest) =>
      files.get(url) ?? { kind: "failed", reason: "unreachable" },
    close: async () => undefined,
  },
};
const { id: organizationId } = await createOrganization(ctx, { name: "Example AG" }, "cli");

const refusedWith =
  (reason: Reason) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.reason === reason;

async function add(domain: string, environment = "live"): Promise<ClientDomain> {
  return createDomain(ctx, { organizationId, domain, environment }, "cli");
}

async function addProved(domain: string): Promise<ClientDomain> {
  const added = await add(domain);
  const { txtName, content } = proofOf(added);
  txt.set(txtName, [content]);
  assert.equal(await proveDomain(ctx, added.id, "cli"), "dns");
  return added;
}

/** Looks at every domain that is due, those of the tests before included, which are more than a batch. */
async function recheckAllDue(): Promise<void> {
  await accountJobs(ctx)[0]?.run(new AbortController().signal);
}

async function isVerifiedById(id: string): Promise<boolean> {
  return isVerifiedNow(ctx, await getDomain(ctx, id));
}

function answer(status: number, body: string): OutboundResult {
  return { kind: "answered", status, headers: {}, body: new TextEncoder().encode(body) };
}

await test("a domain is unverified until a TXT record proves it", async () => {
  const added = await add("dns.example.com");
  assert.equal(await isVerifiedById(added.id), false);
  const { txtName, content } = proofOf(added);
  txt.set(txtName, ["v=spf1 -all", `${content}x`]);
  await assert.rejects(proveDomain(ctx, added.id, "cli"), refusedWith("proof_missing"));
  assert.equal(await isVerifiedById(added.id), false);
  txt.set(txtName, ["v=spf1 -all", content]);
  assert.equal(await proveDomain(ctx, added.id, "cli"), "dns");
  assert.equal(await isVerifiedById(added.id), true);
});

await test("a file on the site proves the domain, and only with status 200 and the one line", async () => {
  const added = await add("file.example.com");
  const { url, content } = proofOf(added);
  for (const bad of [
    answer(404, content),
    answer(301, content),
    answer(200, `${content}\nmore`),
    answer(200, ""),
  ]) {
    files.set(url, bad);
    await assert.rejects(proveDomain(ctx, added.id, "cli"), refusedWith("proof_missing"));
  }
  files.set(url, answer(200, `${content}\r\n`));
  assert.equal(await proveDomain(ctx, added.id, "cli"), "well-known");
});

await test("a proof that is not found names what came of the request for the file", async () => {
  const added = await add("missing.example.com");
  const { url } = proofOf(added);
  const told: [OutboundResult, RegExp][] = [
    [answer(404, ""), /domain-proof, which answered 404$/],
    [answer(200, "<html>"), /which answered something else$/],
    [{ kind: "failed", reason: "blocked" }, /which leads to an address that is not public$/],
    [{ kind: "failed", reason: "unreachable" }, /whose certificate is not trusted$/],
    [{ kind: "failed", reason: "timeout" }, /which did not answer within 5 s$/],
  ];
  for (const [came, message] of told) {
    files.set(url, came);
    await assert.rejects(proveDomain(ctx, added.id, "cli"), { message });
  }
});

await test("the proof of one organization proves nothing for another", async () => {
  const mine = await addProved("contested.example.com");
  const other = await createOrganization(ctx, { name: "Other AG" }, "cli");
  const theirs = await createDomain(
    ctx,
    { organizationId: other.id, domain: mine.domain, environment: "live" },
    "cli",
  );
  await assert.rejects(proveDomain(ctx, theirs.id, "cli"), refusedWith("proof_missing"));
});

await test("localhost needs no proof in dev and nobody is asked", async () => {
  const added = await add("localhost:3000");
  const before = asked.length;
  assert.equal(await isVerifiedById(added.id), true);
  assert.equal(await proveDomain(ctx, added.id, "cli"), "waived");
  assert.equal(asked.length, before);
});

await test("a domain exists once per environment", async () => {
  await add("twice.example.com", "live");
  await add("twice.example.com", "sandbox");
  await assert.rejects(add("twice.example.com", "live"), refusedWith("domain_exists"));
  await assert.rejects(add("twice.example.com", "staging"), refusedWith("invalid_request"));
  const environments = (await listDomains(ctx, organizationId))
    .filter((each) => each.domain === "twice.example.com")
    .map((each) => each.environment);
  assert.deepEqual(environments.toSorted(), ["live", "sandbox"]);
});

await test("proofs are looked for every day, and only when they are due", async () => {
  await addProved("daily.example.com");
  assert.equal(await recheckDomains(ctx), 0);
  offsetSeconds += day - 60;
  assert.equal(await recheckDomains(ctx), 0);
  offsetSeconds += 60 + 3_600;
  assert.ok((await recheckDomains(ctx)) > 0);
  assert.equal(await recheckDomains(ctx), 0);
});

await test("after days without a process all domains are looked at in one run, however many are due", async () => {
  const names = Array.from({ length: 25 }, (_, at) => `many${at}.example.com`);
  const added = await Promise.all(names.map(addProved));
  offsetSeconds += 8 * day;
  const isVerified = async (): Promise<boolean[]> =>
    Promise.all(added.map(async ({ id }) => isVerifiedById(id)));
  assert.ok(!(await isVerified()).includes(true));
  await recheckAllDue();
  assert.ok(!(await isVerified()).includes(false));
});

await test("a domain whose proof is gone stays verified for a week, and its loss, lapse and return are each reported once", async () => {
  const added = await addProved("lost.example.com");
  const { txtName, content } = proofOf(added);
  txt.delete(txtName);
  const failing: (number | null)[] = [];
  warned.length = 0;
  const lookInVain = async (): Promise<void> =>
    assert.rejects(proveDomain(ctx, added.id, "cli"), refusedWith("proof_missing"));
  for (let days = 0; days < 6; days += 1) {
    offsetSeconds += day + 3_600;
    if (days === 0) await lookInVain();
    await recheckAllDue();
    failing.push((await getDomain(ctx, added.id)).failingSince);
  }
  assert.ok(failing[0]);
  assert.equal(new Set(failing).size, 1, "since the first check that failed");
  assert.equal(await isVerifiedById(added.id), true);
  for (let days = 0; days < 2; days += 1) {
    offsetSeconds += day + 3_600;
    if (days === 0) await lookInVain();
    await recheckAllDue();
    assert.equal(await isVerifiedById(added.id), false);
  }
  txt.set(txtName, [content]);
  offsetSeconds += day + 3_600;
  await recheckAllDue();
  assert.equal(await isVerifiedById(added.id), true);
  const fields = { clientDomainId: added.id };
  const told = warned.filter((each) => JSON.stringify(each).includes(added.id));
  assert.deepEqual(told, [
    { fields, message: "the proof of a domain was not found any more" },
    { fields, message: "a domain is unverified: its proof has not been found for seven days" },
  ]);
  const rows = await ctx.db.query<{ action: string }>({
    name: "",
    text: "select action from audit_entry where subject = $1 order by id",
    values: [added.id],
  });
  assert.deepEqual(
    rows.map((row) => row.action),
    [
      "client-domain.create",
      "client-domain.prove",
      "client-domain.proof-lost",
      "client-domain.proof-lapsed",
      "client-domain.proof-found",
    ],
  );
});

await test("two processes that look at the same time share the domains", async () => {
  const added = await addProved("shared.example.com");
  offsetSeconds += day + 3_600;
  asked.length = 0;
  await Promise.all([recheckAllDue(), recheckAllDue()]);
  assert.equal(asked.filter((name) => name === proofOf(added).txtName).length, 1);
});

await test("a process that lost its lease on a domain writes down nothing of what it found", async () => {
  const added = await addProved("slow.example.com");
  offsetSeconds += day + 3_600;
  const lease = { now: ctx.clock.now(), limit: 100 };
  const [slow, fast] = [randomUUID(), randomUUID()];
  await ctx.db.transaction(async (tx) => {
    await leaseDueDomains(tx, { ...lease, id: slow, until: lease.now + 60 });
    await ctx.db.transaction(async (other) => {
      await other.query(sql`set local lock_timeout = '2s'`);
      const left = await leaseDueDomains(other, { ...lease, id: fast, until: lease.now + 60 });
      assert.deepEqual(left, [], "what one process takes is left alone by every other");
    });
  });
  const takeAt = async (now: number) =>
    leaseDueDomains(ctx.db, { ...lease, now, id: fast, until: now + 60 });
  assert.deepEqual(await takeAt(lease.now + 59), [], "as long as the lease runs");
  assert.notDeepEqual(await takeAt(lease.now + 60), []);
  const check = {
    id: added.id,
    isProved: false,
    now: lease.now + 61,
    nextCheckAt: lease.now + day,
  };
  assert.equal(await recordCheck(ctx.db, { ...check, leaseId: slow }), null);
  assert.equal((await getDomain(ctx, added.id)).failingSince, null);
  assert.ok(await recordCheck(ctx.db, { ...check, leaseId: fast }));
});

await test("a check that ends after another has proved the domain undoes nothing of that", async () => {
  const { id } = await addProved("proved-again.example.com");
  offsetSeconds += day + 3_600;
  const now = ctx.clock.now();
  const leaseId = randomUUID();
  await leaseDueDomains(ctx.db, { id: leaseId, now, until: now + 60, limit: 100 });
  const check = { id, now, nextCheckAt: now + day };
  let late: ReturnType<typeof recordCheck> = Promise.resolve(null);
  await ctx.db.transaction(async (tx) => {
    await recordCheck(tx, { ...check, isProved: true, leaseId: null });
    late = recordCheck(ctx.db, { ...check, isProved: false, leaseId });
    await untilBlocked(ctx.db, tx, [late]);
  });
  assert.equal(await late, null);
  const { provedAt, failingSince } = await getDomain(ctx, id);
  assert.deepEqual([provedAt, failingSince], [now, null]);
});

await test("clients and keys learn at once that their domain is verified", async () => {
  await using clients = await openClients(ctx);
  await using apiKeys = await openApiKeys(ctx);
  const added = await add("told.example.com");
  const { client } = await createClient(
    ctx,
    { clientDomainId: added.id, name: "Shop", authenticationMethod: "none" },
    "cli",
  );
  const { key } = await createApiKey(ctx, { clientDomainId: added.id, name: "backend" }, "cli");
  assert.equal((await clients.find(client.id))?.domain, null);
  assert.equal((await apiKeys.authenticate(key)).verified, false);
  const told = Promise.all(["client", "api-key"].map(async (channel) => nextNotification(channel)));
  txt.set(proofOf(added).txtName, [proofOf(added).content]);
  await proveDomain(ctx, added.id, "cli");
  await told;
  assert.equal((await clients.find(client.id))?.domain, "told.example.com");
  assert.equal((await apiKeys.authenticate(key)).verified, true);
});

/** Resolves after all earlier subscribers were called. */
async function nextNotification(channel: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const unsubscribe = await ctx.notifications.subscribe(channel, () => resolve());
  await promise;
  unsubscribe();
}

await test("a domain of this machine moves to another port, and its clients and keys know at once", async () => {
  await using clients = await openClients(ctx);
  await using apiKeys = await openApiKeys(ctx);
  const added = await add("localhost:4101");
  const { client } = await createClient(
    ctx,
    { clientDomainId: added.id, name: "Shop", authenticationMethod: "none" },
    "cli",
  );
  const { key } = await createApiKey(ctx, { clientDomainId: added.id, name: "backend" }, "cli");
  assert.equal((await clients.find(client.id))?.domain, "localhost:4101");
  assert.equal((await apiKeys.authenticate(key)).domain, "localhost:4101");
  const told = Promise.all(["client", "api-key"].map(async (channel) => nextNotification(channel)));
  await moveLocalDomain(ctx, { id: added.id, domain: "localhost:4102" }, "cli");
  await told;
  assert.equal((await getDomain(ctx, added.id)).domain, "localhost:4102");
  assert.equal((await clients.find(client.id))?.domain, "localhost:4102");
  assert.equal((await apiKeys.authenticate(key)).domain, "localhost:4102");
  await moveLocalDomain(ctx, { id: added.id, domain: "localhost:4102" }, "cli");
});

await test("a name that was proved never becomes another, and no name is taken twice", async () => {
  const [shop, other] = [await add("localhost:4111"), await add("localhost:4112")];
  const proved = await addProved("stays.example.com");
  const move = async (id: string, domain: string): Promise<void> =>
    moveLocalDomain(ctx, { id, domain }, "cli");
  await assert.rejects(move(proved.id, "other.example.com"), refusedWith("invalid_request"));
  await assert.rejects(move(proved.id, "localhost:4113"), refusedWith("invalid_request"));
  await assert.rejects(move(shop.id, "other.example.com"), refusedWith("invalid_request"));
  await assert.rejects(move(shop.id, other.domain), refusedWith("domain_exists"));
  assert.equal((await getDomain(ctx, shop.id)).domain, "localhost:4111");
  const production: Ctx = { ...ctx, config: { ...ctx.config, profile: "production" } };
  const given = { id: shop.id, domain: "localhost:4114" };
  await assert.rejects(moveLocalDomain(production, given, "cli"), refusedWith("invalid_request"));
  // Live and sandbox are two sides of one organization.
  const sandbox = await add("localhost:4115", "sandbox");
  await move(shop.id, sandbox.domain);
  assert.equal((await getDomain(ctx, shop.id)).domain, sandbox.domain);
});
