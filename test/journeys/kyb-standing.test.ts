// What merchants can learn of a business in every state, and what its operator makes of it by command line.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Address, signDigest } from "@svc/protocol";
import { decodeJwt } from "jose";
import {
  createApiKey,
  createDomain,
  createOrganization,
} from "../../service/src/accounts/index.ts";
import { callCommandLine } from "../../service/src/command-line/test-call.ts";
import { logInFor } from "../business-login.ts";
import { noteBusinessAcquaintance } from "../../service/src/kyb/business/acquaintance-store.ts";
import { requestLook, wakeRoster } from "../../service/src/kyb/business/roster-store.ts";
import { setMoved } from "../../service/src/kyb/business/standing-store.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { actsOn } from "../audited-acts.ts";
import { openReceiver, type Receiver } from "../kyb-receiver.ts";
import { untilBlocked } from "../lock-waits.ts";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";

const day = 86_400;
const lookups = ["status", "verify", "members"] as const;
const nobody = `0x${"12".repeat(20)}`;
let world: KybWorld;
let receiver: Receiver;
before(async () => {
  world = await openKybWorld();
  receiver = await openReceiver();
});
after(async () => {
  await receiver[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const lookUp = async (kind: (typeof lookups)[number], wallet: string, apiKey = world.apiKey) =>
  world.call("GET", `/api/v1/kyb/${kind}/${wallet}`, { apiKey });

async function svc(...args: string[]) {
  const { databaseUrl, baseUrl } = world.ctx.config;
  const { status, out, err } = await callCommandLine([...args, "--json"], {
    PROFILE: "dev",
    BASE_URL: baseUrl,
    DATABASE_URL: databaseUrl ?? "",
    MASTER_KEY: "11".repeat(32),
    LOG_LEVEL: "silent",
    CHAIN: "off",
  });
  const value = out === "" ? null : (JSON.parse(out) as Record<string, unknown>);
  return { status, value, err };
}

const reachVerified = async (address: string, isVerified: boolean) =>
  world.until(`verified is ${isVerified}`, async () => {
    const { body } = await lookUp("status", address);
    return body["verified"] === isVerified ? body : null;
  });

test("a business is looked up by its wallet in any case; its rules and members are told, their names are not", async () => {
  const { business } = world;
  const { address } = business;
  const { status, body } = await lookUp("status", address);
  const { registeredAt, ...standing } = body;
  assert.equal(status, 200);
  assert.equal(typeof registeredAt, "number");
  const known = { walletAddress: address, businessName: business.name };
  assert.deepEqual(standing, { ...known, status: "active", verified: true });
  const bare = await lookUp("status", address.slice(2).toUpperCase());
  assert.deepEqual(bare.body, body);
  const verify = await lookUp("verify", address);
  assert.deepEqual(verify.body, {
    ...body,
    memberCount: 3,
    governanceRules: [
      { category: "signature_requests", approvalMode: "MAJORITY" },
      { category: "data_requests", approvalMode: "MAJORITY" },
    ],
  });
  const members = await lookUp("members", address);
  assert.deepEqual(members.body, {
    walletAddress: address,
    totalMembers: 3,
    members: business.members
      .map((name) => ({
        walletAddress: world.person(name).address,
        votingRights: true,
        isCreator: name === "alice",
      }))
      .toSorted((one, two) => (one.walletAddress < two.walletAddress ? -1 : 1)),
  });
});

test("a wallet that is unknown, not deployed yet or of the other environment is not found, and no address is malformed", async () => {
  const inviting = await world.askFounding();
  const { organizationId } = world;
  const sandbox = { organizationId, domain: "localhost", environment: "sandbox" };
  const { id: clientDomainId } = await createDomain(world.ctx, sandbox, "test");
  const { key } = await createApiKey(world.ctx, { clientDomainId, name: "Backend" }, "test");
  for (const kind of lookups) {
    for (const wallet of [nobody, String(inviting.body["address"])]) {
      const { status, body } = await lookUp(kind, wallet);
      assert.deepEqual([status, body.error?.reason], [404, "business_not_found"]);
    }
    const other = await lookUp(kind, world.business.address, key);
    assert.deepEqual([other.status, other.body.error?.reason], [404, "business_not_found"]);
    const wrong = await lookUp(kind, "nobody");
    assert.deepEqual([wrong.status, wrong.body.error?.reason], [400, "malformed_request"]);
  }
});

test("an organization that the business logged in to sees the names of its members, another does not", async () => {
  const business = await world.found({ members: ["ann", "ben"] });
  const namesOf = async (): Promise<unknown[]> => {
    const { body } = await lookUp("members", business.address);
    return (body["members"] as Record<string, unknown>[])
      .map(({ name }) => String(name))
      .toSorted();
  };
  assert.deepEqual(await namesOf(), ["undefined", "undefined"]);
  await logInFor(world, { business, voters: ["ann", "ben"] });
  assert.deepEqual(await namesOf(), ["ann", "ben"]);
});

test("the operator lists and shows businesses, and takes back the word for one", async () => {
  const { address } = await world.found({ members: ["cleo"] });
  const listed = await svc("business", "list", "--status", "active", "--environment", "live");
  const items = (listed.value?.["items"] ?? []) as { address: string }[];
  assert.ok(items.some((each) => each.address === address));
  const shown = await svc("business", "show", address);
  const [member] = (shown.value?.["members"] ?? []) as { name: string }[];
  assert.equal(member?.name, "cleo");
  const wordFor = async () => (await svc("business", "show", address)).value?.["operatorWord"];
  assert.equal(await wordFor(), true);
  assert.equal((await svc("business", "verify", address, "--withdraw")).status, 0);
  assert.equal((await reachVerified(address, false))["status"], "active");
  assert.equal(await wordFor(), false);
  for (const _ of [1, 2]) assert.equal((await svc("business", "verify", address)).status, 0);
  await reachVerified(address, true);
  assert.equal((await svc("business", "verify", address, "--leave-to-issuers")).status, 0);
  await reachVerified(address, false);
  assert.equal(await wordFor(), null);
  const said = ["unverify", "verify", "unverify"].map((act) => `cli business.${act}`);
  assert.deepEqual((await actsOn(world.ctx.db, address)).slice(-3), said);
  const both = await svc("business", "verify", address, "--withdraw", "--leave-to-issuers");
  assert.deepEqual([both.status, await wordFor()], [2, null]);
});

test("a suspended business is not verified, its members cannot vote; reinstated it is as before", async () => {
  const { address } = await world.found({ members: ["dora", "emil"] });
  const request = { operation: "changeCharter", members: world.rosterOf(["dora"]) };
  const id = await world.govern("dora", request, { business: address, voters: [] });
  const item = await world.findVote("dora", id);
  assert.equal((await svc("business", "suspend", address)).status, 0);
  assert.equal((await svc("business", "suspend", address)).status, 0);
  const { body } = await lookUp("status", address);
  assert.deepEqual([body["status"], body["verified"]], ["suspended", false]);
  const shown = await world.businessOf("dora", address);
  assert.deepEqual(
    [shown["status"], shown["verified"]],
    ["suspended", false],
    "to its members too",
  );
  const vote = await world.voteAs("dora", id, { item });
  assert.deepEqual([vote.status, vote.body.error?.reason], [409, "ballot_over"]);
  assert.ok((await world.inboxOf("dora")).every((each) => each.id !== id));
  assert.equal((await svc("business", "reinstate", address)).status, 0);
  assert.equal((await reachVerified(address, true))["status"], "active");
  const acts = await actsOn(world.ctx.db, address);
  assert.deepEqual(acts.slice(-2), ["cli business.suspend", "cli business.reinstate"]);
  assert.equal((await world.voteAs("dora", id)).body["status"], "open");
});

test("a verb about a business that does not exist, or cannot be so, is refused by name", async () => {
  const { address } = world.business;
  for (const verb of ["show", "verify", "suspend", "reinstate"]) {
    const { status, err } = await svc("business", verb, nobody);
    assert.equal(status, 1, verb);
    assert.match(err, /business_not_found/, verb);
  }
  const refused: [RegExp, ...string[]][] = [
    [/business_not_found/, "reinstate", "nobody"],
    [/business_not_found/, "move", nobody, "--to", address],
    [/successor/, "move", address, "--to", address],
    [/business_not_found/, "move", address, "--to", nobody],
    [/no move of this business is announced/, "move", address, "--cancel"],
    [/--to or --cancel/, "move", address],
    [/--to or --cancel/, "move", address, "--to", nobody, "--cancel"],
    [/--status must be one of inviting/, "list", "--status", "asleep"],
  ];
  for (const [message, verb, ...rest] of refused) {
    const { status, err } = await svc("business", verb ?? "", ...rest);
    assert.ok(status > 0, `${verb} ${rest.join(" ")}`);
    assert.match(err, message);
  }
});

test("a move by the operator waits 30 days, and any member cancels it", async () => {
  const old = await world.found({ members: ["finn", "gail"] });
  const next = await world.found({ members: ["gail"], name: "Muster Neu AG" });
  const { address } = old;
  const announced = await svc("business", "move", address, "--to", next.address);
  assert.equal(announced.status, 0);
  await world.advance(1);
  assert.deepEqual(await svc("business", "move", address, "--to", next.address), announced);
  const other = await svc("business", "move", address, "--to", world.business.address);
  assert.match(other.err, /another move of this business is announced already; take it back/);
  const { move } = await world.businessOf("finn", address);
  const { keepNonce, endsAt } = move as { keepNonce: number; endsAt: number };
  assert.ok(Math.abs(endsAt - world.ctx.clock.now() - 30 * day) < 60);
  await world.advance(29 * day);
  const signature = world.keepSignature("finn", { business: address, nonce: keepNonce });
  const path = `/w/businesses/${address}/keep`;
  const wrong = signDigest(new Uint8Array(32).fill(7), world.person("finn").privateKey);
  const refused = await world.walletCall("finn", "POST", path, { body: { signature: wrong } });
  assert.deepEqual([refused.status, refused.body.error?.reason], [422, "signature_wrong"]);
  const v0 = { signature: `${signature.slice(0, -2)}00` };
  const formless = await world.walletCall("finn", "POST", path, { body: v0 });
  assert.match(formless.body.error?.message ?? "", /65 bytes r, s, v in hex/);
  const kept = await world.walletCall("finn", "POST", path, { body: { signature } });
  assert.deepEqual(kept.body, { ended: "move" });
  const cancelled = `${world.person("finn").address} business.move.cancel`;
  assert.equal((await actsOn(world.ctx.db, address)).at(-1), cancelled);
  const known = sql`select from business_member where business = ${address} and has_voted`;
  assert.equal((await world.ctx.db.query(known)).length, 1, "and has agreed to be a member");
  const over = await world.walletCall("finn", "POST", path, { body: { signature } });
  assert.deepEqual([over.status, over.body.error?.reason], [409, "nothing_to_end"]);
  await world.advance(2 * day);
  assert.equal((await lookUp("status", address)).body["status"], "active");
});

test("the operator takes an announced move back, once, on record", async () => {
  const old = await world.found({ members: ["finn"], name: "Bleibt AG" });
  const next = await world.found({ members: ["finn"], name: "Bleibt Neu AG" });
  const { address } = old;
  assert.equal((await svc("business", "move", address, "--to", next.address)).status, 0);
  const back = { operation: "moveTo", successor: address };
  const propose = async () =>
    world.walletCall("finn", "POST", `/w/businesses/${next.address}/proposals`, { body: back });
  assert.equal((await propose()).status, 400, "none would be left");
  assert.equal((await svc("business", "move", address, "--cancel")).status, 0);
  assert.equal((await propose()).status, 201);
  assert.equal((await world.businessOf("finn", address))["move"], null);
  const again = await svc("business", "move", address, "--cancel");
  assert.match(again.err, /no move of this business is announced/);
  const acts = await actsOn(world.ctx.db, address);
  assert.deepEqual(acts.slice(-2), ["cli business.move", "cli business.move.cancel"]);
  await world.advance(31 * day);
  assert.equal((await lookUp("status", address)).body["status"], "active");
});

test("a move by the operator waits while its successor is suspended, and is cancelled on record where it cannot be", async () => {
  const foundings = ["waits", "next", "impossible", "gone", "home", "left"].map(async (name) =>
    world.found({ members: ["jan"], name }),
  );
  const [waits, next, impossible, gone, home, left] = (await Promise.all(foundings)).map(
    ({ address }) => address,
  ) as [Address, Address, Address, Address, Address, Address];
  await svc("business", "move", waits, "--to", next);
  await svc("business", "move", impossible, "--to", gone);
  await svc("business", "move", left, "--to", home);
  await world.govern("jan", { operation: "moveTo", successor: next }, { business: left });
  await world.govern("jan", { operation: "moveTo", successor: home }, { business: gone });
  const reachMoved = async (address: Address) =>
    world.until(`${address} has moved`, async () =>
      (await lookUp("status", address)).body["status"] === "moved" ? true : null,
    );
  await reachMoved(gone);
  await reachMoved(left);
  await svc("business", "suspend", next);
  const again = await svc("business", "move", left, "--to", home);
  assert.match(again.err, /this one is moved, not active/);
  await world.advance(31 * day);
  for (const [business, details] of [
    [impossible, { successor: gone, reason: "successor_moved" }],
    [left, { successor: home, reason: "business_moved" }],
  ] as const) {
    const cancelled = await world.until("the impossible one is cancelled", async () => {
      const [entry] = await world.ctx.db.query<{ actor: string; details: object }>(
        sql`select actor, details from audit_entry
          where subject = ${business} and action = 'business.move.cancel'`,
      );
      return entry ?? null;
    });
    assert.deepEqual(cancelled, { actor: "system", details });
  }
  assert.equal((await world.businessOf("jan", left))["successor"], next);
  const renamed = { address: world.person("jan").address, name: "jan", votingRights: true };
  const request = {
    operation: "changeCharter",
    members: [renamed],
    rules: { data_requests: "UNANIMOUS" },
  };
  const open = await world.govern("jan", request, { business: waits, voters: [] });
  assert.equal((await world.businessOf("jan", impossible))["status"], "active");
  await svc("business", "reinstate", next);
  await reachMoved(waits);
  assert.ok((await actsOn(world.ctx.db, waits)).includes("system business.moved"));
  for (const verb of ["suspend", "reinstate"])
    assert.match((await svc("business", verb, waits)).err, /business_not_found: .*moved/);
  const { proposals } = await world.businessOf("jan", waits);
  const [ended] = proposals as { id: string; status: string }[];
  assert.deepEqual([ended?.id, ended?.status], [open, "failed"]);
  assert.ok((await world.inboxOf("jan")).every(({ id }) => id !== open));
});

test("of two businesses that go on in each other at the same moment, one stays", async () => {
  const old = await world.found({ members: ["finn"], name: "Hin AG" });
  const next = await world.found({ members: ["finn"], name: "Her AG" });
  assert.equal((await svc("business", "move", old.address, "--to", next.address)).status, 0);
  await world.ctx.db.transaction(async (tx) => {
    await setMoved(tx, next.address, old.address);
    await world.advance(31 * day);
    await wakeRoster(world.ctx.db);
    await untilBlocked(world.ctx.db, tx);
  });
  await world.until("the announcement is over", async () =>
    (await world.businessOf("finn", old.address))["move"] === null ? true : null,
  );
  assert.equal((await lookUp("status", old.address)).body["status"], "active");
});

/** The event that tells of the move of this business. */
async function movedEvent(address: Address) {
  return world.until("the merchant is told", async () => {
    const found = receiver.received
      .map(({ body }) => JSON.parse(body) as Record<string, unknown>)
      .find(({ data }) => (data as Record<string, unknown>)["business_wallet_address"] === address);
    return found ?? null;
  });
}

test("whoever knows a business that moved is told where, with an attestation, and finds it moved", async () => {
  const path = "/api/v1/kyb/webhook-endpoint";
  const endpoint = await world.call("PUT", path, { body: { url: receiver.url } });
  assert.ok(endpoint.status < 300);
  receiver.trust(endpoint.body["secret"]);
  const { ctx, organizationId } = world;
  const sandbox = { organizationId, domain: "localhost:4998", environment: "sandbox" };
  const { id: clientDomainId } = await createDomain(ctx, sandbox, "test");
  const { key: apiKey } = await createApiKey(ctx, { clientDomainId, name: "Backend" }, "test");
  const other = await world.call("PUT", path, { apiKey, body: { url: receiver.url } });
  assert.ok(other.status < 300, JSON.stringify(other.body));
  // Nobody listens at this one.
  await createDomain(ctx, { ...sandbox, domain: "localhost:4997", environment: "live" }, "test");
  const byOperator = await world.found({ members: ["hal", "ida"] });
  const byMembers = await world.found({ members: ["hal", "ida"] });
  const stranger = await world.found({ members: ["ida"] });
  const next = await world.found({ members: ["ida"], name: "Muster Neu AG" });
  for (const business of [byOperator, byMembers])
    await logInFor(world, { business, voters: ["hal", "ida"] });
  const request = { operation: "moveTo", successor: next.address };
  const { address } = byMembers;
  await world.govern("ida", request, { business: stranger.address, voters: ["ida"] });
  await world.govern("hal", request, { business: address, voters: ["hal", "ida"] });
  await svc("business", "move", byOperator.address, "--to", next.address);
  const first = await movedEvent(address);
  await world.advance(31 * day);
  const second = await movedEvent(byOperator.address);
  for (const [of, event] of [
    [address, first],
    [byOperator.address, second],
  ] as const) {
    assert.equal(event["event"], "kyb.business.wallet_address_changed");
    assert.deepEqual([event["seq"], event["livemode"]], [1, true]);
    const data = event["data"] as Record<string, unknown>;
    assert.equal(data["new_business_wallet_address"], next.address);
    const claims = decodeJwt(String(event["attestation"]));
    assert.deepEqual(
      [claims.iss, claims.aud, claims.sub, claims.jti, claims["stream_id"]],
      [`${world.baseUrl}/kyb`, world.clientDomainId, of, event["event_id"], event["stream_id"]],
    );
    assert.equal(claims["new_business_wallet_address"], next.address);
    const { body } = await lookUp("verify", of);
    assert.deepEqual([body["status"], body["verified"]], ["moved", false]);
    const asked = await world.call("POST", "/api/v1/kyb/data-requests", {
      body: { businessWalletAddress: of, fields: ["BUSINESS_LEGAL_NAME"], purpose: "To ask it" },
    });
    const { reason, message } = asked.body.error ?? {};
    assert.deepEqual([asked.status, reason], [422, "business_not_verified"]);
    assert.equal(message, "business_not_verified: the business has moved to another wallet");
  }
  const told = receiver.received.filter(({ body }) => body.includes(stranger.address));
  assert.equal(told.length, 0);
  await requestLook(world.ctx.db, address);
  const streams = await world.until("the wallet is looked at again", async () => {
    const [row] = await world.ctx.db.query<{ isDue: boolean; streams: number }>(
      sql`select look_due_at is not null as "isDue", (select count(*)::int from webhook_event
          where kind = 'kyb.business.wallet_address_changed') as streams
        from business where address = ${address}`,
    );
    return row?.isDue === false ? row.streams : null;
  });
  assert.equal(streams, 2, "each is told of once, and in its own environment alone");
});

test("a lookup of a business that moved names its successor to whoever is told of the move, and to nobody else", async () => {
  const first = await world.found({ members: ["lou"] });
  const second = await world.found({ members: ["lou"], name: "Muster Zwei AG" });
  const third = await world.found({ members: ["lou"], name: "Muster Drei AG" });
  await logInFor(world, { business: first, voters: ["lou"] });
  const standing = await lookUp("status", first.address);
  assert.ok(!("successor" in standing.body), "it did not move");
  for (const [from, to] of [
    [first, second],
    [second, third],
  ] as const) {
    const request = { operation: "moveTo", successor: to.address };
    await world.govern("lou", request, { business: from.address });
    for (const kind of ["status", "verify"] as const) {
      const moved = await world.until("it has moved", async () => {
        const { body } = await lookUp(kind, from.address);
        return body["status"] === "moved" ? body : null;
      });
      assert.equal(moved["successor"], to.address);
    }
  }
  const stranger = await createOrganization(world.ctx, { name: "Stranger" }, "test");
  const domain = { organizationId: stranger.id, domain: "localhost", environment: "live" } as const;
  const { id: clientDomainId } = await createDomain(world.ctx, domain, "test");
  const { key } = await createApiKey(world.ctx, { clientDomainId, name: "Backend" }, "test");
  const sandbox = await world.found({ members: ["lou"], environment: "sandbox" });
  const met = { business: sandbox.address, organizationId: stranger.id, now: 0 };
  await noteBusinessAcquaintance(world.ctx.db, met);
  await setMoved(world.ctx.db, sandbox.address, second.address);
  for (const { address } of [first, second]) {
    const { body } = await lookUp("status", address, key);
    assert.deepEqual([body["status"], "successor" in body], ["moved", false]);
  }
});

test("whoever knows a business by its first wallet is told of the second and the third", async () => {
  const first = await world.found({ members: ["kim"] });
  const second = await world.found({ members: ["kim"], name: "Muster Zwei AG" });
  const third = await world.found({ members: ["kim"], name: "Muster Drei AG" });
  await logInFor(world, { business: first, voters: ["kim"] });
  for (const [from, to] of [
    [first, second],
    [second, third],
  ] as const) {
    const request = { operation: "moveTo", successor: to.address };
    await world.govern("kim", request, { business: from.address });
    const { data } = await movedEvent(from.address);
    const moved = data as Record<string, unknown>;
    assert.equal(moved["new_business_wallet_address"], to.address);
  }
  const { body } = await lookUp("members", third.address);
  const [kim] = body["members"] as Record<string, unknown>[];
  assert.equal(kim?.["name"], undefined, "the business never logged in with the third");
});
