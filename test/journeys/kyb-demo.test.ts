// The demo business, driven from outside: its people by the wallet's command line, the shop by its pages, and
// verifiers that know nothing of either.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { type Address, createPublicClient, type Hex, http } from "viem";
import { runWithCode } from "../command-line-wallet.ts";
import { type DemoWorld, openDemoWorld, visit, type Visitor } from "../demo-world.ts";
import { until } from "../patience.ts";
import { root } from "../transcript.ts";

interface DemoFile {
  readonly baseUrl: string;
  readonly chain: { readonly rpcUrl: string; readonly chainId: number };
  readonly business: { readonly address: Address; readonly name: string };
}

/** Also of the shop: a test looks into its account, to see what it paid. */
interface ShopFile {
  readonly apiKey: string;
  readonly clientDomainId: string;
}

let demo: DemoWorld;
let world: DemoFile;
let shop: ShopFile;
let visitor: Visitor;

before(async () => {
  demo = await openDemoWorld();
  const read = (name: string): unknown =>
    JSON.parse(readFileSync(join(demo.environment["DATA_DIR"] ?? "", name), "utf8"));
  world = read("demo.json") as DemoFile;
  shop = read("shop.json") as ShopFile;
});
after(async () => demo[Symbol.asyncDispose]());

interface Ran {
  readonly status: number;
  readonly value: Record<string, unknown>;
  readonly line: string;
}

/** `npm run wallet -- <args> --as <name>` */
async function wallet(name: string, ...args: string[]): Promise<Ran> {
  const program = join(root, "packages/wallet/src/cli.ts");
  const child = spawn(process.execPath, ["--conditions=source", program, ...args, "--as", name], {
    env: { ...process.env, ...demo.environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, line, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close") as Promise<[number]>,
  ]);
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

/** The page of the company, once its section says so. */
async function untilSays(section: string, status: string): Promise<string> {
  return until(`${section} is ${status}`, async () => {
    const page = await visitor.open("/company");
    return page.includes(`id="${section}" data-status="${status}"`) ? page : null;
  });
}

async function ask(path: string): Promise<Record<string, unknown>> {
  const answer = await fetch(`${world.baseUrl}/api/v1/kyb/${path}`, {
    headers: { authorization: shop.apiKey },
  });
  const body = (await answer.json()) as Record<string, unknown>;
  assert.equal(answer.status, 200, JSON.stringify(body));
  return body;
}

const available = async (): Promise<number> =>
  Number((await ask("billing/account"))["availableChf"]);

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
