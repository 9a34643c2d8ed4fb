// Answers that the order's user signed, but that release something else than what was asked for or issued.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { commitmentOf, type Hex32, leafOf } from "@svc/protocol";
import { getBuiltInIssuer, revokeCredential } from "../../service/src/credentials/index.ts";
import {
  type HeldField,
  type KycWorld,
  openKycWorld,
  type OpenedRequest,
  openRequest,
  type Person,
  shareResult,
} from "../kyc-world.ts";
import { newIdentity, post } from "../raw-wallet.ts";

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

test("a wrong value that takes long to hash is not looked into: it counts for nothing", async () => {
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
