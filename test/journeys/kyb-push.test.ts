// A member's device is told that something waits: from the page that subscribes to the push service that is called.
import assert from "node:assert/strict";
import { createECDH, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { type PushDevice, WalletRefusal } from "@svc/wallet";
import { lockBallot, restartBallot } from "../../service/src/kyb/ballot/ballot-store.ts";
import { openKybWorld } from "../kyb-world.ts";
import { openWalletAt } from "../wallet-at.ts";

await using world = await openKybWorld();
const { baseUrl } = world;
const { wallet } = await openWalletAt(world, { privateKey: world.person("carol").privateKey });

/** The push service of a browser: it counts what comes for each device. */
async function openPushService() {
  const told: string[] = [];
  const server = createServer((request, response) => {
    told.push(request.url ?? "");
    response.writeHead(201).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    told,
    base: `http://localhost:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

await using service = await openPushService();

function newDevice(path: string) {
  const ecdh = createECDH("prime256v1");
  const p256dh = ecdh.generateKeys("base64url");
  const auth = randomBytes(16).toString("base64url");
  return { endpoint: `${service.base}${path}`, keys: { p256dh, auth } };
}

/** Runs the guide's lines in a browser that has this device. */
async function subscribeAsInGuide(device: PushDevice): Promise<void> {
  const guide = await readFile(new URL("../../docs/guides/wallet.md", import.meta.url), "utf8");
  const blocks = [...guide.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
  const lines = blocks.find((block) => block.includes("pushManager")) ?? "";
  const program = `export default async ({ wallet, broker, registration }) => {${lines}}`;
  const { default: run } = (await import(
    `data:text/javascript,${encodeURIComponent(program)}`
  )) as { default: (page: object) => Promise<void> };
  const subscribe = async (options: { applicationServerKey: string }) => {
    assert.equal(Buffer.from(options.applicationServerKey, "base64url").length, 65);
    return { toJSON: () => ({ ...device, expirationTime: null }) };
  };
  await run({ wallet, broker: baseUrl, registration: { pushManager: { subscribe } } });
}

let proposed = 0;
const propose = async (
  rule: "data_requests" | "signature_requests",
  options?: { voters: readonly string[] },
): Promise<string> => {
  const { members: own } = (await world.businessOf("alice")) as { members: object[] };
  // The same proposal by the same member would be answered with the one that is open.
  proposed += 1;
  const members = own.map((each) => Object.assign(each, { name: `Member ${proposed}` }));
  const majority = "MAJORITY";
  const rules = { signature_requests: majority, data_requests: majority, governance: majority };
  Object.assign(rules, { [rule]: "UNANIMOUS" });
  return world.govern("alice", { operation: "changeCharter", members, rules }, options);
};

await test("a device hears of a vote once, until its wallet has it told no more", async () => {
  const [phone, laptop] = [newDevice("/phone"), newDevice("/laptop")];
  await subscribeAsInGuide(phone);
  await wallet.subscribePush(baseUrl, laptop);
  await propose("data_requests");
  await world.until("both are told", async () => (service.told.length >= 2 ? true : null));
  assert.deepEqual(service.told.splice(0).toSorted(), ["/laptop", "/phone"]);
  assert.equal((await wallet.inbox()).length, 1);
  await wallet.unsubscribePush(baseUrl, phone.endpoint);
  await propose("signature_requests");
  await world.until("one is told", async () => (service.told.length >= 1 ? true : null));
  assert.deepEqual(service.told, ["/laptop"]);
  await wallet.unsubscribePush(baseUrl);
});

await test("a member who was told and voted hears of a vote that begins anew, be it in the same epoch", async () => {
  const { ctx } = world;
  await wallet.subscribePush(baseUrl, newDevice("/tablet"));
  const id = await propose("data_requests", { voters: [] });
  await world.until("it is told", async () => (service.told.includes("/tablet") ? true : null));
  assert.equal((await world.voteAs("carol", id)).body["status"], "open");
  service.told.splice(0);
  await ctx.db.transaction(async (tx) => {
    const locked = await lockBallot(tx, id);
    assert.ok(locked !== null);
    await restartBallot(tx, locked.ballot);
  });
  await world.until("it is told again", async () => (service.told.length >= 1 ? true : null));
  assert.deepEqual(service.told, ["/tablet"]);
  await wallet.unsubscribePush(baseUrl);
});

await test("a wallet subscribes at brokers on its list alone, and with what a browser has", async () => {
  await assert.rejects(wallet.pushKey("https://broker.example"), WalletRefusal);
  const device = newDevice("/x");
  await assert.rejects(wallet.subscribePush("https://broker.example", device), WalletRefusal);
  const keys = { ...device.keys, auth: "AAAA" };
  await assert.rejects(wallet.subscribePush(baseUrl, { ...device, keys }), /invalid_request/);
});
