// Answers that the order's user signed, but that release something else than what was asked for or issued, or come by
// another link than they ought to: of several links of one order each is good for its own attempt and until its own end.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { commitmentOf, declineDigest, type Hex32, leafOf, signDigest } from "@svc/protocol";
import { getBuiltInIssuer, revokeCredential } from "../../service/src/credentials/index.ts";
import {
  decline,
  type HeldField,
  type KycWorld,
  type OpenedRequest,
  openKycWorld,
  openRequest,
  type Person,
  scanRequest,
  shareResult,
} from "../kyc-world.ts";
import { newIdentity, post } from "../raw-wallet.ts";
import { isAcquainted } from "../../service/src/accounts/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { untilBlocked } from "../lock-waits.ts";
import { openRawConnection } from "../raw-connection.ts";

let world: KycWorld;
before(async () => {
  world = await openKycWorld();
});
after(async () => world[Symbol.asyncDispose]());

/** The same person, whose wallet holds another value, pepper or end of its e-mail address than was issued. */
function tamper(person: Person, changed: Partial<HeldField>): Person {
  const held = person.held.map((own) => {
    if (own.field !== "EMAIL") return own;
    const { field, data, pepper, expiresAt, credentialId } = { ...own, ...changed };
    const commitment = commitmentOf({ data, pepper });
    const leaf = leafOf({ user: person.address, field, commitment, expiresAt });
    return { field, data, pepper, expiresAt, leaf, credentialId };
  });
  return { ...person, held };
}

const otherPepper: Hex32 = `0x${"5c".repeat(32)}`;
const wrongAnswers: Record<string, (person: Person, opened: OpenedRequest) => object> = {
  "that lacks a required field": (person, opened) =>
    shareResult(person, opened, { fields: ["EMAIL"] }),
  "with another value than was issued": (person, opened) =>
    shareResult(tamper(person, { data: "perla@elsewhere.example" }), opened),
  "with another pepper than was issued": (person, opened) =>
    shareResult(tamper(person, { pepper: otherPepper }), opened),
  "with a value that was issued to nobody, by a wallet that tells what it signed": (
    person,
    opened,
  ) => {
    const data: Hex32 = `0x${"77".repeat(32)}`;
    const wrong = tamper(person, { data: "perla@elsewhere.example" });
    return shareResult(wrong, opened, { changed: { data }, sent: { data } });
  },
  "with what was issued, by a wallet that signed something else and tells so": (person, opened) => {
    const data: Hex32 = `0x${"77".repeat(32)}`;
    return shareResult(person, opened, { changed: { data }, sent: { data } });
  },
};

test("the fourth validly signed answer ends the attempt", async (t) => {
  for (const [title, answerWrongly] of Object.entries(wrongAnswers))
    await t.test(`an attempt ends at the fourth answer ${title}`, async () => {
      const person = await world.verify();
      const asked = await world.ask({ user: person.address });
      const referenceKey = String(asked.body.data?.["referenceKey"]);
      const opened = await openRequest(asked.body.data?.["link"]);
      const wrong = answerWrongly(person, opened);
      for (let round = 1; round <= 4; round++) {
        assert.equal((await world.statusOf(referenceKey))["status"], "PENDING");
        const refused = await post(opened.connection, wrong);
        assert.equal(refused.status, 422);
        assert.match(await refused.text(), /the fields do not match what was asked for/);
      }
      assert.equal((await world.statusOf(referenceKey))["failureReason"], "INVALID_CONFIRM_DATA");
    });
});

test("a value that was withdrawn since it was asked for is not taken any more", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const opened = await openRequest(asked.body.data?.["link"]);
  const credentialId = person.held.find(({ field }) => field === "EMAIL")?.credentialId ?? "";
  const issuer = await getBuiltInIssuer(world.ctx, "demo", "live");
  await revokeCredential(world.ctx, issuer, credentialId);
  const refused = await post(opened.connection, shareResult(person, opened));
  assert.equal(refused.status, 422);
  assert.match(await refused.text(), /the fields do not match what was asked for and is verified/);
  assert.equal((await world.statusOf(referenceKey))["status"], "PENDING");
});

test("a value too long to hash is refused unchecked and does not count as a wrong one", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const opened = await openRequest(asked.body.data?.["link"]);
  const wrong = shareResult(tamper(person, { data: "x".repeat(65_537) }), opened);
  for (let round = 1; round <= 4; round++)
    assert.equal((await post(opened.connection, wrong)).status, 422);
  assert.equal((await world.statusOf(referenceKey))["status"], "PENDING");
});

test("somebody who has only the link ends nothing by wrong values, and learns nothing of what was issued", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const opened = await openRequest(asked.body.data?.["link"]);
  const wrong = tamper(person, { data: "perla@elsewhere.example" });
  const never = { ...wrong, held: wrong.held.map((own) => ({ ...own, field: "PHONE" as const })) };
  const said = new Set<string>();
  for (const [index, result] of [
    shareResult(wrong, opened, { signer: newIdentity() }),
    shareResult({ ...never, held: never.held.slice(0, 1) }, opened, {
      fields: ["PHONE"],
      signer: newIdentity(),
    }),
    shareResult(wrong, opened, { signer: newIdentity() }),
    shareResult(wrong, opened, { signer: newIdentity() }),
    shareResult(wrong, opened, { signer: newIdentity() }),
  ].entries()) {
    const refused = await post(opened.connection, result);
    assert.equal(refused.status, 422, String(index));
    const { error } = (await refused.json()) as { error?: { message?: string } };
    said.add(String(error?.message));
  }
  assert.equal(said.size, 1);
  assert.match([...said].join(""), /the signature does not fit this request, or a value/);
  assert.equal((await world.statusOf(referenceKey))["status"], "PENDING");
  assert.equal((await post(opened.connection, shareResult(person, opened))).status, 200);
});

test("the link of an attempt that is over approves, declines and counts nothing in the next one", async () => {
  const person = await world.verify();
  const first = await world.ask({ user: person.address });
  const link = first.body.data?.["link"];
  const opened = await openRequest(link);
  // A decline whose answer is lost is repeated, perhaps before the first is done.
  const declines = await Promise.all([decline(person, link), decline(person, link)]);
  for (const each of [...declines, await decline(person, link)]) assert.equal(each.status, 200);
  assert.equal((await decline(await world.verify(), link)).status, 422);
  const referenceKey = String(first.body.data?.["referenceKey"]);
  await world.ask({ user: person.address });
  for (const fields of [["IDCARD_DOB", "EMAIL"], ["EMAIL"]])
    assert.equal(
      (await post(opened.connection, shareResult(person, opened, { fields }))).status,
      410,
    );
  assert.equal((await decline(person, link)).status, 410);
  assert.equal((await world.statusOf(referenceKey))["status"], "PENDING");
});

/** Begins an answer and holds back its body. @returns a function that sends the rest and returns the status */
async function answerSlowly(connection: string, result: object): Promise<() => Promise<number>> {
  const body = JSON.stringify(result);
  const { host, pathname } = new URL(connection);
  const slow = await openRawConnection(world.baseUrl);
  const head = [`Host: ${host}`, "Content-Type: application/json", "Connection: close"];
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  slow.send(`POST ${pathname} HTTP/1.1\r\n${[...head, length].join("\r\n")}\r\n\r\n{`);
  return async () => {
    slow.send(body.slice(1));
    return Number((await slow.all).split(" ")[1]);
  };
}

test("an answer that takes longer than its attempt changes and counts nothing in the next one", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const link = asked.body.data?.["link"];
  const opened = await openRequest(link);
  const { connection, id } = opened;
  const refusal = signDigest(declineDigest({ request: id, connection }), person.privateKey);
  const wrong = { fields: ["EMAIL"] };
  const answers = [
    await answerSlowly(connection, shareResult(person, opened)),
    await answerSlowly(connection, { error: "access_denied", id, signature: refusal }),
    await answerSlowly(connection, shareResult(person, opened, wrong)),
  ];
  // Once these are answered, the slow answers have surely begun.
  for (let at = 0; at < 5; at += 1) await world.statusOf(referenceKey);
  assert.equal((await decline(person, link)).status, 200);
  const next = await openRequest((await world.ask({ user: person.address })).body.data?.["link"]);
  const statuses: number[] = [];
  for (const sendRest of answers) statuses.push(await sendRest());
  assert.deepEqual(statuses.slice(0, 2), [410, 410]);
  for (let round = 1; round <= 3; round += 1)
    assert.equal((await post(next.connection, shareResult(person, next, wrong))).status, 422);
  assert.equal((await world.statusOf(referenceKey))["status"], "PENDING");
  assert.equal((await post(next.connection, shareResult(person, next))).status, 200);
});

test("an answer that takes longer than a repeat with another callback is not sent where its wallet was not told", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const opened = await openRequest(asked.body.data?.["link"]);
  const sendRest = await answerSlowly(opened.connection, shareResult(person, opened));
  // Once these are answered, the slow answer has surely begun.
  for (let at = 0; at < 5; at += 1) await world.statusOf(opened.id);
  const callback = "http://127.0.0.1:4998/hook";
  assert.equal((await world.ask({ user: person.address, callback })).status, 200);
  assert.equal(await sendRest(), 410);
  assert.equal((await world.statusOf(opened.id))["status"], "PENDING");
});

test("a link ends with its own expiration, though a later one keeps its order open for longer", async () => {
  const person = await world.verify();
  const now = world.ctx.clock.now();
  const short = await world.ask({ user: person.address, expiration: now + 330 });
  const opened = await openRequest(short.body.data?.["link"]);
  const long = await world.ask({ user: person.address, expiration: now + 880 });
  await world.advance(340);
  assert.equal((await post(opened.connection, shareResult(person, opened))).status, 410);
  assert.equal((await decline(person, short.body.data?.["link"])).status, 410);
  await openRequest(long.body.data?.["link"]);
  const { body } = await world.call("GET", `/api/v2/kyc/orders?user=${person.address}`);
  const [listed] = (body.data as { items: { scannedAt?: number }[] }).items;
  assert.ok((listed?.scannedAt ?? 0) < now + 330, "it was scanned when its first link was opened");
});

test("a link ends with the newest expiration of its order, though its own is later", async () => {
  const person = await world.verify();
  const now = world.ctx.clock.now();
  const long = await world.ask({ user: person.address, expiration: now + 880 });
  const opened = await openRequest(long.body.data?.["link"]);
  await world.ask({ user: person.address, expiration: now + 330 });
  await world.advance(340);
  assert.equal((await post(opened.connection, shareResult(person, opened))).status, 410);
  assert.equal((await world.statusOf(opened.id))["failureReason"], "EXPIRED");
});

test("a link that is opened while its attempt ends is over, and nobody has scanned it", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const { connection } = scanRequest(asked.body.data?.["link"]);
  const { db } = world.ctx;
  const { cancelling, opening } = await db.transaction(async (tx) => {
    await tx.query(sql`select from kyc_order where user_address = ${person.address} for update`);
    const cancelled = world.call("POST", "/api/v2/kyc/cancel", { body: { referenceKey } });
    await untilBlocked(db, tx, [cancelled]);
    const opened = post(`${connection}/open`, {});
    await untilBlocked(db, tx, [cancelled, opened]);
    return { cancelling: cancelled, opening: opened };
  });
  assert.deepEqual([(await cancelling).status, (await opening).status], [200, 410]);
  const listed = await world.call("GET", `/api/v2/kyc/orders?user=${person.address}`);
  const { items } = listed.body.data as { items: Record<string, unknown>[] };
  assert.deepEqual([items[0]?.["status"], items[0]?.["scannedAt"]], ["FAILED", undefined]);
});

test("422: who asks again while the user approves hears that the order is ongoing", async () => {
  const person = await world.verify();
  const { address: user } = person;
  const opened = await openRequest((await world.ask({ user })).body.data?.["link"]);
  assert.equal(opened.claims["exp"], opened.deadline);
  const { db } = world.ctx;
  const isKnown = async () => isAcquainted(db, world.organizationId, user);
  assert.equal(await isKnown(), false);
  const { approving, asking } = await db.transaction(async (tx) => {
    await tx.query(sql`select from kyc_order where user_address = ${user} for update`);
    const approved = post(opened.connection, shareResult(person, opened));
    await untilBlocked(db, tx, [approved]);
    const again = world.ask({ user });
    await untilBlocked(db, tx, [approved, again]);
    return { approving: approved, asking: again };
  });
  const { status, body } = await asking;
  assert.deepEqual([(await approving).status, status], [200, 422]);
  assert.equal(body.error?.reason, "order_ongoing");
  assert.equal(await isKnown(), true, "whom the user shared with may ask from then on");
});

test("422: an answer to a link that nobody opened is refused, whatever its wallet signed", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const scanned = scanRequest(asked.body.data?.["link"]);
  const result = shareResult(person, { ...scanned, object: "", claims: { domain: "localhost" } });
  const refused = await post(scanned.connection, result);
  assert.equal(refused.status, 422);
  assert.match(await refused.text(), /open the request first/);
});
