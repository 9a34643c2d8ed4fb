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
/** More devices than have a place at once. */
const hangingPeople = 26;
const devicesEach = 10;

test("devices that hang in all places keep a hint from one that answers for seconds at most", async () => {
  await using database = await openTestDatabase();
  await using ctx = await openContext(parseConfig({ ...settings, DATABASE_URL: database.url }));
  const paths = new EventTarget();
  const server = createServer((request, response) => {
    if (request.url !== "/good") return;
    response.writeHead(201).end();
    paths.dispatchEvent(new Event("good"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const subscribe = async (user: Address, path: string): Promise<void> => {
    const keys = {
      p256dh: createECDH("prime256v1").generateKeys("base64url"),
      auth: randomBytes(16).toString("base64url"),
    };
    await subscribePush(ctx, user, { endpoint: `http://localhost:${port}${path}`, keys });
  };
  // Members are told in the order of their addresses: whose device answers is the last.
  const people = Array.from({ length: hangingPeople + 1 }, () =>
    addressOfPrivateKey(randomBytes(32)),
  ).toSorted();
  for (const [at, person] of people.entries())
    for (let device = 0; device < (at === hangingPeople ? 1 : devicesEach); device += 1)
      await subscribe(person, at === hangingPeople ? "/good" : `/hang/${device}`);
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
  const good = once(paths, "good", { signal: AbortSignal.timeout(8_000) });
  const sending = sendHints(ctx);
  try {
    await assert.doesNotReject(good);
  } finally {
    server.closeAllConnections();
    server.close();
    await sending;
  }
});
