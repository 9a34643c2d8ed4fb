// The KYC tables of the service document, row by row, filed by status.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fieldNames } from "@svc/protocol";
import {
  createApiKey,
  createDomain,
  createOrganization,
  limitCallbackHosts,
} from "../../service/src/accounts/index.ts";
import {
  approve,
  decline,
  type KycWorld,
  openKycWorld,
  openRequest,
  receiverUrl,
  scanRequest,
  shareResult,
} from "../kyc-world.ts";
import { newIdentity, post } from "../raw-wallet.ts";

let world: KycWorld;
before(async () => {
  world = await openKycWorld();
});
after(async () => world[Symbol.asyncDispose]());

const soon = (): number => world.ctx.clock.now() + 600;

test("200: a request gives a PNG, a link, its end and its key, and begins PENDING", async () => {
  const expiration = soon();
  const { status, body } = await world.ask({ expiration, fields: ["EMAIL"], reference: "r-1" });
  assert.equal(status, 200);
  assert.equal(body.success, true);
  assert.equal(body.message, "QRCode has been successfully generated");
  const { qrcode, link, universalLink, referenceKey, ...rest } = body.data ?? {};
  assert.deepEqual(rest, { expiration });
  assert.equal(Buffer.from(String(qrcode), "base64").subarray(1, 4).toString(), "PNG");
  assert.match(String(referenceKey), /^[0-9a-f]{64}$/);
  assert.match(String(link), new RegExp(`^svc:request/${world.person.address}\\?conn=`));
  assert.ok(String(universalLink).endsWith(`/l#${String(link)}`));
  const found = await world.call("GET", `/api/v2/kyc/status?referenceKey=${String(referenceKey)}`);
  assert.equal(found.body.message, "status has been sent successfully");
  assert.deepEqual(Object.keys(found.body.data ?? {}), ["status", "createdAt"]);
  assert.equal(found.body.data?.["status"], "PENDING");
  const all = `/api/v2/kyc/all-statuses?referenceKey=${String(referenceKey)}`;
  const history = await world.call("GET", all);
  assert.equal(history.body.message, "all statuses has sent successfully");
  const { allStatuses } = (history.body.data ?? {}) as { allStatuses?: unknown[] };
  assert.equal(allStatuses?.length, 1);
});

test("200: the same request while it waits gives a fresh link for the same order, alreadySent", async () => {
  const person = await world.verify();
  const first = await world.ask({ user: person.address });
  const fields = ["EMAIL", "IDCARD_DOB", "EMAIL"];
  const user = person.address.slice(2).toUpperCase();
  const again = await world.ask({ user, fields, statusCallback: 7, withoutQRCode: "yes" });
  assert.equal(again.status, 200);
  assert.equal(again.body.data?.["alreadySent"], true);
  assert.equal(again.body.data?.["referenceKey"], first.body.data?.["referenceKey"]);
  assert.notEqual(again.body.data?.["link"], first.body.data?.["link"]);
  assert.equal("alreadySent" in (first.body.data ?? {}), false);
});

test("200: an older link stays good until one of them is opened", async () => {
  const [other, person] = [await world.verify(), await world.verify()];
  const foreign = await world.ask({ user: other.address });
  const { address: user } = person;
  const links: unknown[] = [];
  for (let round = 0; round < 3; round++)
    links.push((await world.ask({ user, expiration: soon() + round })).body.data?.["link"]);
  await openRequest(links[1]);
  assert.equal((await post(`${scanRequest(links[0]).connection}/open`, {})).status, 404);
  await openRequest(links[2]);
  // A link that was opened stays good until its own end, though a newer one was opened since.
  assert.equal((await approve(person, links[1])).status, 200);
  await openRequest(foreign.body.data?.["link"]);
});

test("200: a link outlives every older one, given out in the same second too", async () => {
  const person = await world.verify();
  const ask = async () => (await world.ask({ user: person.address })).body.data?.["link"];
  let [older, newer]: unknown[] = [];
  for (let second = 0; second !== world.ctx.clock.now();) {
    second = world.ctx.clock.now();
    [older, newer] = [await ask(), await ask()];
  }
  await openRequest(older);
  assert.equal((await approve(person, newer)).status, 200);
});

test("422: who gives nothing where all is optional has not approved", async () => {
  const person = await world.verify();
  const names = { fields: [], optionalFields: ["EMAIL"] };
  const { link } = (await world.ask({ user: person.address, ...names })).body.data ?? {};
  assert.equal((await approve(person, link, { fields: [] })).status, 422);
  assert.equal((await approve(person, link, { fields: ["EMAIL"] })).status, 200);
});

test("200: the user approves, and the order goes through every status to CONFIRMED", async () => {
  const person = await world.verify();
  const asked = await world.ask({
    user: person.address,
    optionalFields: ["ADDRESS_CITY", "PHONE"],
  });
  const opened = await openRequest(asked.body.data?.["link"]);
  assert.deepEqual(opened.claims["required"], ["EMAIL", "IDCARD_DOB"]);
  assert.deepEqual(opened.claims["optional"], ["ADDRESS_CITY"], "what is not verified is left out");
  assert.equal(opened.claims["callback_host"], "localhost:4998");
  const result = shareResult(person, opened);
  const answer = await post(opened.connection, result);
  assert.equal(answer.status, 200);
  assert.deepEqual(await answer.json(), { status: "INITIATING", referenceKey: opened.id });
  const again = await post(opened.connection, result);
  assert.equal(again.status, 200, "the wallet may have lost the answer");
  const { initiatedTxHash, confirmTxHash } = await world.reach(opened.id, "CONFIRMED");
  assert.match(String(initiatedTxHash), /^0x[0-9a-f]{64}$/);
  assert.match(String(confirmTxHash), /^0x[0-9a-f]{64}$/);
  const { body } = await world.call("GET", `/api/v2/kyc/all-statuses?referenceKey=${opened.id}`);
  const entries = body.data?.["allStatuses"] as { status: string }[];
  assert.deepEqual(
    entries.map(({ status }) => status),
    ["PENDING", "INITIATING", "INITIATED", "CONFIRMING", "CONFIRMED"],
  );
  const next = await world.ask({ user: person.address, optionalFields: ["ADDRESS_CITY", "PHONE"] });
  const anew = await openRequest(next.body.data?.["link"]);
  const second = shareResult(person, anew);
  for (const { connection } of [anew, anew])
    assert.equal((await post(connection, second)).status, 200, "of each attempt its own approval");
  assert.equal((await post(opened.connection, result)).status, 200, "also of an earlier one");
});

test("200: after its end the same request is the next attempt, and the history runs on", async () => {
  const person = await world.verify();
  const first = await world.ask({ user: person.address });
  assert.equal((await decline(person, first.body.data?.["link"])).status, 200);
  const referenceKey = String(first.body.data?.["referenceKey"]);
  assert.equal((await world.statusOf(referenceKey))["failureReason"], "USER_DECLINED");
  const second = await world.ask({ user: person.address });
  assert.equal(second.body.data?.["referenceKey"], referenceKey);
  assert.equal("alreadySent" in (second.body.data ?? {}), false);
  const { body } = await world.call("GET", `/api/v2/kyc/all-statuses?referenceKey=${referenceKey}`);
  const entries = body.data?.["allStatuses"] as { status: string }[];
  assert.deepEqual(
    entries.map(({ status }) => status),
    ["PENDING", "FAILED", "PENDING"],
  );
});

test("200: orders are listed newest first, page by page, by status and user", async () => {
  const person = await world.verify();
  const keys: string[] = [];
  for (const fields of [["EMAIL"], ["IDCARD_DOB"], ["IDCARD_NAME"]])
    keys.push(
      String((await world.ask({ user: person.address, fields })).body.data?.["referenceKey"]),
    );
  const [first, cancelled, last] = keys;
  await world.call("POST", "/api/v2/kyc/cancel", { body: { referenceKey: cancelled } });
  const pagesOf = async (query: string) => {
    const pages: string[][] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined;) {
      const page = cursor === "" ? "" : `&cursor=${cursor}`;
      const { body } = await world.call("GET", `/api/v2/kyc/orders?${query}${page}`);
      const data = body.data as { items: { referenceKey: string }[]; nextCursor?: string };
      pages.push(data.items.map(({ referenceKey }) => referenceKey));
      cursor = data.nextCursor;
    }
    return pages;
  };
  const user = `user=${person.address}`;
  assert.deepEqual(await pagesOf(`${user}&limit=2`), [[last, cancelled], [first]]);
  assert.deepEqual(await pagesOf(`${user}&status=PENDING&limit=1`), [[last], [first]]);
  assert.deepEqual(await pagesOf(`${user}&status=FAILED`), [[cancelled]]);
  const pending = (await pagesOf("status=PENDING&limit=3")).flat();
  assert.deepEqual(
    [pending[0], pending[1], pending.includes(cancelled ?? "")],
    [last, first, false],
  );
});

test("400: the expiration is taken from 300 to 900 seconds ahead, to the second", async () => {
  const message = "expiration time is not in valid range";
  for (const [ahead, expected] of [
    [299, 400],
    [300, 200],
    [900, 200],
    [901, 400],
    [-5, 400],
    [300.5, 400],
  ] as const) {
    const person = world.person.address;
    // The clock may tick between our look and the service's.
    for (let tries = 0; ; tries++) {
      const now = world.ctx.clock.now();
      const { status, body } = await world.ask({ user: person, expiration: now + ahead });
      if (world.ctx.clock.now() !== now && tries < 20) continue;
      assert.equal(status, expected, `${ahead} s`);
      const details = { earliest: now + 300, latest: now + 900 };
      if (expected === 400)
        assert.deepEqual([body.error?.message, body.error?.details], [message, details]);
      break;
    }
  }
});

/** One fault each, in the order of decisions section 5. */
const faults: {
  name: string;
  status: number;
  message: RegExp;
  body: () => Promise<Record<string, unknown>> | Record<string, unknown>;
}[] = [
  {
    name: "a member is malformed",
    status: 400,
    message: /^Invalid Request: /,
    body: () => ({ callback: "http://example.com/hook" }),
  },
  {
    name: "more than 40 fields are named, each counted once",
    status: 400,
    message: /^Invalid Request: at most 40 fields$/,
    body: () => ({ fields: fieldNames.slice(0, 21), optionalFields: fieldNames.slice(20, 41) }),
  },
  {
    name: "the Source Key is unknown",
    status: 404,
    message: /^source key not found$/,
    body: () => ({ sourceKey: "sk_unknown" }),
  },
  {
    name: "the expiration is out of range",
    status: 400,
    message: /^expiration time is not in valid range$/,
    body: () => ({ expiration: soon() + 3600 }),
  },
  {
    name: "the package has a fixed field set",
    status: 400,
    message: /^sourcekey does not support dynamic fields$/,
    body: async () => ({
      sourceKey: (await world.buy({ fields: ["EMAIL"] })).sourceKey,
      fields: ["EMAIL"],
    }),
  },
  {
    name: "a name is no KYC field",
    status: 400,
    message: /^user fields \(NONSENSE\) are invalid fields$/,
    body: () => ({ optionalFields: ["NONSENSE"] }),
  },
  {
    name: "there are no fields",
    status: 400,
    message: /^no fields provided$/,
    body: () => ({ fields: [], optionalFields: [] }),
  },
  {
    name: "a required field is not verified",
    status: 422,
    message: /^unverified fields$/,
    body: () => ({ fields: ["PASSPORT_NAME"] }),
  },
  {
    name: "all fields are optional, and none of them is verified",
    status: 422,
    message: /^unverified fields$/,
    body: () => ({ fields: [], optionalFields: ["PASSPORT_NAME"] }),
  },
];

for (const fault of faults)
  test(`a request gets ${fault.status} where ${fault.name}`, async () => {
    const { status, body } = await world.ask(await fault.body());
    assert.equal(status, fault.status);
    assert.equal(body.success, false);
    assert.equal(body.error?.code, fault.status);
    assert.match(body.error?.message ?? "", fault.message);
  });

test("422: `details` names the fields that are not verified", async () => {
  for (const [fields, optionalFields, missing] of [
    [["EMAIL", "PASSPORT_NAME", "PHONE"], ["PASSPORT_DOB"], ["PASSPORT_NAME", "PHONE"]],
    [[], ["PHONE", "PASSPORT_DOB"], ["PASSPORT_DOB", "PHONE"]],
  ]) {
    const { status, body } = await world.ask({ fields, optionalFields });
    assert.deepEqual([status, body.error?.details], [422, { fields: missing }]);
  }
});

test("of two faults at a time the one that is checked first is answered", async () => {
  for (const [index, first] of faults.entries())
    for (const second of faults.slice(index + 1)) {
      const given = { ...(await second.body()), ...(await first.body()) };
      const { body } = await world.ask(given);
      assert.match(body.error?.message ?? "", first.message, `${first.name}; ${second.name}`);
    }
});

test("400: every member is checked before anything is looked up", async () => {
  const bad: Record<string, unknown>[] = [
    { user: "0x12" },
    { user: undefined },
    { sourceKey: 5 },
    { callback: "https://user@example.com/" },
    { callback: "https://example.com/#x" },
    { callback: "https://10.0.0.1/" },
    { expiration: "soon" },
    { fields: "EMAIL" },
    { fields: [5] },
    { reference: "x".repeat(281) },
    { purpose: "" },
    { purpose: " \n " },
    { purpose: "\u200b\u2800" },
    { purpose: "💥".repeat(281) },
    { purpose: "a\u202eb" },
    { returnUrl: "https://elsewhere.example/" },
    { returnUrl: "javascript:alert(1)" },
  ];
  for (const changed of bad) {
    const { status, body } = await world.ask({ sourceKey: "sk_unknown", ...changed });
    assert.equal(status, 400, JSON.stringify(changed));
    assert.match(body.error?.message ?? "", /^Invalid Request/, JSON.stringify(changed));
  }
  const longest = "💥".repeat(280);
  assert.equal((await world.ask({ reference: longest, purpose: longest })).status, 200);
});

test("400: a domain that lists the hosts of its callbacks has no other", async () => {
  const { ctx, clientDomainId: id } = world;
  const ask = async (callback: string) => world.ask({ fields: ["IDCARD_NAME"], callback });
  const list = async (hosts: readonly string[] | null) =>
    limitCallbackHosts(ctx, { id, hosts }, "test");
  assert.deepEqual((await list(["hooks.example.com"])).callbackHosts, ["hooks.example.com"]);
  assert.equal((await ask("https://hooks.example.com/svc?of=1")).status, 200);
  for (const url of [
    receiverUrl,
    "https://hooks.example.com:8443/",
    "https://a.hooks.example.com/",
  ]) {
    const { status, body } = await ask(url);
    assert.equal(status, 400, url);
    const message = "Invalid Request: callback has a host that the client domain does not list";
    assert.equal(body.error?.message, message);
  }
  await list(null);
  assert.equal((await ask(receiverUrl)).status, 200);
});

test("401, 404, 405: keys, foreign orders, earlier paths and other methods are refused in the envelope", async () => {
  const none = await world.ask({}, { apiKey: null });
  assert.deepEqual(
    [none.status, none.body.success, none.body.error?.reason],
    [401, false, "apikey_missing"],
  );
  const wrong = await world.ask({}, { apiKey: `Bearer ${world.apiKey}` });
  assert.match(JSON.stringify(wrong.body), /sent alone, without Bearer/);
  assert.deepEqual([wrong.status, wrong.body.error?.reason], [401, "apikey_invalid"]);
  const organization = await createOrganization(world.ctx, { name: "Other" }, "test");
  const given = { organizationId: organization.id, domain: "localhost", environment: "live" };
  const domain = await createDomain(world.ctx, given, "test");
  const other = await createApiKey(world.ctx, { clientDomainId: domain.id, name: "k" }, "test");
  const asked = await world.ask({ fields: ["IDCARD_NAME"] });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  assert.equal(
    (await world.ask({}, { apiKey: other.key })).body.error?.message,
    "source key not found",
  );
  const reads = ["status", "all-statuses", "receipt", "events"];
  for (const path of reads) {
    const url = `/api/v2/kyc/${path}?referenceKey=`;
    for (const answer of [
      await world.call("GET", `${url}${referenceKey}`, { apiKey: other.key }),
      await world.call("GET", `${url}${"0".repeat(64)}`),
      await world.call("GET", `${url}nonsense`),
    ])
      assert.deepEqual(
        [answer.status, answer.body.success, answer.body.error?.message],
        [404, false, "order not found"],
        path,
      );
    const posted = await world.call("POST", `/api/v2/kyc/${path}`, { body: {} });
    assert.deepEqual([posted.status, posted.body.success], [405, false], path);
    assert.equal(posted.headers.get("allow"), "GET");
  }
  for (const path of ["/api/v1/kyc/qrcode", "/api/v1/kyc/status", "/api/v1/blockchain/qrcode"])
    for (const method of ["GET", "POST"] as const) {
      const { status, body } = await world.call(
        method,
        path,
        method === "POST" ? { body: {} } : {},
      );
      assert.deepEqual([status, body.success, body.error?.code], [404, false, 404], path);
    }
  assert.equal((await world.call("GET", "/api/v2/kyc/qrcode")).status, 405);
});

test("an order ends at its expiration, and a link preview changes nothing", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address, expiration: world.ctx.clock.now() + 330 });
  const { connection } = scanRequest(asked.body.data?.["link"]);
  for (const url of [connection, `${connection}/open`])
    assert.ok([404, 405].includes((await fetch(url)).status));
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  assert.equal((await world.statusOf(referenceKey))["status"], "PENDING");
  await world.advance(331);
  assert.equal((await post(`${connection}/open`, {})).status, 410);
  const { failureReason } = await world.reach(referenceKey, "FAILED");
  assert.equal(failureReason, "EXPIRED");
});

test("a hundred submissions and refusals that the user did not sign leave an order PENDING", async () => {
  const person = await world.verify();
  const stranger = newIdentity();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const link = asked.body.data?.["link"];
  const opened = await openRequest(link);
  const other = await world.ask({ user: person.address, fields: ["EMAIL"] });
  const otherOpened = await openRequest(other.body.data?.["link"]);
  const zero = `0x${"00".repeat(32)}` as const;
  const results = [
    shareResult(person, opened, { signer: stranger }),
    shareResult(person, opened, { sent: { signature: `0x${"11".repeat(65)}` } }),
    shareResult(person, opened, { sent: { signature: undefined } }),
    shareResult(person, opened, { sent: { svcID: stranger.address } }),
    shareResult(person, opened, { sent: { id: otherOpened.id } }),
    shareResult(person, opened, { sent: { infos: "AAAA" } }),
    shareResult(person, opened, { changed: { request: otherOpened.id } }),
    shareResult(person, opened, { changed: { connection: otherOpened.connection } }),
    shareResult(person, opened, { changed: { requester: "evil.example" } }),
    shareResult(person, opened, { changed: { object: zero } }),
    shareResult(person, opened, { changed: { fields: zero } }),
    shareResult(person, opened, { changed: { data: zero } }),
    shareResult(person, opened, { changed: { deadline: opened.deadline + 1 } }),
    shareResult(person, otherOpened, { fields: ["EMAIL"] }),
    {},
  ];
  for (let round = 0; round < 6; round++)
    for (const result of results) {
      const { status } = await post(opened.connection, result);
      assert.equal(status, 422, JSON.stringify(result).slice(0, 200));
    }
  for (const answer of [
    await decline(stranger, link),
    await decline(person, link, { signature: undefined }),
    await decline(person, link, { id: otherOpened.id }),
    await decline(person, other.body.data?.["link"], { id: opened.id }),
    await decline(stranger, link, { svcID: person.address }),
  ])
    assert.equal(answer.status, 422);
  assert.deepEqual((await world.statusOf(referenceKey))["status"], "PENDING");
  assert.equal((await post(opened.connection, shareResult(person, opened))).status, 200);
});

test("413: a wallet's answer holds values of 8 MiB, under the longest signature, and no more", async () => {
  const asked = await world.ask({ user: (await world.verify()).address });
  const { connection, id } = scanRequest(asked.body.data?.["link"]);
  const longest = { svcID: world.person.address, id, signature: `0x${"11".repeat(16_384)}` };
  const send = async (length: number) =>
    post(connection, { ...longest, infos: "A".repeat(length) });
  assert.equal((await send(8 * 1024 * 1024)).status, 422);
  const refused = await send(8 * 1024 * 1024 + 16 * 1024);
  assert.equal(refused.status, 413);
  assert.match(await refused.text(), /body_too_large/);
});

test("data is never sent where the wallet was not told", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const opened = await openRequest(asked.body.data?.["link"]);
  const callback = "http://localhost:4997/elsewhere";
  assert.equal((await world.ask({ user: person.address, callback })).status, 200);
  assert.equal((await post(opened.connection, shareResult(person, opened))).status, 410);
  const moved = await world.ask({ user: person.address, callback: `${receiverUrl}/moved` });
  assert.equal((await approve(person, moved.body.data?.["link"])).status, 200);
});

test("the merchant is handed what was verified and nothing else that the wallet wrote", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address, fields: ["IDCARD_DOB", "IDCARD_NAME"] });
  const opened = await openRequest(asked.body.data?.["link"]);
  const result = shareResult(person, opened, { fields: ["IDCARD_DOB", "IDCARD_NAME"] });
  const verified = Buffer.from(String(result["infos"]), "base64").toString();
  // Our reader takes the last of equal keys; others take the first, or `Data` for `data`.
  const written = verified
    .replaceAll('{"field"', '{"data":"RWxvbiBNdXNr","field"')
    .replaceAll("}", ',"Data":"RWxvbiBNdXNr","note":"unasked"}');
  const infos = Buffer.from(` ${written}`).toString("base64");
  assert.equal((await post(opened.connection, { ...result, infos })).status, 200);
  await world.reach(opened.id, "CONFIRMED");
  const { body } = await world.call("GET", `/api/v2/kyc/events?referenceKey=${opened.id}`);
  const events = body.data?.["items"] as { event: string; body: string }[];
  const transferred = events.find(({ event }) => event === "data.transferred");
  const { data } = JSON.parse(transferred?.body ?? "") as { data: Record<string, unknown> };
  assert.equal(data["infos"], result["infos"]);
});
