// Devices whose push service takes a hint and never answers: anybody can name such an address.
import assert from "node:assert/strict";
import { createECDH, randomBytes } from "node:crypto";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { type Address, addressOfPrivateKey } from "@svc/protocol";
import { openTestContext } from "../../../test/test-context.ts";
import { sql } from "../platform/database/db.ts";
import type { Outbound } from "../platform/outbound/outbound.ts";
import { keepPauses } from "../platform/test-pauses.ts";
import { sendHints, subscribePush } from "./push.ts";

const devicesEach = 10;
/** As many hints are under way at once; there are a few devices more. */
const places = 256;
const people = Array.from({ length: Math.ceil(places / devicesEach) }, () =>
  addressOfPrivateKey(randomBytes(32)),
);

/** Push services that take the hints of all places and answer none, until the test lets go of them. */
function openHangingServices() {
  const taken = Promise.withResolvers<void>();
  const further = Promise.withResolvers<void>();
  const { promise: answered, resolve: letGo } = Promise.withResolvers<void>();
  let count = 0;
  const send: Outbound["send"] = async () => {
    count += 1;
    if (count === places) taken.resolve();
    if (count <= places) await answered;
    else further.resolve();
    return { kind: "failed", reason: "unreachable" };
  };
  return { send, taken: taken.promise, further: further.promise, letGo, countSent: () => count };
}

test("devices that hang in all places keep a hint from one that answers for seconds at most", async (t) => {
  await using ctx = await openTestContext();
  const subscribe = async (user: Address, device: number): Promise<void> => {
    const keys = {
      p256dh: createECDH("prime256v1").generateKeys("base64url"),
      auth: randomBytes(16).toString("base64url"),
    };
    await subscribePush(ctx, user, { endpoint: `http://localhost:4999/${device}`, keys });
  };
  for (const person of people)
    for (let device = 0; device < devicesEach; device += 1) await subscribe(person, device);
  const business = `0x${"b5".repeat(20)}`;
  const endsAt = ctx.clock.now() + 600;
  await ctx.db.query(sql`
    insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt, charter, created_at)
    values (${business}, 'live', 'Muster AG', 'active', ${people[0]}, 'i', 0, ${randomBytes(32)}, ${randomBytes(24)}, 0)`);
  await ctx.db.query(sql`
    insert into business_member (id, business, member, name_sealed, is_voting, is_creator, joined_at, has_voted)
    select gen_random_uuid(), ${business}, member, '', true, false, 0, true from unnest(${people}::text[]) as given (member)`);
  await ctx.db.query(sql`
    insert into ballot (id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status, created_at)
    values ('b', 'governance', ${business}, 3, 0, ${people}, 1, ${endsAt + 3600}, ${endsAt}, 'open', 0)`);
  const { send, taken, further, letGo, countSent } = openHangingServices();
  const pauses = keepPauses(t);
  const sending = sendHints({ ...ctx, outbound: { ...ctx.outbound, send } });
  await taken;
  await setImmediate();
  assert.deepEqual([countSent(), pauses.asked], [places, Array(places).fill(2000)]);
  pauses.end();
  await further;
  letGo();
  await sending;
});
