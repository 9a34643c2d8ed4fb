// The domain of a business in the tokens of its logins: what was taken back is in none that is made from then on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "../../service/src/platform/database/db.ts";
import { logInFor, actAs, openBusinessPage, takeTokens } from "../business-login.ts";
import { openDataWorld } from "../kyb-data-world.ts";
import { postToken, type Tokens } from "../login-flow.ts";
import { untilBlocked } from "../lock-waits.ts";

// The record of the world's business goes on to vouch for it.
await using world = await openDataWorld();
const { business } = world;
const voters = ["alice", "bob"];

const issueWebsite = async (data: string, lifetimeDays?: number): Promise<string> =>
  world.issueRecord(business.address, [{ field: "BUSINESS_WEBSITE", data }], lifetimeDays);

type Told = [domain: unknown, verified: unknown];
const toldBy = ({ ext }: { ext: { business: Record<string, unknown> } }): Told => [
  ext.business["domain"],
  ext.business["verified"],
];
const inToken = (text: string): Told =>
  toldBy(
    JSON.parse(Buffer.from(text.split(".")[1] ?? "", "base64url").toString()) as Parameters<
      typeof toldBy
    >[0],
  );

async function atUserinfo({ access_token: token }: Tokens): Promise<Told> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${world.baseUrl}/userinfo`, { headers });
  return toldBy((await answer.json()) as Parameters<typeof toldBy>[0]);
}

async function refreshed({ refresh_token: token = "" }: Tokens): Promise<Tokens> {
  const form = { grant_type: "refresh_token", refresh_token: token };
  const answer = await postToken(world.baseUrl, world.client, form);
  assert.equal(answer.status, 200);
  return (await answer.json()) as Tokens;
}

await test("a website that is revoked is in no token from then on, though the business stays verified", async () => {
  const id = await issueWebsite("https://www.muster.example");
  const { tokens } = await logInFor(world, { voters });
  const named: Told = ["www.muster.example", true];
  assert.deepEqual([inToken(tokens.access_token), await atUserinfo(tokens)], [named, named]);
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "alice" });
  await world.voteAs("bob", page.loginId);
  await world.revokeRecord(id);
  const unnamed: Told = [null, true];
  assert.deepEqual(await atUserinfo(tokens), unnamed);
  const next = await refreshed(tokens);
  assert.deepEqual([inToken(next.access_token), inToken(next.id_token)], [unnamed, unnamed]);
  assert.deepEqual(inToken((await takeTokens(world, page)).access_token), unnamed);
});

await test("a code that is redeemed while the record of a website ends names it no more", async () => {
  const id = await issueWebsite("https://www.muster.example");
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "alice" });
  await world.voteAs("bob", page.loginId);
  const { revoked, taken } = await world.ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from business where address = ${business.address} for update`);
    const revoking = world.revokeRecord(id);
    await untilBlocked(world.ctx.db, tx, [revoking]);
    const taking = takeTokens(world, page);
    await untilBlocked(world.ctx.db, tx, [revoking, taking]);
    return { revoked: revoking, taken: taking };
  });
  await revoked;
  assert.deepEqual(await atUserinfo(await taken), [null, true]);
});

await test("where another record names a website when one has expired, tokens name that", async () => {
  await issueWebsite("https://old.example", 60);
  await issueWebsite("https://new.example", 1);
  const { tokens } = await logInFor(world, { voters });
  assert.deepEqual(inToken(tokens.access_token), ["new.example", true]);
  await world.advance(86_400);
  let last = tokens;
  await world.until("the record is over", async () => {
    last = await refreshed(last);
    const [domain] = inToken(last.access_token);
    return domain === "new.example" ? null : true;
  });
  assert.deepEqual(inToken(last.access_token), ["old.example", true]);
});

await test("a record ends also where another website does not open: tokens name none from then on", async () => {
  const broken = await issueWebsite("https://broken.example");
  const id = await issueWebsite("https://named.example");
  const { tokens } = await logInFor(world, { voters });
  assert.deepEqual(await atUserinfo(tokens), ["named.example", true]);
  await world.ctx.db.query(
    sql`update company_field set value_sealed = sha256(value_sealed) where credential_id = ${broken}`,
  );
  await world.revokeRecord(id);
  assert.deepEqual(await atUserinfo(tokens), [null, true]);
});
