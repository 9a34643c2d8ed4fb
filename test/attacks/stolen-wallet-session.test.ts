// Whoever has copied the token of a wallet's session, and has not its key.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sessionDigest, signDigest } from "@svc/protocol";
import { getBuiltInIssuer, issueCredential } from "../../service/src/credentials/index.ts";
import { openSignatureWorld, type SignatureWorld } from "../kyb-signature-world.ts";
import type { Answer } from "../kyb-world.ts";
import { logIn, openPage, statusOf } from "../login-flow.ts";
import { approvalOf, claim, openWalletSession, post, scan } from "../raw-wallet.ts";

let world: SignatureWorld;
before(async () => {
  world = await openSignatureWorld();
});
after(async () => world[Symbol.asyncDispose]());

const reasonOf = ({ status, body }: Answer): unknown[] => [status, body.error?.reason];
const wrong = [422, "signature_wrong"];

test("who has a wallet's session and not its key votes, founds and logs in by nothing, and opens no other session", async () => {
  const [alice, thief] = [world.person("alice"), world.person("mallory")];
  const headers = await openWalletSession(world.baseUrl, alice);
  const id = await world.begin();
  assert.deepEqual(reasonOf(await world.voteAs("alice", id, { signer: thief })), wrong);
  const signature = signDigest(new Uint8Array(32).fill(1), thief.privateKey);
  const founding = { members: ["alice", "bob"], changed: { signature } };
  assert.deepEqual(reasonOf(await world.askFounding(founding)), wrong);

  const asked = await (await post(`${world.baseUrl}/w/session/challenge`, {}, headers)).json();
  const challenge = asked as Parameters<typeof sessionDigest>[0];
  const session = {
    svcID: alice.address,
    challenge: challenge.challenge,
    deadline: challenge.deadline,
    signature: signDigest(sessionDigest(challenge), thief.privateKey),
  };
  assert.equal((await post(`${world.baseUrl}/w/session`, session, headers)).status, 422);

  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), alice);
  const approval = { ...claimed, identity: { ...thief, address: alice.address } };
  const { digits } = await statusOf(world.baseUrl, page);
  const answer = await post(claimed.connection, approvalOf(approval, String(digits)), headers);
  assert.equal(answer.status, 422, await answer.text());
});

test("who has a wallet's session reads what lies at the service, values until they are collected, and ends what is there", async () => {
  const alice = world.person("alice");
  const { ctx, baseUrl, client } = world;
  await logIn(baseUrl, client, alice);
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  const expiresAt = ctx.clock.now() + 400 * 86_400;
  const issue = async (data: string): Promise<string> => {
    const fields = [{ field: "PHONE", data }];
    const given = { user: alice.address, document: "CONTACT", fields, expiresAt };
    return (await issueCredential(ctx, issuer, given)).id;
  };
  const [collected, waiting] = [await issue("+41791111111"), await issue("+41792222222")];
  const call = async (method: "GET" | "POST", path: string): Promise<Answer> =>
    world.walletCall("alice", method, path, method === "GET" ? {} : { body: {} });
  await call("POST", `/w/credentials/${collected}/collected`);

  const shown = JSON.stringify((await call("GET", "/w/credentials")).body);
  assert.ok(shown.includes("+41792222222"), shown);
  assert.ok(!shown.includes("+41791111111"), shown);
  const logins = (await call("GET", "/w/logins")).body["items"] as { id: string }[];
  const ends = [
    ...logins.map(({ id }) => `/w/logins/${id}/end`),
    `/w/credentials/${collected}/withdraw`,
    `/w/credentials/${waiting}/withdraw`,
  ];
  assert.equal(ends.length, 3);
  for (const path of ends) assert.equal((await call("POST", path)).status, 200, path);
});
