import assert from "node:assert/strict";
import { test } from "node:test";
import { refuses } from "../test/test-wallet.ts";
import {
  call,
  elementsOf,
  membersOf,
  refusalOfAnswer,
  requireSecure,
  type Call,
} from "./transport.ts";

const url = "https://shop.example/x";
const unusable: [() => Response, string][] = [
  [() => new Response(null, { status: 302 }), "redirects, and redirects are not followed"],
  [() => new Response(new Uint8Array([0xff])), "gives no answer that can be read"],
];

await test("only whoever was sent something is said to have been told", async () => {
  const calls: [Call, string][] = [
    [{ url }, ""],
    [{ url, method: "DELETE" }, "was told, and "],
    [{ url, body: {} }, "was told, and "],
  ];
  for (const [answer, fault] of unusable)
    for (const [given, told] of calls) {
      const calling = call(async () => answer(), given);
      await refuses(calling, "unreachable", new RegExp(`^shop\\.example ${told}${fault}$`));
    }
});

await test("the word of a gateway that got no answer is nobody's refusal", () => {
  for (const [status, code, message] of [
    [502, "unreachable", "gave no answer (status 502)"],
    [504, "unreachable", "gave no answer (status 504)"],
    [500, "broker_refused", "refuses: status 500"],
  ] as const) {
    const refusal = refusalOfAnswer(url, { status, text: "<html>" });
    assert.deepEqual([refusal.code, refusal.message], [code, `shop.example ${message}`]);
  }
});

await test("a call takes no cookies and no referrer along, and follows nothing", async () => {
  const calls: [Call, string][] = [
    [{ url }, "GET"],
    [{ url, body: {} }, "POST"],
    [{ url, method: "DELETE" }, "DELETE"],
  ];
  for (const [given, verb] of calls) {
    const asked: (RequestInit | undefined)[] = [];
    await call(async (_url, init) => {
      asked.push(init);
      return new Response("{}");
    }, given);
    const [{ method, redirect, credentials, referrerPolicy } = {}] = asked;
    assert.deepEqual(
      { method, redirect, credentials, referrerPolicy },
      { method: verb, redirect: "manual", credentials: "omit", referrerPolicy: "no-referrer" },
    );
  }
});

async function isRead(json: string): Promise<boolean> {
  const bytesMax = 8 * 1024 * 1024;
  const { text } = await call(async () => new Response(json), { url, bytesMax });
  return text !== null;
}

await test("an answer of more than a million values is not read: each takes dozens of bytes of memory", async () => {
  const million = 2 ** 20;
  assert.equal(await isRead(`[${"0,".repeat(million - 1)}0]`), true);
  assert.equal(await isRead(`[${"{},".repeat(million / 2 + 2)}0]`), false);
  assert.equal(await isRead(`["${"{},".repeat(million)}"]`), true);
});

const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;

await test("an answer that nests deeper than 64 levels holds nothing", () => {
  assert.equal(elementsOf(nested(64)).length, 1);
  assert.deepEqual(elementsOf(nested(65)), []);
  assert.deepEqual(Object.keys(membersOf(`{"a":${nested(63)}}`)), ["a"]);
  for (const text of [`{"a":${nested(64)}}`, `{"b":1,"a":${nested(9000)}}`])
    assert.deepEqual(membersOf(text), {});
});

await test("what is signed travels by https, or by http to this machine, and by nothing else", async () => {
  for (const safe of [
    "https://a.example",
    "http://localhost:1",
    "http://127.0.0.1",
    "http://[::1]",
  ])
    requireSecure(safe);
  for (const unsafe of [
    "http://a.example",
    "http://localhost.a.example",
    "http://127.0.0.1.a.example",
    "ftp://localhost",
    "ws://127.0.0.1",
  ])
    await refuses(call(fetch, { url: unsafe }), "unreachable", /called only over https/);
});
