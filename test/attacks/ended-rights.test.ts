// What still holds after a right has ended under way: an API key, an entitlement, a client.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import {
  createApiKey,
  disableClient,
  limitCallbackHosts,
  revokeApiKey,
  setEntitlement,
} from "../../service/src/accounts/index.ts";
import { actAs, openBusinessPage } from "../business-login.ts";
import { openDataWorld } from "../kyb-data-world.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import { type Answer, reasonOf } from "../kyb-world.ts";

await using world = await openDataWorld();
const { ctx, business, clientDomainId, organizationId } = world;
const endpointPath = "/api/v1/kyb/webhook-endpoint";

async function askSignature(path = signaturesPath, apiKey = world.apiKey): Promise<Answer> {
  const headers = { "idempotency-key": randomBytes(8).toString("hex") };
  const named = path === signaturesPath ? { businessWalletAddress: business.address } : {};
  return world.call("POST", path, { apiKey, headers, body: { ...someText, ...named } });
}

/** The path below which a member takes an offer. */
function claimPathOf({ body }: Answer): string {
  const link = String(body["link"]);
  const connection = new URLSearchParams(link.slice(link.indexOf("?"))).get("conn") ?? "";
  return `${new URL(connection).pathname}/claim`;
}

await test("a key that is revoked leaves what it made, the address of events too, until that is set again", async () => {
  const { key, id } = await createApiKey(ctx, { clientDomainId, name: "Stolen" }, "test");
  await limitCallbackHosts(ctx, { id: clientDomainId, hosts: ["hooks.example.com"] }, "test");
  const move = async (apiKey: string, url: string): Promise<Answer> =>
    world.call("PUT", endpointPath, { apiKey, body: { url } });
  const { body: before } = await world.call("GET", endpointPath);
  assert.equal((await move(key, "http://localhost:4997/thief")).status, 200);
  const offer = await askSignature(`${signaturesPath}/offers`, key);
  const asked = await world.ask({}, { apiKey: key });
  await revokeApiKey(ctx, id, "test");
  const refused = await world.until("the key is refused", async () => {
    const answer = await world.call("GET", endpointPath, { apiKey: key });
    return answer.status === 200 ? null : answer;
  });
  assert.deepEqual(reasonOf(refused), [401, "apikey_invalid"]);
  const requestId = String(asked.body["requestId"]);
  for (const name of ["alice", "bob"]) await world.voteAs(name, requestId);
  await world.waitFor(requestId, "released");
  const claim = { svcID: world.person("bob").address, business: business.address };
  const taken = await world.walletCall("bob", "POST", claimPathOf(offer), { body: claim });
  assert.equal(taken.status, 200);
  const { body: moved } = await world.call("GET", endpointPath);
  assert.equal(moved["url"], "http://localhost:4997/thief");
  assert.equal(moved["secretVersion"], Number(before["secretVersion"]) + 1);
  const restored = await move(world.apiKey, String(before["url"]));
  assert.deepEqual([restored.status, restored.body["url"]], [200, before["url"]]);
});

await test("a signature that was asked for is made though kyb:signature was withdrawn, and none is asked for anew", async () => {
  const asked = await askSignature();
  const set = async (isGranted: boolean): Promise<void> => {
    await setEntitlement(ctx, { organizationId, entitlement: "kyb:signature", isGranted }, "test");
    await world.until("its keys know", async () => {
      const { status } = await world.call("GET", signaturesPath);
      return (status === 200) === isGranted ? true : null;
    });
  };
  await set(false);
  assert.deepEqual(reasonOf(await askSignature()), [403, "kyb_signature_not_entitled"]);
  const id = String(asked.body["requestId"]);
  for (const name of ["alice", "bob"]) assert.equal((await world.voteAs(name, id)).status, 200);
  await set(true);
  await world.until("it is signed", async () => {
    const { body } = await world.call("GET", `${signaturesPath}/${id}`);
    return body["status"] === "signed" ? true : null;
  });
});

await test("members may decide on a login whose client was disabled meanwhile, and its browser gets no code", async () => {
  const client = await world.addClient();
  const page = await openBusinessPage(world, { client });
  const { response } = await actAs(world, page, { name: "alice" });
  assert.deepEqual(await response.json(), { status: "waiting" });
  await disableClient(ctx, client.id, "test");
  assert.equal((await world.voteAs("bob", page.loginId)).body["status"], "approved");
  const finished = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/finish`, {
    method: "POST",
    redirect: "manual",
    headers: { origin: world.baseUrl },
  });
  assert.deepEqual([finished.status, finished.headers.get("location")], [409, null]);
});
