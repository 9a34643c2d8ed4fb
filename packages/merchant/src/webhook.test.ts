import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";

import {
  alice,
  bodyOf,
  dataBody,
  invalidatedBody,
  referenceKey,
  signedHeaders,
  signingKey,
  statusBody,
} from "../test/signed-webhook.ts";
import { decodeInfos, verifyWebhook, type Delivery } from "./index.ts";

const t = 1_800_000_000;
const body = statusBody(3, "INITIATED", { initiatedTxHash: `0x${"AB".repeat(32)}` });

function deliver(text: string, changed: Partial<Delivery> = {}) {
  return verifyWebhook({
    headers: signedHeaders(text, { t }),
    rawBody: Buffer.from(text),
    signingKeys: [signingKey],
    now: t,
    ...changed,
  });
}

const refused = (reason: string) => ({ code: "webhook_refused", reason });

test("a genuine status.updated comes back typed", () => {
  assert.deepEqual(deliver(body), {
    event: "status.updated",
    eventId: "evt_01J00000000000000000000003",
    sequence: 3,
    timestamp: 1_800_000_003,
    livemode: true,
    referenceKey,
    attempt: 1,
    user: alice,
    fields: ["IDCARD_DOB", "EMAIL", "ADDRESS_CITY"],
    status: "INITIATED",
    createdAt: 1_800_000_003,
    expiration: 1_800_000_600,
    initiatedTxHash: `0x${"ab".repeat(32)}`,
  });
});

test("a genuine data.transferred brings decoded triples", () => {
  const triples = [
    { field: "EMAIL", data: "älice@example.com", pepper: `0x${"01".repeat(32)}` },
    { field: "IDCARD_DOB", data: "1990-02-28", pepper: `0x${"02".repeat(32)}` },
  ];
  const event = deliver(dataBody(6, triples, { reference: "" }));
  assert.equal(event.event, "data.transferred");
  assert.deepEqual(event.infos, triples);
  assert.equal(event.reference, "");
});

test("a genuine data.invalidated names the fields", () => {
  const event = deliver(invalidatedBody(9, ["EMAIL"], { attempt: 2 }));
  assert.equal(event.event, "data.invalidated");
  assert.deepEqual(event.fields, ["EMAIL"]);
});

test("an event of a kind that is yet to come is genuine and unknown", () => {
  const event = deliver(bodyOf({ event: "order.archived", sequence: 9, data: { x: 1 } }));
  assert.equal(event.event, "unknown");
  assert.equal(event.name, "order.archived");
});

test("the time of a delivery is good for 300 seconds either way, and not for 301", () => {
  for (const away of [-300, -1, 0, 300]) assert.ok(deliver(body, { now: t + away }));
  for (const away of [-301, 301, 3600, -3600])
    assert.throws(() => deliver(body, { now: t + away }), refused("timestamp"));
});

test("another key, an older one and a changed time are refused", () => {
  const other = signedHeaders(body, { t, key: `${signingKey}x` });
  assert.throws(() => deliver(body, { headers: other }), refused("signature"));
  const header = signedHeaders(body, { t })["svc-signature"] ?? "";
  const moved = { "svc-signature": header.replace(`t=${t}`, `t=${t + 1}`) };
  assert.throws(() => deliver(body, { headers: moved }), refused("signature"));
});

test("during a change of keys both count, and no key at all is a mistake", () => {
  const signingKeys = ["successor", signingKey];
  assert.ok(deliver(body, { signingKeys }));
  const headers = signedHeaders(body, { t, key: "successor" });
  assert.ok(deliver(body, { signingKeys, headers }));
  for (const bad of [[], [""], [signingKey, ""]]) {
    const expected = { code: "configuration_invalid", reason: "signingKeys" };
    assert.throws(() => deliver(body, { signingKeys: bad }), expected);
  }
  for (const now of [NaN, Date.now()])
    assert.throws(() => deliver(body, { now }), { code: "configuration_invalid", reason: "now" });
});

test("a delivery that lacks a part is a mistake that names it", () => {
  for (const reason of ["headers", "rawBody", "signingKeys"])
    assert.throws(() => deliver(body, { [reason]: undefined }), {
      code: "configuration_invalid",
      reason,
    });
  const signingKeys = [undefined] as never[];
  assert.throws(() => deliver(body, { signingKeys }), { reason: "signingKeys" });
});

test("any one changed byte of the body is refused", () => {
  const headers = signedHeaders(body, { t });
  for (const at of Buffer.from(body).keys()) {
    const rawBody = Buffer.from(body);
    rawBody[at] = (rawBody[at] ?? 0) ^ 1;
    assert.throws(() => deliver(body, { headers, rawBody }), refused("signature"));
  }
  for (const rawBody of [Buffer.alloc(0), Buffer.from(`${body} `)])
    assert.throws(() => deliver(body, { headers, rawBody }), refused("signature"));
});

test("a header that is missing, twice there or not as written is refused", () => {
  const s = "0".repeat(64);
  const header = signedHeaders(body, { t })["svc-signature"] ?? "";
  const headers: Delivery["headers"][] = [
    {},
    new Headers(),
    { "svc-signature": undefined },
    { "svc-signature": [header, header] },
    ...[
      "",
      `t=${t}`,
      `s=${s}`,
      `t=${t},s=`,
      `t=${t},s=${s}0`,
      `t=,s=${s}`,
      `t=-1,s=${s}`,
      `t=1e9,s=${s}`,
      `t= ${t},s=${s}`,
      `${header}, ${header}`,
      `${header},s=${s}`,
      `v1=${s},t=${t}`,
      header.toUpperCase(),
    ].map((text) => ({ "svc-signature": text })),
  ];
  for (const each of headers) {
    assert.throws(() => deliver(body, { headers: each }), refused("header"));
  }
});

test("the Headers of a framework that brings its own are read", () => {
  const value = signedHeaders(body, { t })["svc-signature"] ?? "";
  // Like a Headers of another realm: it has the methods, but is no instance of this realm's class.
  const headers = new Proxy(new Headers({ "svc-signature": value }), {
    get: (target, name) =>
      name === "get" ? (header: string) => target.get(header) : Reflect.get(target, name),
    getPrototypeOf: () => null,
  });
  assert.ok(!(headers instanceof Headers));
  assert.ok(deliver(body, { headers }));
});

test("header names are matched in any case, as Headers and as lists of values", () => {
  const value = signedHeaders(body, { t })["svc-signature"] ?? "";
  assert.ok(deliver(body, { headers: { "svc-signature": [value] } }));
  assert.ok(deliver(body, { headers: { "Svc-Signature": value } }));
  assert.ok(deliver(body, { headers: new Headers({ "SVC-SIGNATURE": value }) }));
});

test("the headers of Standard Webhooks neither help nor harm", () => {
  const standard = {
    "webhook-id": "evt_other",
    "webhook-timestamp": "1",
    "webhook-signature": "v1,AAAA",
    "svc-event-id": "evt_other",
  };
  const event = deliver(body, { headers: { ...standard, ...signedHeaders(body, { t }) } });
  assert.equal(event.eventId, "evt_01J00000000000000000000003");
  assert.throws(() => deliver(body, { headers: standard }), refused("header"));
});

test("a genuine body that is not what the service writes is refused by its member", () => {
  const data = JSON.parse(body).data as Record<string, unknown>;
  const changed = (members: object) =>
    bodyOf({ event: "status.updated", sequence: 3, data: { ...data, ...members } });
  const cases: [text: string, reason: string][] = [
    ["", "body"],
    ["null", "body"],
    ["[]", "body"],
    ["{", "body"],
    ["{}", "event"],
    [body.replace(`"sequence":3`, `"sequence":"3"`), "sequence"],
    [body.replace(`"livemode":true`, `"livemode":1`), "livemode"],
    [changed({ status: "DONE" }), "data.status"],
    [changed({ referenceKey: "../../etc/passwd" }), "data.referenceKey"],
    [changed({ user: "0x12" }), "data.user"],
    [changed({ attempt: -1 }), "data.attempt"],
    [changed({ fields: "EMAIL" }), "data.fields"],
    [changed({ initiatedTxHash: "0x12" }), "data.initiatedTxHash"],
    [invalidatedBody(4, ["NO_FIELD"]), "data.fields"],
  ];
  for (const [text, reason] of cases) assert.throws(() => deliver(text), refused(reason), reason);
});

test("a genuine body that is not valid UTF-8 is not an event, whatever its bytes would be read as", () => {
  const rawBody = Buffer.from(body.replace("EMAIL", "EMAI\u00ff"), "latin1");
  const s = createHmac("sha256", signingKey).update(`${t}.`).update(rawBody).digest("hex");
  const headers = { "svc-signature": `t=${t},s=${s}` };
  assert.throws(() => deliver(body, { rawBody, headers }), refused("body"));
});

test("the raw body is bytes: a text or parsed object is a mistake of the caller", () => {
  for (const rawBody of [body, JSON.parse(body)] as unknown as Uint8Array[])
    assert.throws(() => deliver(body, { rawBody }), { reason: "rawBody" });
});

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");

test("infos that are not what the service writes are refused by their member", () => {
  const cases: [text: string, reason: string][] = [
    ["%", "infos"],
    [encode({}), "infos"],
    [encode([{ field: "EMAIL", data: "YQ==", pepper: "YQ==" }]), "infos[0].pepper"],
    [encode([{ field: "NONE", data: "YQ==", pepper: "YQ==" }]), "infos[0].field"],
  ];
  for (const [text, reason] of cases)
    assert.throws(() => decodeInfos(text), { code: "infos_invalid", reason });
});

test("no message of a refusal holds a value, key or signature", () => {
  const text = dataBody(6, [{ field: "EMAIL", data: "canary@example.com", pepper: "0x00" }]);
  try {
    deliver(text);
    assert.fail("the pepper is too short");
  } catch (error) {
    assert.doesNotMatch(String(error), /canary|whk_|Y2FuYXJ5/);
  }
});
