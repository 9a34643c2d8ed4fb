// The demo world, driven from outside: its people and its business by the wallet's command line, the shop by its pages, a
// merchant with its key, and verifiers that know nothing of them; over three starts, of which the first is killed and the
// last has another port.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, statSync, watch, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import {
  applyEvent,
  openKyc,
  type OrderState,
  standingInfos,
  verifyReceipt,
  verifyWebhook,
} from "@svc/merchant";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { type Address, createPublicClient, type Hex, http } from "viem";
import { callWallet } from "../../packages/wallet/test/call-wallet.ts";
import { runWithCode } from "../command-line-wallet.ts";
import {
  type DemoPlace,
  type DemoWorld,
  openDemoPlace,
  spawnDemo,
  startDemo,
  visit,
  type Visitor,
} from "../demo-world.ts";
import { until } from "../patience.ts";
import { run } from "../transcript.ts";
import { freePort } from "../world.ts";

interface DemoFile {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly chain: {
    readonly rpcUrl: string;
    readonly chainId: number;
    readonly contracts: { readonly registry: string; readonly settlement: string };
  };
  readonly packages: readonly { sourceKey: string; signingKey: string; fields?: string[] }[];
  readonly organization: { readonly id: string };
  readonly identities: { readonly alice: { readonly address: Address } };
  readonly business: {
    readonly address: Address;
    readonly name: string;
    readonly members: readonly { name: keyof DemoFile["identities"]; address: Address }[];
  };
}

/** The shop's secrets, with which a test reads what the shop has paid. */
interface ShopFile {
  readonly apiKey: string;
  readonly clientDomainId: string;
}

let place: DemoPlace;
let demo: DemoWorld;
let world: DemoFile;
let shop: ShopFile;
let visitor: Visitor;

const closing = new AsyncDisposableStack();
before(async () => {
  place = closing.use(await openDemoPlace());
});
after(async () => closing.disposeAsync());

const readFile = (name: string): unknown =>
  JSON.parse(readFileSync(join(place.environment.DATA_DIR, name), "utf8"));

interface Ran {
  readonly status: number | null;
  readonly value: Record<string, unknown>;
  readonly line: string;
}

/** `npm run wallet -- <args> --as <name>` */
async function wallet(name: string, ...args: string[]): Promise<Ran> {
  const { DATA_DIR: directory } = place.environment;
  const { status, out, err: line } = await callWallet([...args, "--as", name], directory);
  return { status, line, value: (out === "" ? {} : JSON.parse(out)) as Ran["value"] };
}

interface Vote {
  readonly id: string;
  readonly kind: string;
  readonly business: { readonly address: Address };
  readonly fields?: readonly { name: string }[] | readonly string[];
  readonly message?: string;
}

/** Approves the only vote of this kind that waits in the person's inbox. */
async function approve(name: string, kind: string): Promise<Vote> {
  const { value } = await wallet(name, "inbox");
  const [vote, other] = (value["votes"] as Vote[]).filter((each) => each.kind === kind);
  assert.ok(vote !== undefined && other === undefined, JSON.stringify(value));
  assert.equal(vote.business.address, world.business.address);
  const voted = await wallet(name, "vote", vote.id, "--approve");
  assert.equal(voted.status, 0, voted.line);
  return vote;
}

/** Waits until a section of the company page has this status. @returns the page */
async function untilSays(section: string, status: string): Promise<string> {
  return until(`${section} is ${status}`, async () => {
    const page = await visitor.open("/company");
    return page.includes(`id="${section}" data-status="${status}"`) ? page : null;
  });
}

/** Calls the KYB API with the shop's key, or another. */
async function ask(
  path: string,
  { apiKey = shop.apiKey, baseUrl = world.baseUrl } = {},
): Promise<Record<string, unknown>> {
  const answer = await fetch(`${baseUrl}/api/v1/kyb/${path}`, {
    headers: { authorization: apiKey },
  });
  const body = (await answer.json()) as Record<string, unknown>;
  assert.equal(answer.status, 200, JSON.stringify(body));
  return body;
}

const available = async (): Promise<number> =>
  Number((await ask("billing/account"))["availableChf"]);

test("a start that is killed while it seeds is taken up by the next, with the same people", async () => {
  const directory = place.environment.DATA_DIR;
  const watcher = watch(directory);
  const killed = spawnDemo(place.environment);
  const ended = once(killed, "exit");
  while (!existsSync(join(directory, "demo-begun.json"))) {
    await Promise.race([once(watcher, "change"), ended]);
    assert.equal(killed.exitCode, null, "it runs until it is killed");
  }
  watcher.close();
  killed.kill("SIGKILL");
  await ended;
  const begun = readFile("demo-begun.json") as Omit<DemoFile, "business">;
  assert.ok(!existsSync(join(directory, "demo.json")));

  demo = closing.use(await startDemo(place.environment));
  world = readFile("demo.json") as DemoFile;
  shop = readFile("shop.json") as ShopFile;
  assert.ok(!existsSync(join(directory, "demo-begun.json")));
  for (const name of ["demo.json", "shop.json"])
    assert.equal(statSync(join(directory, name)).mode & 0o777, 0o600, "its keys are its owner's");
  assert.deepEqual(world.identities, begun.identities);
  assert.deepEqual(world.organization, begun.organization);
  const { address, members } = world.business;
  for (const { name, address: member } of members)
    assert.equal(member, world.identities[name].address);
  const { apiKey } = world;
  assert.equal((await ask(`status/${address}`, { apiKey }))["verified"], true);
  const account = await ask("billing/account", { apiKey });
  assert.deepEqual([account["totalChf"], account["availableChf"]], [500, 500]);
  const { received, items } = (await wallet("alice", "receive")).value;
  const held = (items as { document: string }[]).map(({ document }) => document).toSorted();
  assert.deepEqual([received, held], [[], ["ADDRESS", "CONTACT", "IDCARD"]], "collected already");
});

test("alice logs in to the shop for the business, and bob's vote completes it", async () => {
  visitor = await visit(demo, "/company/login");
  const asked = await runWithCode(
    async () => visitor.link,
    async (link) => wallet("alice", "approve", link),
  );
  assert.deepEqual([asked.status, asked.value["status"]], [2, "code_required"]);
  const { address, name } = world.business;
  const code = await visitor.digits();
  const sent = await wallet("alice", "approve", asked.link, "--code", code, "--business", address);
  assert.equal(sent.status, 0, sent.line);
  await approve("bob", "business_login");
  const home = await visitor.goOn();
  assert.ok(home.includes(`Welcome, ${name}.`), home);
  const page = await visitor.open("/company");
  assert.ok(page.includes(name) && page.includes(address), page);
});

test("the shop asks for data, two members vote, and it pays for exactly what it got", async () => {
  const funds = await available();
  await visitor.press("/company/register");
  await approve("bob", "data_request");
  const { id } = await approve("carol", "data_request");
  const page = await untilSays("registration", "released");
  for (const shown of ["CHE-123.456.788", "Alice Example", "Bob Beispiel", "Carol Esempio"])
    assert.ok(page.includes(shown), shown);

  const { attestation } = await ask(`data-requests/${id}/release`);
  const keys = createRemoteJWKSet(new URL(`${world.baseUrl}/.well-known/kyb-jwks.json`));
  const { payload } = await jwtVerify(String(attestation), keys, {
    typ: "kyb-attestation+jwt",
    algorithms: ["RS256"],
    issuer: `${world.baseUrl}/kyb`,
    audience: shop.clientDomainId,
  });
  const released = payload["fields"] as { name: string; value: string }[];
  const names = [...new Set(released.map((field) => field.name))].toSorted();
  assert.deepEqual(names, [
    "BUSINESS_DIRECTOR_NAME",
    "BUSINESS_LEGAL_NAME",
    "BUSINESS_REGISTRATION_NUMBER",
  ]);
  const charges = (await ask("billing/charges"))["items"] as {
    requestId: string;
    totalCents: number;
    lines: { field: string; cents: number }[];
  }[];
  const [charge] = charges;
  assert.equal(charges.length, 1);
  assert.equal(charge?.requestId, id);
  assert.deepEqual(charge.lines.map(({ field }) => field).toSorted(), names);
  const sum = charge.lines.reduce((total, { cents }) => total + cents, 0);
  assert.equal(charge.totalCents, sum);
  assert.equal(Math.round((funds - (await available())) * 100), sum);
});

test("the shop has its terms signed, and a verifier that knows the chain alone accepts it", async () => {
  await visitor.press("/company/terms");
  const { message = "" } = await approve("alice", "signature_request");
  assert.match(message, /^Terms of Corner Coffee/);
  const { id } = await approve("carol", "signature_request");
  const page = await untilSays("terms", "signed");
  const { signature, transactionHash } = await ask(`signature-requests/${id}/signature`);
  assert.ok(page.includes(String(transactionHash)), page);

  const chain = createPublicClient({ transport: http(world.chain.rpcUrl) });
  assert.equal(await chain.getChainId(), world.chain.chainId);
  const { address } = world.business;
  const claim = { address, signature: signature as Hex };
  assert.equal(await chain.verifyMessage({ ...claim, message }), true);
  assert.equal(await chain.verifyMessage({ ...claim, message: `${message} ` }), false);
});

test("alice shares date of birth and e-mail without the city, and the merchant proves it by the chain alone", async () => {
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
  const shown = await wallet("alice", "show", asked.link);
  assert.match(String(shown.value["words"]), /Optional: ADDRESS_CITY: "Zürich"/);
  const sent = await wallet("alice", "approve", asked.link, "--without", "ADDRESS_CITY");
  assert.deepEqual([sent.status, sent.value["status"]], [0, 200], sent.line);
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
    // A merchant knows operator and issuers from the operator's documents; here they are taken from the receipt.
    operator: receipt.initiate.operator,
    issuers: receipt.fields.map(({ issuer }) => issuer),
    now: Math.floor(Date.now() / 1000),
    user,
    infos,
  });
  assert.equal(verified.user, user);
  assert.ok(verified.proved.some(({ fact }) => fact === "confirmed"));
  // The person who shared has the same receipt, and nobody else.
  const own = await wallet("alice", "receipt", asked.referenceKey);
  assert.deepEqual([own.status, own.value], [0, receipt], own.line);
});

/** The number of alice's credentials, and the merchant's money for requests to businesses. */
async function countMade(environment: NodeJS.ProcessEnv, baseUrl: string): Promise<unknown[]> {
  const { alice } = world.identities;
  const stdout = await run(`npm run -s svc -- user show ${alice.address} --json`, environment);
  const { credentials } = JSON.parse(stdout) as { credentials: object[] };
  const account = await ask("billing/account", { apiKey: world.apiKey, baseUrl });
  return [credentials.length, account["totalChf"]];
}

test("with another port the shop moves along, and nothing is made twice although the start seems to have been killed at its last step", async () => {
  const made = await countMade(demo.environment, world.baseUrl);
  await demo[Symbol.asyncDispose]();
  const { business, ...begun } = readFile("demo.json") as DemoFile;
  const directory = place.environment.DATA_DIR;
  writeFileSync(join(directory, "demo-begun.json"), JSON.stringify(begun));
  rmSync(join(directory, "demo.json"));
  const PORT = String(await freePort());
  await using moved = await startDemo({ ...place.environment, PORT, LOG_LEVEL: "info" });
  const { shopUrl, baseUrl } = moved;
  const [ready, ...earlier] = moved.output.split("\n").toReversed();
  assert.equal(ready, `ready ${baseUrl}`, "the last line, also after what the start logged");
  assert.ok(earlier.some((line) => line.includes('"PUT","route":"/api/v1/kyb/webhook-endpoint"')));
  const now = readFile("demo.json") as DemoFile;
  assert.equal(now.baseUrl, baseUrl);
  assert.deepEqual(now.business, business);
  assert.deepEqual(now.identities, world.identities);
  assert.deepEqual(await countMade(moved.environment, baseUrl), made);
  const endpoint = await ask("webhook-endpoint", { baseUrl });
  assert.equal(endpoint["url"], `${shopUrl}/webhooks/kyb`);
  const { link } = await visit(moved);
  assert.ok(link.startsWith("svc:login?"));
  const show = `npm run -s svc -- domain show ${shop.clientDomainId} --json`;
  const stdout = await run(show, moved.environment);
  const { domain } = JSON.parse(stdout) as { domain: string };
  assert.equal(domain, new URL(shopUrl).host);
});
