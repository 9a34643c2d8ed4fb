// From the operator's command line to a field that a merchant sees: issuer, document, wallet, merchant.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, watch } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createApiKey, isAcquainted } from "../../service/src/accounts/index.ts";
import { getBuiltInIssuer } from "../../service/src/credentials/index.ts";
import { settleWithoutChain } from "../../service/src/credentials/test-credentials.ts";
import { runVerb } from "../operator-verbs.ts";
import { type Answer, send } from "../kyb-world.ts";
import { approveByQr, openPage } from "../login-flow.ts";
import {
  claim,
  type Identity,
  newIdentity,
  openWalletSession,
  sameDeviceReturn,
  scan,
} from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
let apiKey: string;
before(async () => {
  world = await openWorld({ DATA_DIR: await mkdtemp(join(tmpdir(), "svc-fields-")) });
  const { key } = await createApiKey(
    world.ctx,
    { clientDomainId: world.clientDomainId, name: "backend" },
    "test",
  );
  apiKey = key;
});
after(async () => {
  await world[Symbol.asyncDispose]();
  await rm(world.ctx.config.dataDirectory, { recursive: true, force: true });
});

async function svc(...args: string[]): Promise<Record<string, unknown>> {
  const [status, said] = await runVerb(world, args, { CHAIN: "off" });
  assert.equal(status, 0, said);
  return JSON.parse(said) as Record<string, unknown>;
}

async function call(
  method: "GET" | "POST",
  path: string,
  { headers, body }: { headers: Record<string, string>; body?: unknown },
): Promise<Answer> {
  return send(`${world.baseUrl}${path}`, { method, headers, body });
}

async function verified(user: string, item: string): Promise<unknown> {
  const path = `/api/v1/blockchain/verified?user=${user}&items=${item}`;
  const { body } = await call("GET", path, { headers: { authorization: apiKey } });
  return body["data"];
}

test("an operator opens an issuer, it issues, the wallet collects, a merchant sees the field; then it is distrusted", async () => {
  const issuer = await svc("issuer", "create", "--name", "Ident AG", "--environment", "live");
  const id = String(issuer["id"]);
  const key = await svc("issuer", "key", "create", "--issuer", id, "--name", "backend");
  const identity = newIdentity();
  const issued = await call("POST", "/api/v1/issuer/credentials", {
    headers: { authorization: String(key["key"]), "idempotency-key": "1" },
    body: {
      user: identity.address,
      document: "IDCARD",
      fields: [{ field: "IDCARD_DOB", data: "1990-05-17" }],
      expiresAt: world.ctx.clock.now() + 86_400 * 365,
    },
  });
  assert.equal(issued.status, 201);
  await settleWithoutChain(world.ctx);
  const bearer = await openWalletSession(world.baseUrl, identity);
  const listed = await call("GET", "/w/credentials", { headers: bearer });
  const [item] = listed.body["items"] as { id: string; status: string; fields: object[] }[];
  assert.equal(item?.status, "live");
  const collected = await call("POST", `/w/credentials/${item.id}/collected`, {
    headers: bearer,
    body: {},
  });
  assert.equal(collected.status, 204);
  assert.deepEqual(await verified(identity.address, "DOB_PARENT_FIELD"), {
    verifiedItems: ["DOB_PARENT_FIELD"],
  });
  assert.deepEqual(await verified(identity.address, "AGE_OVER_18"), {
    verifiedItems: ["AGE_OVER_18"],
  });
  await svc("issuer", "distrust", id, "--from", "1");
  assert.deepEqual(await verified(identity.address, "AGE_OVER_18"), {
    unVerifiedItems: ["AGE_OVER_18"],
  });
});

/** @yields what the running service writes there, as soon as it is whole */
async function* messagesIn(directory: string): AsyncGenerator<string, undefined> {
  for await (const { filename } of watch(directory)) {
    const content = await readFile(join(directory, filename ?? ""), "utf8");
    if (content.endsWith("\n")) yield content;
  }
  return undefined;
}

/** Has a code mailed, and reads it. @returns a function that sends it back */
async function startVerification(identity: Identity, email: string) {
  const headers = await openWalletSession(world.baseUrl, identity);
  const directory = join(world.ctx.config.dataDirectory, "mail");
  await mkdir(directory, { mode: 0o700, recursive: true });
  const messages = messagesIn(directory);
  const first = messages.next();
  const started = await call("POST", "/w/emails", { headers, body: { email } });
  assert.equal(started.status, 202);
  const message = (await first).value ?? assert.fail("no message came");
  await messages.return(undefined);
  assert.ok(message.split(/\r?\n/).includes(`To: ${email}`));
  const code = /: (\d{6})$/m.exec(message)?.[1];
  const path = `/w/emails/${String(started.body["verificationId"])}`;
  return async () => call("POST", path, { headers, body: { code } });
}

test("a wallet verifies an address by the code of the message", async () => {
  const identity = newIdentity();
  const finish = await startVerification(identity, "journey@example.com");
  assert.equal((await finish()).status, 200);
  await settleWithoutChain(world.ctx);
  assert.deepEqual(await verified(identity.address, "EMAIL"), { verifiedItems: ["EMAIL"] });
});

test("an organization is acquainted with those who approved a login to it, and with nobody else", async () => {
  const known = async (user: `0x${string}`): Promise<boolean> =>
    isAcquainted(world.ctx.db, world.organizationId, user);
  const [claiming, direct] = [newIdentity(), newIdentity()];
  const page = await openPage(world.baseUrl, world.client);
  await claim(scan(page.qr), claiming);
  assert.equal(await known(claiming.address), false);
  for (let login = 0; login < 2; login += 1) {
    await approveByQr(world.baseUrl, await openPage(world.baseUrl, world.client), claiming);
    assert.equal(await known(claiming.address), true);
  }
  const { jar, sameDevice } = await openPage(world.baseUrl, world.client);
  assert.equal((await jar.fetch(sameDeviceReturn(scan(sameDevice), direct))).status, 303);
  assert.equal(await known(direct.address), true);
  assert.equal(await known(newIdentity().address), false);
});

test("once the service's own issuer is distrusted a code verifies nothing and none is sent, as the document of the API says", async () => {
  const { id } = await getBuiltInIssuer(world.ctx, "email", "live");
  const user = newIdentity();
  const finish = await startVerification(user, "late@example.com");
  await svc("issuer", "distrust", id, "--from", String(world.ctx.clock.now()));
  const headers = await openWalletSession(world.baseUrl, user);
  const body = { email: "later@example.com" };
  for (const { status, body: answer } of [
    await finish(),
    await call("POST", "/w/emails", { headers, body }),
  ]) {
    const { reason } = answer["error"] as { reason: string };
    assert.deepEqual([status, reason], [403, "issuer_distrusted"]);
  }
  const other = await call("POST", "/w/emails", {
    headers,
    body: { ...body, environment: "sandbox" },
  });
  assert.equal(other.status, 202);
  const described = (await (await fetch(`${world.baseUrl}/openapi.json`)).json()) as {
    paths: Record<string, { post: { responses: Record<string, object> } }>;
  };
  for (const path of ["/w/emails", "/w/emails/{id}"]) {
    const { responses } = described.paths[path]?.post ?? assert.fail();
    assert.match(JSON.stringify(responses["403"]), /issuer_distrusted/);
  }
});
