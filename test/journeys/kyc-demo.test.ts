// The demo world, driven from outside: a merchant with its key, and alice with the wallet's command line.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { test } from "node:test";
import {
  applyEvent,
  openKyc,
  type OrderState,
  standingInfos,
  verifyReceipt,
  verifyWebhook,
} from "@svc/merchant";
import { openDemoWorld } from "../demo-world.ts";
import { until } from "../patience.ts";
import { root } from "../transcript.ts";

interface DemoFile {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly chain: {
    readonly rpcUrl: string;
    readonly chainId: number;
    readonly contracts: { readonly registry: string; readonly settlement: string };
  };
  readonly packages: readonly { sourceKey: string; signingKey: string; fields?: string[] }[];
  readonly identities: { readonly alice: { readonly address: `0x${string}` } };
}

async function wallet(environment: NodeJS.ProcessEnv, ...args: string[]): Promise<unknown> {
  const program = join(root, "packages/wallet/src/cli.ts");
  const child = spawn(
    process.execPath,
    ["--conditions=source", program, ...args, "--as", "alice"],
    {
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const [out, line, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close") as Promise<[number]>,
  ]);
  assert.equal(status, 0, line);
  return JSON.parse(out);
}

test("alice shares date of birth and e-mail without the city, and the merchant proves it by the chain alone", async () => {
  await using demo = await openDemoWorld();
  const directory = demo.environment["DATA_DIR"] ?? "";
  const world = JSON.parse(readFileSync(join(directory, "demo.json"), "utf8")) as DemoFile;
  const [, dynamic] = world.packages;
  assert.ok(dynamic !== undefined && dynamic.fields === undefined);
  const { apiKey } = world;
  const { address: user } = world.identities.alice;
  const kyc = openKyc({ issuer: world.baseUrl, apiKey });
  let state: OrderState | null = null;
  const seen: string[] = [];
  const receive = async (request: IncomingMessage): Promise<void> => {
    const rawBody = await buffer(request);
    const now = Math.floor(Date.now() / 1000);
    const signingKeys = [dynamic.signingKey];
    const event = verifyWebhook({ headers: request.headers, rawBody, signingKeys, now });
    assert.ok(event.event !== "unknown");
    state = applyEvent(state, event);
    seen.push(event.event === "status.updated" ? event.status : event.event);
  };
  const server = createServer((request, response) => {
    receive(request).then(
      () => response.end(),
      () => response.writeHead(500).end(),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const callback = `http://localhost:${(server.address() as AddressInfo).port}/hook`;

  const asked = await kyc.requestData({
    user,
    sourceKey: dynamic.sourceKey,
    callback,
    expiration: Math.floor(Date.now() / 1000) + 600,
    fields: ["IDCARD_DOB", "EMAIL"],
    optionalFields: ["ADDRESS_CITY"],
  });
  const shown = (await wallet(demo.environment, "show", asked.link)) as { words: string };
  assert.match(shown.words, /Optional: ADDRESS_CITY: "Zürich"/);
  const sent = (await wallet(
    demo.environment,
    "approve",
    asked.link,
    "--without",
    "ADDRESS_CITY",
  )) as { status: number };
  assert.equal(sent.status, 200);
  await until("it is confirmed", async () => (seen.includes("CONFIRMED") ? true : null));
  server.close();
  assert.deepEqual(seen, [
    "PENDING",
    "INITIATING",
    "INITIATED",
    "CONFIRMING",
    "data.transferred",
    "CONFIRMED",
  ]);

  assert.ok(state !== null);
  const infos = standingInfos(state);
  assert.deepEqual(infos.map(({ field }) => field).toSorted(), ["EMAIL", "IDCARD_DOB"]);
  const validity = await kyc.valid({ user, infos });
  assert.equal(validity.valid.length, 2);
  const receipt = await kyc.receipt(asked.referenceKey);
  const verified = await verifyReceipt(receipt, {
    rpcUrl: world.chain.rpcUrl,
    chainId: world.chain.chainId,
    ...world.chain.contracts,
    // What the operator's documents name; here the receipt is asked, and everything else is checked against the chain.
    operator: receipt.initiate.operator,
    issuers: receipt.fields.map(({ issuer }) => issuer),
    now: Math.floor(Date.now() / 1000),
    user,
    infos,
  });
  assert.equal(verified.user, user);
  assert.ok(verified.proved.some(({ fact }) => fact === "confirmed"));
  // The person who shared has the same receipt, and nobody else.
  assert.deepEqual(await wallet(demo.environment, "receipt", asked.referenceKey), receipt);
});
