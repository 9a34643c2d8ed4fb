// The demo world over starts: one that was killed, and one with another port.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, watch } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { lockDirectory } from "../../service/src/platform/process/directory-lock.ts";
import { startAnvil } from "../anvil.ts";
import { type DemoPlace, openDemoPlace, spawnDemo, startDemo, visit } from "../demo-world.ts";
import { fundedKey } from "../chain-processes.ts";
import { root, run } from "../transcript.ts";
import { freePort } from "../world.ts";

interface DemoFile {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly organization: { readonly id: string };
  readonly identities: Readonly<Record<string, { readonly address: string }>>;
  readonly business: {
    readonly address: string;
    readonly name: string;
    readonly members: readonly { name: string; address: string }[];
  };
}

const readFile = (place: DemoPlace, name: string): unknown =>
  JSON.parse(readFileSync(join(place.environment.DATA_DIR, name), "utf8"));

async function ask(path: string, apiKey: string): Promise<Record<string, unknown>> {
  const answer = await fetch(path, { headers: { authorization: apiKey } });
  assert.equal(answer.status, 200, path);
  return (await answer.json()) as Record<string, unknown>;
}

/** Of the demo world that the first test seeds and the last starts again. */
let place: DemoPlace;
before(async () => {
  place = await openDemoPlace();
});
after(async () => place[Symbol.asyncDispose]());

test("a start that is killed while it seeds is taken up by the next, with the same people", async () => {
  const directory = place.environment.DATA_DIR;
  const watcher = watch(directory);
  const killed = spawnDemo(place.environment);
  while (!existsSync(join(directory, "demo-begun.json"))) await once(watcher, "change");
  watcher.close();
  killed.kill("SIGKILL");
  await once(killed, "exit");
  const begun = readFile(place, "demo-begun.json") as Omit<DemoFile, "business">;
  assert.ok(!existsSync(join(directory, "demo.json")));

  await using demo = await startDemo(place.environment);
  const world = readFile(place, "demo.json") as DemoFile;
  assert.ok(!existsSync(join(directory, "demo-begun.json")));
  assert.deepEqual(world.identities, begun.identities);
  assert.deepEqual(world.organization, begun.organization);
  const { address, members } = world.business;
  for (const { name, address: member } of members)
    assert.equal(member, world.identities[name]?.address);
  const path = `${demo.baseUrl}/api/v1/kyb`;
  assert.equal((await ask(`${path}/status/${address}`, world.apiKey))["verified"], true);
  const account = await ask(`${path}/billing/account`, world.apiKey);
  assert.deepEqual([account["totalChf"], account["availableChf"]], [500, 500]);
});

test("a second start on the same directory is refused in one line, also with a database from outside", async () => {
  await using other = await openDemoPlace();
  const directory = other.environment.DATA_DIR;
  const lock = lockDirectory(directory);
  const start = ["--conditions=source", join(root, "demo/start.ts")];
  await assert.rejects(
    promisify(execFile)(process.execPath, start, { env: { ...process.env, ...other.environment } }),
    {
      code: 1,
      stdout: "",
      stderr: `another process already runs in ${directory}; stop it first, or choose another DATA_DIR\n`,
    },
  );
  assert.ok(readdirSync(directory).every((name) => name.startsWith("lock")));
  lock?.release();
});

test("a chain from outside has no faucet, and everything of the demo world is there all the same", async () => {
  await using anvil = await startAnvil();
  await using other = await openDemoPlace();
  const outside = { CHAIN_RPC_URL: anvil.url, SIGNER_KEY: fundedKey, CONFIRMATIONS: "1" };
  await using demo = await startDemo({ ...other.environment, ...outside });
  const { apiKey, business } = readFile(other, "demo.json") as DemoFile;
  const status = `${demo.baseUrl}/api/v1/kyb/status/${business.address}`;
  assert.equal((await ask(status, apiKey))["verified"], true);
});

test("with another port the shop moves along, and everything else stays as it was", async () => {
  const seeded = readFile(place, "demo.json") as DemoFile;
  const account = readFile(place, "shop.json") as { apiKey: string; clientDomainId: string };

  const PORT = String(await freePort());
  await using demo = await startDemo({ ...place.environment, PORT, LOG_LEVEL: "info" });
  const { shopUrl, baseUrl } = demo;
  const [ready, ...earlier] = demo.output.split("\n").toReversed();
  assert.equal(ready, `ready ${baseUrl}`, "the last line, also after what the start logged");
  assert.ok(earlier.some((line) => line.includes('"PUT","route":"/api/v1/kyb/webhook-endpoint"')));
  const now = readFile(place, "demo.json") as DemoFile;
  assert.equal(now.baseUrl, baseUrl);
  assert.deepEqual(now.business, seeded.business);
  assert.deepEqual(now.identities, seeded.identities);
  const endpoint = await ask(`${baseUrl}/api/v1/kyb/webhook-endpoint`, account.apiKey);
  assert.equal(endpoint["url"], `${shopUrl}/webhooks/kyb`);
  const visitor = await visit(demo);
  assert.ok(visitor.link.startsWith("svc:login?"));
  const show = `npm run -s svc -- domain show ${account.clientDomainId} --json`;
  const stdout = await run(show, demo.environment);
  const { domain } = JSON.parse(stdout) as { domain: string };
  assert.equal(domain, new URL(shopUrl).host);
});
