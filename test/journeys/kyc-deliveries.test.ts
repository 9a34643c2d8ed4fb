// What a merchant sees of the way of its events.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openReceiver } from "../kyb-receiver.ts";
import { decline, openKycWorld } from "../kyc-world.ts";
import { runVerb } from "../operator-verbs.ts";
import { until } from "../patience.ts";
import { freePort } from "../world.ts";

const path = "/api/v2/kyc/deliveries";

await using world = await openKycWorld();

type Report = Record<string, unknown>;
const attemptsOf = (report: Report) => report["attempts"] as Report[];

await test("the operator sees whose an order is, why an attempt had no answer, and what receivers said only when asked to", async () => {
  await using receiver = await openReceiver();
  const gone = `http://127.0.0.1:${await freePort()}/kyc`;
  const nowhere = `${gone}?token=secret`;
  const asked = (await world.ask({ callback: nowhere })).body.data;
  const referenceKey = String(asked?.["referenceKey"]);
  const show = async (...options: string[]): Promise<Record<string, unknown>> => {
    const [status, said] = await runVerb(world, ["order", "show", referenceKey, ...options]);
    assert.equal(status, 0, said);
    return JSON.parse(said) as Record<string, unknown>;
  };
  const failed = await until("the first attempt is over", async () => {
    const report = await show();
    return attemptsOf(report).length === 1 ? report : null;
  });
  assert.equal(failed["clientDomainId"], world.clientDomainId);
  assert.deepEqual([failed["user"], failed["status"]], [world.person.address, "PENDING"]);
  assert.equal(attemptsOf(failed)[0]?.["outcome"], "unreachable");
  const [event] = failed["events"] as Record<string, unknown>[];
  assert.equal(event?.["to"], gone, "its query may hold a secret");
  assert.ok(Number(event?.["nextAttemptAt"]) > 0);
  receiver.setStatus(200, "Grüezi");
  await world.ask({ callback: receiver.url });
  await world.advance(7);
  const done = await until("it is delivered", async () => {
    const report = await show("--answers");
    return attemptsOf(report)[0]?.["outcome"] === "delivered" ? report : null;
  });
  assert.deepEqual(
    attemptsOf(done).map(({ attempt, status, answer }) => [attempt, status, answer]),
    [
      [2, 200, "Grüezi"],
      [1, null, null],
    ],
  );
  assert.ok(attemptsOf(await show()).every((attempt) => !Object.hasOwn(attempt, "answer")));
  for (const key of ["ab".repeat(32), "nonsense"]) {
    const [status, said] = await runVerb(world, ["order", "show", key]);
    assert.equal(status, 1);
    assert.match(said, /order/);
  }
});

await test("200: what was delivered and is sent again goes to the callback that the order has by now", async () => {
  const { address: user } = await world.verify();
  await using first = await openReceiver();
  await using second = await openReceiver();
  const asked = await world.ask({ user, callback: first.url });
  const { referenceKey } = asked.body.data ?? {};
  const event = await until("it is known to be delivered", async () => {
    const events = `/api/v2/kyc/events?referenceKey=${String(referenceKey)}`;
    const { body } = await world.call("GET", events);
    const [one] = (body.data?.["items"] ?? []) as { eventId: string; deliveredAt?: number }[];
    return one?.deliveredAt === undefined ? null : one;
  });
  await world.ask({ user, callback: second.url });
  const resent = await world.call("POST", "/api/v2/kyc/redeliver", { body: { referenceKey } });
  assert.deepEqual(resent.body.data, { count: 1 });
  await second.arrivalOf(event.eventId);
});

await test("200: attempts to deliver are listed with what the receiver answered", async () => {
  await using receiver = await openReceiver();
  const person = await world.verify();
  receiver.setStatus(503);
  const asked = await world.ask({ user: person.address, callback: receiver.url });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const list = async (more = "") => {
    const { body } = await world.call("GET", `${path}?referenceKey=${referenceKey}${more}`);
    assert.equal(body.message, "deliveries have been sent successfully");
    return body.data?.["items"] as Record<string, unknown>[];
  };
  const [first] = await until("the first attempt is over", async () => {
    const items = await list();
    return items.length > 0 ? items : null;
  });
  const { eventId, at, durationMs, ...rest } = first ?? {};
  assert.deepEqual(rest, {
    sequence: 1,
    event: "status.updated",
    attempt: 1,
    outcome: "refused",
    status: 503,
  });
  assert.ok(typeof eventId === "string" && typeof durationMs === "number");
  assert.ok(Math.abs(Number(at) - world.ctx.clock.now()) < 60);
  receiver.setStatus(204);
  await world.advance(7);
  assert.equal((await decline(person, asked.body.data?.["link"])).status, 200);
  const all = await until("everything is delivered", async () => {
    const items = await list();
    return items.length === 3 ? items : null;
  });
  assert.deepEqual(
    all.map((each) => [each["sequence"], each["attempt"], each["outcome"], each["status"]]),
    [
      [1, 1, "refused", 503],
      [1, 2, "delivered", 204],
      [2, 1, "delivered", 204],
    ],
  );
  assert.deepEqual(await list("&after=1"), all.slice(2));
  assert.deepEqual(await list("&after=1&afterAttempt=1"), all.slice(1));
  assert.deepEqual(await list("&limit=1"), all.slice(0, 1));
  for (const each of ["deliveries", "events"]) {
    const listOf = async (query: string) =>
      (await world.call("GET", `/api/v2/kyc/${each}?referenceKey=${referenceKey}${query}`)).body
        .data;
    const whole = await listOf("");
    assert.equal(whole?.["nextCursor"], undefined);
    const begun = await listOf("&limit=1");
    const left = await listOf(`&cursor=${String(begun?.["nextCursor"])}`);
    assert.deepEqual([begun?.["items"], left?.["items"]].flat(), whole?.["items"]);
    assert.equal(left?.["nextCursor"], undefined);
    const bad = await world.call(
      "GET",
      `/api/v2/kyc/${each}?referenceKey=${referenceKey}&cursor=x`,
    );
    assert.deepEqual(
      [bad.status, bad.body.error?.message],
      [400, "Invalid Request: cursor is not one of ours"],
    );
  }
  const unknown = await world.call("GET", `${path}?referenceKey=${"ab".repeat(32)}`);
  assert.equal(unknown.status, 404);
  await world.advance(31 * 86_400);
  await until("attempts are kept for 30 days", async () => {
    const items = await list();
    return items.length === 0 ? true : null;
  });
});
