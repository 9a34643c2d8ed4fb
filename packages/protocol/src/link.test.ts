import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import * as fc from "fast-check";

import vectors from "../vectors/links.json" with { type: "json" };
import {
  buildLink,
  linkInUniversal,
  linkLengthMax,
  parseLink,
  returnTypeOf,
  universalLinkOf,
} from "./link.ts";
import { anyLink } from "../tools/generated-links.ts";

test("every good link of the vectors reads as it says and is written back in its one spelling", () => {
  for (const { link, parsed, built } of vectors.good) {
    const read = parseLink(link);
    assert.deepEqual(read, parsed, link);
    assert.ok(!("refused" in read));
    assert.equal(buildLink(read), built ?? link);
  }
});

test("a misspelt action, a wrong identity after one, and milliseconds are told as such", () => {
  const mistyped = "0x52908400098527886E0F7030069857D2E4169Ee7";
  const cases: [string, RegExp][] = [
    ["svc:logn?sess=a", /^names neither an identity nor one of the actions login, td, request/],
    ["svc:logn/0x12?sess=a", /^names none of the actions login, td, request/],
    ["svc:login/0x12?sess=a", /^has no address after its action$/],
    [`svc:login/${mistyped}?sess=a`, /^has an address whose checksum is wrong$/],
    [`svc:${mistyped}?attr=email`, /^has an address whose checksum is wrong$/],
    [`svc:tx?val=1&to=${mistyped}`, /^has an address whose checksum is wrong$/],
    ["svc:tx?val=1&to=0x12", /^is not an address$/],
    ["svc:sign?data=0x12&dl=1795719336000", /^is not a time in Unix seconds$/],
  ];
  for (const [link, reason] of cases) {
    const read = parseLink(link);
    assert.ok("refused" in read, link);
    assert.match(read.refused.reason, reason);
  }
});

test("every bad link of the vectors is refused for the parameter at fault", () => {
  for (const { link, parameter } of vectors.bad) {
    const read = parseLink(link);
    assert.ok("refused" in read, `accepted: ${link}`);
    assert.equal(read.refused.parameter, parameter, `${link} -> ${read.refused.reason}`);
    assert.match(read.refused.reason, /^\S/);
  }
});

test("a link of every action reads back as it was built", () => {
  fc.assert(
    fc.property(anyLink, (link) => {
      assert.deepEqual(parseLink(buildLink(link)), link);
    }),
    { numRuns: 1000 },
  );
});

test("no text makes the parser throw", () => {
  // Every text, lone halves of characters included.
  const anyText = fc.uint16Array().map((units) => String.fromCharCode(...units));
  const texts = fc.oneof(
    anyText,
    anyText.map((rest) => `svc:${rest}`),
    fc
      .tuple(fc.constantFrom(...vectors.bad, ...vectors.good), fc.string())
      .map(([{ link }, rest]) => link + rest),
  );
  fc.assert(
    fc.property(texts, (text) => {
      assert.equal(typeof parseLink(text), "object");
    }),
    { numRuns: 2000 },
  );
});

test("a valid link with one stretch replaced is read or refused, never thrown at", () => {
  const cut = fc.record({
    link: anyLink,
    at: fc.nat(),
    length: fc.nat(8),
    put: fc.string({ maxLength: 8 }),
  });
  fc.assert(
    fc.property(cut, ({ link, at, length, put }) => {
      const text = buildLink(link);
      const from = at % text.length;
      const read = parseLink(text.slice(0, from) + put + text.slice(from + length));
      assert.ok("refused" in read || parseLink(buildLink(read)));
    }),
    { numRuns: 1000 },
  );
});

test("a link longer than 128 KiB is refused as a whole, one as long is read", () => {
  const start = "svc:sign?data=";
  const digits = "0".repeat(linkLengthMax - start.length);
  assert.ok(!("refused" in parseLink(start + digits)));
  assert.deepEqual(parseLink(`${start}${digits}00`), {
    refused: { parameter: null, reason: `is longer than ${linkLengthMax} characters` },
  });
});

test("types that nest or multiply beyond measure are refused in bounded time", () => {
  const nested = "[".repeat(30_000) + "]".repeat(30_000);
  const read = parseLink(
    `svc:td?dl=1&td=${encodeURIComponent('{"A":[{"name":"a","type":"A[]"}]}')}&data=${encodeURIComponent(`{"domain":{},"primaryType":"A","message":{"a":`)}${nested}%7D%7D`,
  );
  assert.ok("refused" in read);
  assert.equal(read.refused.parameter, "data");
});

test("the builder refuses a link that the parser would not read, naming the parameter", () => {
  assert.throws(() => buildLink({ action: "login", session: "", returnType: "qr" }), /sess/);
  assert.throws(
    () =>
      buildLink({
        action: "login",
        session: "a",
        connection: "javascript:x",
        returnType: "app-link",
      }),
    /conn/,
  );
  assert.throws(
    () => buildLink({ action: "login", session: "\ud800", returnType: "qr" }),
    TypeError,
  );
});

test("a callback without a connection is shown as qr", () => {
  assert.equal(returnTypeOf({ action: "sign", data: "0x00", returnType: "callback" }), "qr");
  assert.equal(
    returnTypeOf({
      action: "sign",
      data: "0x00",
      connection: "https://a.example/",
      returnType: "callback",
    }),
    "callback",
  );
});

test("the universal link carries the link in its fragment", () => {
  const link = buildLink({ action: "login", session: "a,b", returnType: "qr" });
  const url = new URL(universalLinkOf("https://wallet.example", link));
  assert.equal(url.pathname, "/l");
  assert.equal(url.hash.slice(1), link);
  assert.equal(linkInUniversal(url.href), link);
});

test("a universal link of a wallet on this machine, which has no https, holds its link as well", () => {
  const link = "svc:login?sess=a";
  assert.equal(linkInUniversal(universalLinkOf("http://localhost:4002", link)), link);
});

test("nothing but a universal link holds another link", () => {
  for (const text of [
    "svc:login?sess=a",
    "https://wallet.example/l",
    "https://wallet.example/l#",
    "https://wallet.example/l#login?sess=a",
    "https://wallet.example/p#svc:login?sess=a",
    "https://wallet.example/l?a#svc:login?sess=a",
    "wallet.example/l#svc:login?sess=a",
    "a https://wallet.example/l#svc:login?sess=a",
  ])
    assert.equal(linkInUniversal(text), text);
});

const refusedParameter = (link: string): string | null | undefined => {
  const read = parseLink(link);
  return "refused" in read ? read.refused.parameter : undefined;
};

test("a repeated parameter is refused, be the first empty, the second the same or the name unknown", () => {
  for (const [query, name] of [
    ["sess=&sess=a", "sess"],
    ["sess=a&sess=a", "sess"],
    ["sess=a&type&type=qr", "type"],
    ["sess=a&x=&x=", "x"],
  ] as const)
    assert.equal(refusedParameter(`svc:login?${query}`), name, query);
});

const isRefused = (connection: string): boolean =>
  refusedParameter(`svc:login?sess=a&type=app-link&conn=${encodeURIComponent(connection)}`) ===
  "conn";

test("an app-link opens an app or a page, never a scheme that runs, reads or nests something on the device", () => {
  assert.ok(!isRefused("myapp://login/1"));
  for (const connection of [
    "about:blank",
    "android-app://com.example.app/https/host",
    "blob:https://shop.example/1",
    "data:text/html,a",
    "file:///etc/passwd",
    "filesystem:https://shop.example/temporary/a",
    "intent://scan/#Intent;scheme=zxing;end",
    "javascript:alert(1)",
    "svc:login?sess=b",
    "vbscript:a",
    "view-source:https://shop.example/",
    "View-Source:https://shop.example/",
  ])
    assert.ok(isRefused(connection), connection);
});

test("what an app-link's answer appends may not stand in its query already, also before a fragment", () => {
  const done = "https://shop.example/done";
  for (const query of ["", "?a=1", "?a=1#signature=0x00"])
    assert.ok(!isRefused(done + query), query);
  for (const query of ["?svcID=a", "?svcID=a#top", "?a=1&signature", "?%73vcID=a#", "?error=a#b"])
    assert.ok(isRefused(done + query), query);
});

/** The most characters, parameters or names of a link, how to make a link with a number of them, and the parameter. */
const bounds: [name: string, most: number, link: (count: number) => string, at: string | null][] = [
  [
    "characters of conn",
    4096,
    (n) => `login?sess=a&conn=${"https://id.example/".padEnd(n, "a")}`,
    "conn",
  ],
  ["characters of sess", 4096, (n) => `login?sess=${"a".repeat(n)}`, "sess"],
  [
    "parameters",
    64,
    (n) => `login?sess=a${Array.from({ length: n - 1 }, (_, at) => `&x${at}=`).join("")}`,
    null,
  ],
  [
    "names of attr",
    200,
    (n) => `?attr=${Array.from({ length: n }, (_, at) => `a${at}`).join(",")}`,
    "attr",
  ],
  ["characters of a name", 64, (n) => `?attr=${"a".repeat(n)}`, "attr"],
  ["minutes", 60, (n) => `?exp=${n}`, "exp"],
  [
    "seconds",
    253_402_300_799,
    (n) => `request?conn=https://id.example&from=${"a1".repeat(20)}&attr=email&dl=${n}`,
    "dl",
  ],
];

test("each bound of a link holds exactly: the longest is read, one more is refused by its parameter", () => {
  for (const [name, most, link, parameter] of bounds) {
    assert.equal(refusedParameter(`svc:${link(most)}`), undefined, name);
    assert.equal(refusedParameter(`svc:${link(most + 1)}`), parameter, name);
  }
});

const tdLink = (data: object, types: unknown = { A: [] }): string => {
  const [first, second] = [data, types].map((each) => encodeURIComponent(JSON.stringify(each)));
  return `svc:td?data=${first}&td=${second}&dl=1`;
};

test("a document to sign whose members are of another kind is refused by the parameter that holds them", () => {
  const document = { domain: {}, primaryType: "A", message: {} };
  assert.equal(refusedParameter(tdLink(document)), undefined);
  for (const changed of [{ domain: [] }, { domain: "a" }, { primaryType: 1 }, { message: null }])
    assert.equal(
      refusedParameter(tdLink({ ...document, ...changed })),
      "data",
      JSON.stringify(changed),
    );
  assert.equal(refusedParameter(tdLink(document, { A: {} })), "td");
});

test("a document to sign holds nothing that is neither shown nor signed", () => {
  const document = { domain: {}, primaryType: "A", message: {} };
  for (const name of ["types", "note", "Message", "chainId"])
    assert.equal(refusedParameter(tdLink({ ...document, [name]: {} })), "data", name);
});

/** What each parameter may be, for a link that lacks nothing. */
const samples: Record<string, string> = {
  sess: "a",
  conn: "https%3A%2F%2Fid.example",
  from: "a1".repeat(20),
  to: "a1".repeat(20),
  dl: "1",
  attr: "email",
  val: "1",
  td: encodeURIComponent('{"A":[]}'),
};
const documentSample = encodeURIComponent('{"domain":{},"primaryType":"A","message":{}}');

/** The required parameters of an action: those that the parser reports as missing, one after the other. */
function requiredOf(action: string): string[] {
  const pairs = new Map<string, string>();
  for (;;) {
    const query = [...pairs].map(([name, value]) => `${name}=${value}`).join("&");
    const name = refusedParameter(`svc:${action}?${query}`);
    if (name === undefined) return [...pairs.keys()].toSorted();
    assert.ok(name !== null && !pairs.has(name), `${action}: ${name}`);
    pairs.set(name, samples[name] ?? (action === "td" ? documentSample : "00"));
  }
}

test("the reference shows what each action cannot do without, and links that are read", () => {
  const page = join(import.meta.dirname, "../../../docs/reference/links.md");
  const text = readFileSync(page, "utf8");
  const shown = [...text.matchAll(/`(svc:[^`<]*)`/g)].map(([, link = ""]) => link);
  assert.ok(shown.length > 2);
  for (const link of shown) assert.equal(refusedParameter(link), undefined, link);
  const rows = [...text.matchAll(/^\| `([a-z]+)` +\| ([^|]*) \| [^|]*`svcID`/gm)];
  assert.equal(rows.length, 6);
  for (const [, action = "", parameters = ""] of rows) {
    const bold = [...parameters.matchAll(/\*\*`([a-z]+)`\*\*/g)].map(([, name = ""]) => name);
    assert.deepEqual(bold.toSorted(), requiredOf(action), action);
  }
});
