// A merchant asks, a person decides in the wallet: over the real service, from the QR code's text to the order's status.
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStorage, type Wallet } from "@svc/wallet";
import { buyPackage, createApiKey } from "../../service/src/accounts/index.ts";
import { getBuiltInIssuer, issueCredential } from "../../service/src/credentials/index.ts";
import { purgeTokens } from "../../service/src/kyc/orders.ts";
import { settleWithoutChain } from "../../service/src/credentials/test-credentials.ts";
import { scanRequest } from "../kyc-world.ts";
import { untilWritersEnd } from "../lock-waits.ts";
import { type Identity, newIdentity, openWalletSession } from "../raw-wallet.ts";
import { openWalletAt } from "../wallet-at.ts";
import { openWorld } from "../world.ts";

await using world = await openWorld();
const { ctx, clientDomainId } = world;
const { key } = await createApiKey(ctx, { clientDomainId, name: "backend" }, "test");
const { kycPackage } = await buyPackage(
  ctx,
  { clientDomainId, name: "Dynamic", fields: null, transfers: 100, priceRappen: 0n },
  "test",
);

interface Person extends Identity {
  readonly wallet: Wallet;
}

type Options = Parameters<typeof openWalletAt>[1];

async function openPerson(options: Options): Promise<Person> {
  const own = newIdentity();
  const { wallet } = await openWalletAt(world, { privateKey: own.privateKey, ...options });
  return { wallet, ...own };
}

async function openVerifiedPerson(options: Options = {}): Promise<Person> {
  const person = await openPerson(options);
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  for (const [document, field, data] of [
    ["IDCARD", "IDCARD_DOB", "1990-02-03"],
    ["CONTACT", "EMAIL", "alice@example.com"],
    ["ADDRESS", "ADDRESS_CITY", "Bern"],
  ] as const) {
    const expiresAt = ctx.clock.now() + 365 * 86_400;
    const fields = [{ field, data }];
    await issueCredential(ctx, issuer, { user: person.address, document, fields, expiresAt });
  }
  await settleWithoutChain(ctx);
  return person;
}

type Data = Record<string, string>;

async function ask(path: string, body?: object): Promise<{ status: number; data: Data }> {
  const answer = await fetch(`${world.baseUrl}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: key, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const { data } = (await answer.json()) as { data?: Data };
  return { status: answer.status, data: data ?? {} };
}

async function order(user: string, more: object = {}): Promise<Data> {
  const { status, data } = await ask("/api/v2/kyc/qrcode", {
    user,
    sourceKey: kycPackage.sourceKey,
    callback: "http://localhost:4999/hook",
    expiration: ctx.clock.now() + 600,
    fields: ["IDCARD_DOB", "EMAIL"],
    optionalFields: ["ADDRESS_CITY"],
    purpose: "To check your age.",
    ...more,
  });
  assert.equal(status, 200);
  return data;
}

const statusOf = async (referenceKey = ""): Promise<Data> =>
  (await ask(`/api/v2/kyc/status?referenceKey=${referenceKey}`)).data;

await test("a person approves without the city, and the order is on its way", async () => {
  const { wallet, address } = await openVerifiedPerson();
  const { link = "", referenceKey } = await order(address);
  const { words, requester, concerns } = await wallet.describe(link);
  const text = words.join("\n");
  assert.match(text, /\(localhost, verified by localhost/);
  assert.match(text, /The reason given: "To check your age\."/);
  assert.match(text, /Required: IDCARD_DOB: "1990-02-03"/);
  assert.match(text, /Optional: ADDRESS_CITY: "Bern"/);
  assert.deepEqual([requester.known, concerns], [true, []]);
  assert.equal((await statusOf(referenceKey))["status"], "PENDING");
  const outcome = await wallet.approve(link, { without: ["ADDRESS_CITY"] });
  assert.ok(outcome.kind === "delivered");
  assert.deepEqual([outcome.status, outcome.answer["status"]], [200, "INITIATING"]);
  assert.equal((await statusOf(referenceKey))["status"], "INITIATING");
  await assert.rejects(wallet.receipt(referenceKey ?? ""), /there is no receipt/);
  const [entry] = await wallet.history();
  assert.deepEqual([entry?.id, entry?.withheld], [referenceKey, ["ADDRESS_CITY"]]);
  // As after a lost answer: the link leads to no other request.
  await assert.rejects(wallet.approve(link), /this request was approved already/);
  await assert.rejects(wallet.decline(link), /this request was approved already/);
});

await test("a wallet that was killed while it waited learns at its next occasion what was taken, and nothing else", async () => {
  const storage = memoryStorage();
  const person = await openVerifiedPerson({ storage });
  const open = async (send = fetch) =>
    (await openWalletAt(world, { ...person, storage, fetch: send })).wallet;
  const dieApproving = async (field: string, { isSent }: { isSent: boolean }): Promise<string> => {
    const { link = "" } = await order(person.address, { fields: [field], optionalFields: [] });
    const reached = Promise.withResolvers<void>();
    const dying = await open(async (url, init) => {
      const isAnswer = typeof url === "string" && /\/w\/o\/[^/]+$/.test(url);
      if (!isAnswer) return fetch(url, init);
      if (isSent) await fetch(url, init);
      reached.resolve();
      return new Promise(() => undefined);
    });
    void dying.approve(link);
    await reached.promise;
    return link;
  };
  const outcomes = async (): Promise<Data> => {
    const entries = await (await open()).history();
    return Object.fromEntries(entries.map(({ fields, outcome }) => [String(fields), outcome]));
  };
  await dieApproving("EMAIL", { isSent: true });
  assert.deepEqual(await outcomes(), { EMAIL: "sent" });
  await (await open()).receive();
  assert.deepEqual(await outcomes(), { EMAIL: "approved" });
  await dieApproving("IDCARD_DOB", { isSent: false });
  const link = await dieApproving("ADDRESS_CITY", { isSent: true });
  await assert.rejects((await open()).approve(link), /approved already/);
  assert.deepEqual(await outcomes(), {
    EMAIL: "approved",
    IDCARD_DOB: "sent",
    ADDRESS_CITY: "approved",
  });
});

await test("who holds fields of the sandbox as well shares those that count for the order", async () => {
  const { wallet, address } = await openVerifiedPerson();
  const issuer = await getBuiltInIssuer(ctx, "sandbox", "sandbox");
  const expiresAt = ctx.clock.now() + 2 * 365 * 86_400;
  const fields = [{ field: "IDCARD_DOB", data: "2000-01-01" }];
  await issueCredential(ctx, issuer, { user: address, document: "IDCARD", fields, expiresAt });
  await settleWithoutChain(ctx);
  const { link = "", referenceKey } = await order(address);
  const { words } = await wallet.describe(link);
  assert.match(words.join("\n"), /Required: IDCARD_DOB: "1990-02-03"/);
  const outcome = await wallet.approve(link);
  assert.equal(outcome.kind === "delivered" && outcome.status, 200);
  assert.equal((await statusOf(referenceKey))["status"], "INITIATING");
});

await test("a person declines, and the order fails by that", async () => {
  const { wallet, address } = await openVerifiedPerson();
  const { link = "", referenceKey } = await order(address);
  const outcome = await wallet.decline(link);
  assert.ok(outcome.kind === "delivered");
  assert.equal(outcome.status, 200);
  const { status, failureReason } = await statusOf(referenceKey);
  assert.deepEqual([status, failureReason], ["FAILED", "USER_DECLINED"]);
  // As after a lost answer.
  await assert.rejects(wallet.approve(link), /declined already \(request_over\)/);
  await assert.rejects(wallet.decline(link), /declined already \(request_over\)/);
});

await test("a parent name is answered by the document that is held", async () => {
  const { wallet, address } = await openVerifiedPerson();
  const fields = ["DOB_PARENT_FIELD", "AGE_OVER_18"];
  const { link = "", referenceKey } = await order(address, { fields, optionalFields: [] });
  await wallet.approve(link);
  assert.equal((await statusOf(referenceKey))["status"], "INITIATING");
});

await test("one document answers a parent name and its own name", async () => {
  const { wallet, address } = await openVerifiedPerson();
  const fields = ["DOB_PARENT_FIELD", "IDCARD_DOB"];
  const { link = "", referenceKey } = await order(address, { fields, optionalFields: [] });
  await wallet.approve(link);
  assert.equal((await statusOf(referenceKey))["status"], "INITIATING");
});

await test("data that leaves the verified domain is flagged, and where the browser returns is no obstacle", async () => {
  const { wallet, address } = await openVerifiedPerson();
  const { link = "" } = await order(address, {
    callback: "https://hooks.example.org/kyc",
    returnUrl: "http://localhost:4999/back",
  });
  const { words, data } = await wallet.describe(link);
  assert.match(
    words.join("\n"),
    /Careful: What you share goes to hooks\.example\.org, which does not/,
  );
  assert.equal(data["outsideDomain"], true);
});

await test("another person's wallet does not answer, whatever it accepts", async () => {
  const { address } = await openVerifiedPerson();
  const { link = "", referenceKey } = await order(address);
  const { wallet } = await openVerifiedPerson();
  const accept = new Set(["unknown-requester" as const]);
  await assert.rejects(wallet.approve(link, { accept }), /another identity/);
  const addressed = link.replace(address, "");
  const outcome = await wallet.approve(addressed.replace("request/?", "request?"), { accept });
  assert.ok(outcome.kind === "delivered");
  assert.equal(outcome.status, 422);
  assert.equal((await statusOf(referenceKey))["status"], "PENDING");
});

await test("a link that was changed on its way is refused before anything is shown", async () => {
  const { wallet, address } = await openVerifiedPerson();
  const { link = "", referenceKey } = await order(address);
  const changes: readonly (readonly [RegExp, string])[] = [
    [/idcard-dob/, "idcard-dob,phone"],
    [/,address-city/, ""],
    [/from=0x\w{40}/, `from=0x${"0f".repeat(20)}`],
    [/id=\w{64}/, `id=${"0".repeat(64)}`],
  ];
  for (const [part, other] of changes) {
    const changed = link.replace(part, other);
    assert.notEqual(changed, link);
    await assert.rejects(wallet.describe(changed), /the request object is refused/);
  }
  assert.equal((await statusOf(referenceKey))["status"], "PENDING");
});

await test("a link past its time is expired in the wallet", async () => {
  const { wallet, address } = await openVerifiedPerson();
  const { link = "" } = await order(address);
  await world.advance(601);
  await assert.rejects(wallet.approve(link), /deadline/);
});

await test("a person's own list of orders goes from the newest to the oldest, in pages, and without values", async () => {
  const person = await openVerifiedPerson();
  const bearer = await openWalletSession(world.baseUrl, person);
  const older = await order(person.address, { fields: ["EMAIL"], optionalFields: [] });
  await person.wallet.decline(older["link"] ?? "");
  const newer = await order(person.address);
  await order((await openVerifiedPerson()).address);
  const read = async (query: string): Promise<{ items: Data[]; nextCursor?: string }> => {
    const answer = await fetch(`${world.baseUrl}/w/orders?${query}`, { headers: bearer });
    assert.equal(answer.status, 200);
    return (await answer.json()) as { items: Data[]; nextCursor?: string };
  };
  const page = await read("limit=1");
  const [shown] = page.items;
  assert.deepEqual(
    [shown?.["referenceKey"], shown?.["organization"], shown?.["fields"], shown?.["status"]],
    [
      newer["referenceKey"],
      "Test organization",
      ["EMAIL", "IDCARD_DOB", "ADDRESS_CITY"],
      "PENDING",
    ],
  );
  assert.doesNotMatch(JSON.stringify(page), /1990-|Bern|alice@/);
  const rest = await read(`limit=1&cursor=${page.nextCursor}`);
  assert.deepEqual(
    rest.items.map(({ referenceKey, status }) => [referenceKey, status]),
    [[older["referenceKey"], "FAILED"]],
  );
  assert.equal(rest.nextCursor, undefined);
  const { status } = await fetch(`${world.baseUrl}/w/orders`);
  assert.equal(status, 401);
});

await test("a link that has ended answers 410 for a day, and then 404 like one that never was", async () => {
  const { address } = await openVerifiedPerson();
  using _ = world.holdTime();
  const { link = "" } = await order(address);
  const { connection } = scanRequest(link);
  const answerTo = async (): Promise<number> =>
    (await fetch(`${connection}/open`, { method: "POST" })).status;
  await world.advance(600 + 86_400 - 1);
  await purgeTokens(ctx);
  await untilWritersEnd(ctx.db);
  assert.equal(await answerTo(), 410);
  await world.advance(2);
  await purgeTokens(ctx);
  await untilWritersEnd(ctx.db);
  assert.equal(await answerTo(), 404);
});
