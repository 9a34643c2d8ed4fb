// Devices whose push service takes a hint and never answers: anybody can name such an address.
import assert from "node:assert/strict";
import { createECDH, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { type Address, addressOfPrivateKey } from "@svc/protocol";
import { openContext } from "../compose.ts";
import { parseConfig } from "../platform/config/config.ts";
import { sql } from "../platform/database/db.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { sendHints, subscribePush } from "./push.ts";

const settings = { MASTER_KEY: "11".repeat(32), LOG_LEVEL: "silent" };
const devicesEach = 10;
/** As many hints are under way at once; there are a few devices more. */
const places = 256;
const people = Array.from({ length: Math.ceil(places / devicesEach) }, () =>
  addressOfPrivateKey(randomBytes(32)),
);

/** A push service that answers nobody before all places are taken, and tells whether somebody has given up by then. */
function openPushService() {
  const { promise: further, resolve } = Promise.withResolvers<{ hasOneEnded: boolean }>();
  let [count, hasOneEnded] = [0, false];
  const server = createServer((_request, response) => {
    count += 1;
    if (count <= places) {
      response.once("close", () => {
        hasOneEnded = true;
      });
      return;
    }
    response.writeHead(201).end();
    resolve({ hasOneEnded });
  });
  return { server, further };
}

test("devices that hang in all places keep a hint from one that answers for seconds at most", async () => {
  await using database = await openTestDatabase();
  await using ctx = await openContext(parseConfig({ ...settings, DATABASE_URL: database.url }));
  const { server, further } = openPushService();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const subscribe = async (user: Address, device: number): Promise<void> => {
    const keys = {
      p256dh: createECDH("prime256v1").generateKeys("base64url"),
      auth: randomBytes(16).toString("base64url"),
    };
    await subscribePush(ctx, user, { endpoint: `http://localhost:${port}/${device}`, keys });
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
  const sending = sendHints(ctx);
  try {
    const met = await Promise.race([further, sending.then(() => null)]);
    // Whoever hangs is given up after ten seconds.
    assert.deepEqual(met, { hasOneEnded: false });
  } finally {
    server.closeAllConnections();
    server.close();
    await sending;
  }
});
