import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import {
  commitmentOf,
  decodeInfos,
  fieldsHash,
  leafOf,
  leavesHash,
  shareDigest,
  zeroHash,
} from "@svc/protocol";
import { makeKey, openFakeBroker, signerOf } from "../../test/fake-broker.ts";
import { deadline, from, issue, now, requestToken, serveFields } from "../../test/fake-fields.ts";
import { accepting, addressOf, refuses, walletOf } from "../../test/test-wallet.ts";
import { memoryStorage } from "../index.ts";

await using broker = await openFakeBroker();
const fields = serveFields(broker);
await using stranger = await openStranger();
const alice = addressOf("alice");

/** A merchant of its own: the far end of the network, whom no broker vouches for. */
async function openStranger() {
  const received: Record<string, unknown>[] = [];
  const paths: string[] = [];
  const server = createServer((request, response) => {
    void text(request)
      .then((body) => {
        paths.push(`${request.method} ${request.url}`);
        received.push(JSON.parse(body) as Record<string, unknown>);
        return response.writeHead(202).end("{}");
      })
      .catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://localhost:${port}`,
    host: `localhost:${port}`,
    received,
    paths,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function fresh(): void {
  broker.reset();
  fields.reset();
  stranger.paths.length = 0;
  stranger.received.length = 0;
  fields.issued = [
    issue(alice, { IDCARD_DOB: "1990-02-03", IDCARD_NAME: "Alice Muster", AGE_OVER_18: "true" }),
    issue(alice, { EMAIL: "alice@example.com" }, { document: "email" }),
    issue(alice, { ADDRESS_CITY: "Bern" }, { document: "address" }),
  ];
}

const aliceWallet = async (changed = {}) => walletOf("alice", [broker.url], changed);

await test("a request is described in plain words: who, why, where to, until when, each field and value", async () => {
  fresh();
  const wallet = await aliceWallet();
  const { words, concerns, requester, data, expiresAt } = await wallet.describe(fields.link());
  assert.deepEqual(words.slice(0, 4), [
    `"Demo shop" (shop.example, verified by ${new URL(broker.url).host}) asks you to share verified fields as ${alice.slice(0, 6)}…${alice.slice(-4)}.`,
    `The reason given: "To check your age.".`,
    "What you share goes to api.shop.example.",
    "It can be answered until 1970-01-12 13:56 UTC.",
  ]);
  assert.deepEqual(
    words.slice(4).map((line) => line.replace(/ \(.*/, "")),
    [
      `Required: IDCARD_DOB: "1990-02-03"`,
      `Required: EMAIL: "alice@example.com"`,
      `Optional: ADDRESS_CITY: "Bern"`,
    ],
  );
  assert.deepEqual([concerns, requester.known, expiresAt], [[], true, deadline]);
  assert.deepEqual(data["required"], ["IDCARD_DOB", "EMAIL"]);
  assert.equal(broker.paths().includes(`POST /w/o/${requestToken}`), false);
});

await test("a field of the sandbox is told from one that counts", async () => {
  fresh();
  for (const each of fields.issued.slice(1)) each.environment = "sandbox";
  const { words } = await (await aliceWallet()).describe(fields.link());
  assert.match(words[4] ?? "", /\(idcard by Demo issuer, until /);
  assert.match(words[5] ?? "", /\(email by Demo issuer, of the sandbox, until /);
});

await test("an approval without the optional field shares the others, signed over what was shown", async () => {
  fresh();
  const wallet = await aliceWallet();
  const outcome = await wallet.approve(fields.link(), { without: ["ADDRESS_CITY"] });
  assert.ok(outcome.kind === "delivered");
  assert.deepEqual(outcome.answer, { status: "INITIATING", referenceKey: "reference" });
  assert.deepEqual(
    fields.shared.map(({ field, data }) => `${field} ${data}`),
    ["EMAIL alice@example.com", "IDCARD_DOB 1990-02-03"],
  );
  assert.equal(outcome.status, 200);
});

await test("a field is withheld in any spelling; a required or unasked one cannot be", async () => {
  for (const without of ["address-city", "ADDRESS_CITY"]) {
    fresh();
    await (await aliceWallet()).approve(fields.link(), { without: [without] });
    assert.equal(fields.shared.length, 2);
  }
  fresh();
  const wallet = await aliceWallet();
  const refusing = async (name: string) => wallet.approve(fields.link(), { without: [name] });
  await refuses(refusing("EMAIL"), "invalid_input", /EMAIL is required/);
  await refuses(refusing("PHONE"), "invalid_input", /does not ask/);
  assert.equal(fields.status, "PENDING");
});

await test("an approval that withholds nothing shares everything optional as well", async () => {
  fresh();
  await (await aliceWallet()).approve(fields.link());
  assert.equal(fields.shared.length, 3);
});

await test("a parent name takes the document that answers most, and asks nobody", async () => {
  fresh();
  const values = { PASSPORT_NAME: "Alice M.", PASSPORT_DOB: "1990-02-03" };
  fields.issued = [
    issue(alice, { IDCARD_NAME: "Alice Muster" }),
    issue(alice, values, { document: "passport" }),
    issue(alice, { DRIVER_LICENSE_NAME: "A", DRIVER_LICENSE_DOB: "x" }, { status: "revoked" }),
  ];
  fields.required = ["NAME_PARENT_FIELD", "DOB_PARENT_FIELD"];
  fields.optional = ["PASSPORT_NAME"];
  const wallet = await aliceWallet();
  const { words } = await wallet.describe(fields.link());
  assert.match(
    words[4] ?? "",
    /^Required: NAME_PARENT_FIELD, by PASSPORT_NAME: "Alice M\." \(pass/,
  );
  await wallet.approve(fields.link());
  assert.deepEqual(
    fields.shared.map(({ field }) => field),
    ["PASSPORT_DOB", "PASSPORT_NAME"],
  );
});

await test("no credential that is revoked, distrusted, expired or of another broker is given", async () => {
  for (const changed of [{ status: "revoked" }, { status: "distrusted" }, { expiresAt: now }]) {
    fresh();
    fields.required = ["IDCARD_DOB"];
    fields.optional = [];
    fields.issued = [issue(alice, { IDCARD_DOB: "1990-02-03" }, changed)];
    const wallet = await aliceWallet();
    await refuses(wallet.approve(fields.link()), "no_matching_data", /IDCARD_DOB/);
  }
  fresh();
  await using other = await openFakeBroker();
  const otherFields = serveFields(other);
  otherFields.issued = fields.issued;
  fields.issued = [];
  const wallet = await walletOf("alice", [other.url, broker.url]);
  assert.equal((await wallet.receive()).received.length, 3);
  await refuses(wallet.approve(fields.link()), "no_matching_data");
});

await test("a credential that was revoked after it was collected is not given", async () => {
  fresh();
  const wallet = await aliceWallet();
  await wallet.receive();
  for (const issued of fields.issued) issued.status = "revoked";
  await refuses(wallet.approve(fields.link()), "no_matching_data");
});

await test("where nothing fits, the refusal says so by the same route", async () => {
  fresh();
  fields.issued = fields.issued.slice(1);
  const wallet = await aliceWallet();
  const { words, data } = await wallet.describe(fields.link());
  assert.match(words.join("\n"), /Required: IDCARD_DOB: nothing verified that you hold fits/);
  assert.deepEqual(data["missing"], ["IDCARD_DOB"]);
  await wallet.decline(fields.link());
  assert.deepEqual([fields.status, fields.error], ["FAILED", "no_matching_data"]);
});

await test("a decline is signed by the addressed identity", async () => {
  fresh();
  const outcome = await (await aliceWallet()).decline(fields.link());
  assert.ok(outcome.kind === "delivered" && outcome.status === 200);
  assert.deepEqual([fields.status, fields.error], ["FAILED", "access_denied"]);
});

await test("a callback outside the verified domain is flagged", async () => {
  for (const [host, isOutside] of [
    ["api.shop.example", false],
    ["shop.example:8443", false],
    ["SHOP.example", false],
    ["evilshop.example", true],
    ["shop.example.evil.example", true],
  ] as const) {
    fresh();
    fields.object = { callback_host: host };
    const { words, data } = await (await aliceWallet()).describe(fields.link());
    const line = words.find((each) => each.includes("What you share goes")) ?? "";
    assert.equal(line.startsWith("Careful:"), isOutside, line);
    assert.equal(data["outsideDomain"] === true, isOutside);
  }
});

await test("a text of others cannot play tricks in the words", async () => {
  fresh();
  fields.object = { purpose: "x\u202ey" };
  await refuses((await aliceWallet()).describe(fields.link()), "forged_request", /purpose/);
  fresh();
  fields.issued = [
    issue(
      alice,
      { IDCARD_DOB: "1990\u202e\n", EMAIL: "a@b.example" },
      { document: "id\u200bcard" },
    ),
  ];
  const { words } = await (await aliceWallet()).describe(fields.link());
  assert.match(words.join("\n"), /"1990<U\+202E>\\n" \(id<U\+200B>card by/);
});

const forgeries: Record<string, () => Record<string, unknown>> = {
  "another issuer": () => ({ iss: "https://evil.example" }),
  "another broker as issuer": () => ({ iss: stranger.url }),
  "another audience": () => ({ aud: "somebody" }),
  "another action": () => ({ action: "access" }),
  "another id": () => ({ id: "other" }),
  "another from": () => ({ from: `0x${"cd".repeat(20)}` }),
  "a required field more": () => ({ required: ["IDCARD_DOB", "EMAIL", "PHONE"] }),
  "a field less": () => ({ optional: [] }),
  "a field twice": () => ({ optional: ["EMAIL"] }),
  "no callback": () => ({ callback_host: undefined }),
  "a domain that is no text": () => ({ domain: 7 }),
  "a time in the future": () => ({ iat: now + 3600, exp: now + 7200 }),
  "far too many fields": () => ({ required: Array.from({ length: 500 }, (_, at) => `F${at}`) }),
};

await test("a forged request object is refused, and nothing is sent", async (t) => {
  for (const [name, forge] of Object.entries(forgeries)) {
    await t.test(`a request object with ${name} is refused, and nothing is sent`, async () => {
      fresh();
      fields.object = forge();
      const wallet = await walletOf("alice", [broker.url, stranger.url]);
      await refuses(
        wallet.approve(fields.link(), accepting("unknown-requester")),
        "forged_request",
      );
      assert.equal(fields.status, "PENDING");
      assert.deepEqual(stranger.paths, []);
    });
  }
});

await test("a request object by another key, type or algorithm is refused", async () => {
  for (const forge of [
    () => (fields.signer = makeKey(broker.key.kid)),
    () => (fields.signer = makeKey("unknown")),
    () => (fields.header = { typ: "JWT" }),
    () => (fields.header = { alg: "none" }),
    () => (fields.header = { jwk: broker.key.publicJwk }),
  ]) {
    fresh();
    forge();
    await refuses((await aliceWallet()).approve(fields.link()), "forged_request");
    assert.equal(fields.status, "PENDING");
  }
});

await test("a request object that is over is refused", async () => {
  fresh();
  fields.object = { exp: now };
  await refuses((await aliceWallet()).approve(fields.link()), "expired");
  const late = await aliceWallet({ now: async () => deadline + 1 });
  await refuses(late.approve(fields.link()), "expired");
});

await test("a broker that knows no such request is believed: nobody unknown asks in its place", async () => {
  fresh();
  broker.answers.set(`/w/o/${requestToken}/open`, {
    status: 404,
    body: { success: false, error: { reason: "request_not_found", message: "no such request" } },
  });
  const wallet = await aliceWallet();
  for (const action of ["request", "access"]) {
    const link = fields.link().replace("svc:request", `svc:${action}`);
    await refuses(wallet.approve(link, accepting("unknown-requester")), "broker_refused");
  }
  assert.equal(fields.status, "PENDING");
});

await test("data for one broker never goes to a conn of another origin, whatever its object says", async () => {
  fresh();
  const link = fields.link({ conn: `${stranger.url}/w/o/${requestToken}` });
  const wallet = await aliceWallet();
  const { requester, concerns, words } = await wallet.describe(link);
  assert.deepEqual(
    [requester, concerns],
    [{ known: false, host: stranger.host }, ["unknown-requester"]],
  );
  assert.doesNotMatch(words.join("\n"), /Demo shop|shop\.example|verified by/);
  await refuses(wallet.approve(link), "not_accepted");
  assert.deepEqual(stranger.paths, []);
});

await test("a redirect of conn is not followed with the data", async () => {
  fresh();
  broker.answers.set(`/w/o/${requestToken}`, {
    status: 307,
    body: "",
    headers: { location: `${stranger.url}/x` },
  });
  await refuses((await aliceWallet()).approve(fields.link()), "unreachable", /redirects/);
  assert.deepEqual(stranger.paths, []);
});

const foreign = (changed: Record<string, string | undefined> = {}): string =>
  fields.link({ conn: `${stranger.url}/share`, attr: "idcard-dob,email", ...changed });

await test("somebody unknown is named by host alone, and contacted after the deliberate yes alone", async () => {
  fresh();
  const wallet = await aliceWallet();
  const link = `${foreign()}&client_name=Your%20Bank&domain=bank.example&name=Bank&purpose=Trust%20me`;
  const { words, requester, data } = await wallet.describe(link);
  assert.match(words[0] ?? "", new RegExp(`^Somebody unknown at ${stranger.host} asks you`));
  assert.doesNotMatch(words.join("\n"), /bank|trust me|abab/i);
  assert.deepEqual(
    [requester, data["purpose"]],
    [{ known: false, host: stranger.host }, undefined],
  );
  assert.deepEqual(stranger.paths, []);
  await wallet.approve(link, accepting("unknown-requester"));
  assert.deepEqual(stranger.paths, ["POST /share"]);
  const { svcID, id, infos, signature } = stranger.received[0] as Record<string, string>;
  const decoded = decodeInfos(infos ?? "");
  assert.ok(!("fault" in decoded));
  const leaves = decoded.map(({ field, data: value, pepper }) =>
    leafOf({
      user: alice,
      field,
      commitment: commitmentOf({ data: value, pepper }),
      expiresAt: 2_000_000,
    }),
  );
  const digest = shareDigest({
    request: "reference",
    connection: `${stranger.url}/share`,
    requester: "",
    object: zeroHash,
    fields: fieldsHash(["EMAIL", "IDCARD_DOB"]),
    data: leavesHash(leaves),
    deadline,
  });
  assert.deepEqual([svcID, id, signerOf(digest, signature ?? "")], [alice, "reference", alice]);
});

await test("pii-high and biometric fields never go to somebody unknown, also behind a parent name", async () => {
  fresh();
  const values = {
    IDCARD_PERSONAL_NUMBER: "756.1",
    IDCARD_FACE_IMAGE: "aW1n",
    EMAIL: "a@b.example",
  };
  fields.issued = [issue(alice, values)];
  const wallet = await aliceWallet();
  for (const attr of [
    "idcard-personal-number",
    "email,idcard-face-image",
    "face-image-parent-field",
  ]) {
    const { words } = await wallet.describe(foreign({ attr }));
    assert.doesNotMatch(words.join("\n"), /756\.1|image of|nothing verified/);
    assert.match(words.join("\n"), /: somebody unknown is never given this\./);
    const approving = wallet.approve(foreign({ attr }), accepting("unknown-requester"));
    await refuses(approving, "no_matching_data", /unknown is never given \w+$/);
  }
  assert.deepEqual(stranger.paths, []);
  Object.assign(fields, { required: ["IDCARD_PERSONAL_NUMBER"], optional: [] });
  await wallet.approve(fields.link());
  assert.equal(fields.shared[0]?.data, "756.1");
});

await test("somebody unknown hears of a decline without a name, unless the person says otherwise", async () => {
  fresh();
  const wallet = await aliceWallet();
  await wallet.decline(foreign());
  assert.deepEqual(stranger.received, [{ error: "access_denied", id: "reference" }]);
  await wallet.decline(foreign(), accepting("unknown-requester"));
  assert.equal((stranger.received[1] as { svcID?: unknown } | undefined)?.svcID, alice);
  // A requester that names the identity in the link knows it already.
  await wallet.decline(foreign().replace("svc:request", `svc:request/${alice}`));
  const told: Record<string, unknown> = stranger.received[2] ?? {};
  assert.equal(told["svcID"], alice);
  assert.match(String(told["signature"]), /^0x[0-9a-f]{130}$/);
});

await test("a request for another identity, for a business or with an unknown name is not answered", async () => {
  fresh();
  const wallet = await aliceWallet();
  const other = fields.link().replace("svc:request", `svc:request/${addressOf("bob")}`);
  await refuses(wallet.approve(other), "other_identity");
  await refuses(wallet.approve(foreign({ attr: "business" })), "unsupported", /business/);
  await refuses(
    wallet.approve(foreign({ attr: "shoe-size" }), accepting("unknown-requester")),
    "no_matching_data",
    /shoe-size/,
  );
  await refuses(wallet.approve(`${fields.link()}&from=${from}`), "invalid_link", /more than once/);
  const flood = Array.from({ length: 201 }, (_, at) => `a${at}`).join(",");
  await refuses(wallet.approve(foreign({ attr: flood })), "invalid_link", /attr/);
  const long = foreign({ id: "x".repeat(4097) });
  await refuses(wallet.approve(long), "invalid_link", /id/);
});

await test("the history tells who, what and when, without a value, and only this identity can read it", async () => {
  fresh();
  const storage = memoryStorage();
  const wallet = await aliceWallet({ storage });
  await wallet.approve(fields.link(), { without: ["ADDRESS_CITY"] });
  await wallet.decline(foreign());
  const history = await wallet.history();
  assert.deepEqual(
    history.toSorted((a, b) => (a.outcome < b.outcome ? -1 : 1)),
    [
      {
        at: now,
        action: "request",
        outcome: "approved",
        isVerified: true,
        requester: "shop.example",
        fields: ["EMAIL", "IDCARD_DOB"],
        withheld: ["ADDRESS_CITY"],
        id: "reference",
        purpose: "To check your age.",
      },
      {
        at: now,
        action: "request",
        outcome: "declined",
        isVerified: false,
        requester: stranger.host,
        id: "reference",
      },
    ],
  );
  assert.deepEqual(await (await walletOf("bob", [broker.url], { storage })).history(), []);
  for (const folder of ["credential", "history"] as const)
    for (const key of await storage.list(folder))
      assert.doesNotMatch(
        (await storage.get(key)) ?? "",
        /shop\.example|1990-02-03|alice@|IDCARD_/,
      );
});

await test("from a page the answer to somebody unknown goes through the broker's relay", async () => {
  fresh();
  const wallet = await aliceWallet({ relaysAnswers: true });
  const outcome = await wallet.approve(foreign(), accepting("unknown-requester"));
  assert.ok(outcome.kind === "delivered");
  assert.deepEqual([outcome.status, outcome.answer], [202, { taken: true }]);
  assert.deepEqual(stranger.paths, []);
  const relayed = broker.received.find(({ path }) => path === "/w/relay")?.body;
  assert.equal(relayed?.["url"], `${stranger.url}/share`);
});

await test("a broker's request is answered by callback alone, whatever the link says", async () => {
  fresh();
  const wallet = await aliceWallet();
  for (const type of ["qr", "p2p", "app-link"]) {
    const link = fields.link({ type });
    for (const work of [wallet.describe(link), wallet.approve(link), wallet.decline(link)])
      await refuses(work, "unsupported", /callback/);
  }
  assert.deepEqual(broker.paths(), []);
});

await test("a request says where the data really goes", async () => {
  fresh();
  const wallet = await aliceWallet();
  const evil = { conn: "evilapp://bank.example/cb", type: "app-link" };
  const app = await wallet.describe(foreign(evil));
  assert.doesNotMatch(app.words.join("\n"), /bank\.example/);
  assert.equal(app.data["destination"], "the app behind evilapp:");
  const shown = await wallet.describe(foreign({ type: "qr" }));
  assert.match(shown.words[1] ?? "", /^What you share is shown to you as a QR code/);
  assert.equal(shown.data["destination"], undefined);
});
