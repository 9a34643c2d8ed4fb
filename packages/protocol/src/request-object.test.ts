import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { test } from "node:test";
import { invert, mod } from "@noble/curves/abstract/modular";
import { p256 } from "@noble/curves/nist";

import vectors from "../vectors/request-objects.json" with { type: "json" };
import { JwsFault, verifyEs256Jws } from "./jws.ts";
import type { EcPublicJwk } from "./jws.ts";
import { parseLink } from "./link.ts";
import type { Link } from "./link.ts";
import {
  REQUEST_OBJECT_TYP,
  checkRequestObject,
  originOfConnection,
  requestObjectHash,
} from "./request-object.ts";
import type { RequestObject } from "./request-object.ts";

const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
const jwk = { ...pair.publicKey.export({ format: "jwk" }), kid: "k1" } as EcPublicJwk;
const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({
  format: "jwk",
}) as EcPublicJwk;

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
function compactOf(header: object, payload: unknown): string {
  const input = `${encode(header)}.${encode(payload)}`;
  const signature = sign("sha256", Buffer.from(input), {
    key: pair.privateKey,
    dsaEncoding: "ieee-p1363",
  });
  return `${input}.${signature.toString("base64url")}`;
}
const header = { alg: "ES256", typ: REQUEST_OBJECT_TYP, kid: "k1" };

test("a genuine token gives its header and claims, by one key or out of a set", () => {
  for (let round = 0; round < 20; round += 1) {
    const compact = compactOf(header, { round });
    assert.deepEqual(verifyEs256Jws(compact, jwk, { typ: REQUEST_OBJECT_TYP }), {
      header,
      payload: { round },
    });
    assert.deepEqual(verifyEs256Jws(compact, { keys: [{ ...other, kid: "k0" }, jwk] }).payload, {
      round,
    });
  }
});

test("a token that is not genuine or not plain is refused", () => {
  const compact = compactOf(header, { a: 1 });
  const [head = "", body = "", tail = ""] = compact.split(".");
  const last = tail.at(-1) ?? "";
  const spare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const respelled = tail.slice(0, -1) + (spare[spare.indexOf(last) + 1] ?? "");
  const bad: [string, string][] = [
    ["empty", ""],
    ["two parts", `${head}.${body}`],
    ["four parts", `${compact}.x`],
    ["another payload", `${head}.${encode({ a: 2 })}.${tail}`],
    ["another header", `${encode({ ...header, x: 1 })}.${body}.${tail}`],
    ["padding", `${compact}=`],
    ["another spelling of the signature", `${head}.${body}.${respelled}`],
    ["no signature", `${head}.${body}.`],
    ["zero signature", `${head}.${body}.${Buffer.alloc(64).toString("base64url")}`],
    ["alg none", compactOf({ ...header, alg: "none" }, {})],
    ["alg HS256", compactOf({ ...header, alg: "HS256" }, {})],
    ["no typ", compactOf({ alg: "ES256" }, {})],
    ["crit", compactOf({ ...header, crit: ["b64"] }, {})],
    ["b64", compactOf({ ...header, b64: false }, {})],
    ["a key of its own", compactOf({ ...header, jwk: other }, {})],
    ["the address of a key", compactOf({ ...header, jku: "https://evil.example/keys" }, {})],
    ["a certificate", compactOf({ ...header, x5c: ["MIIB"] }, {})],
    ["the address of a certificate", compactOf({ ...header, x5u: "https://evil.example" }, {})],
    ["a list as payload", compactOf(header, [])],
    ["a kid that is no text", compactOf({ ...header, kid: 1 }, {})],
  ];
  for (const [what, token] of bad) assert.throws(() => verifyEs256Jws(token, jwk), JwsFault, what);
  assert.throws(() => verifyEs256Jws(compact, other), JwsFault);
  for (const typ of [
    "at+jwt",
    REQUEST_OBJECT_TYP.toUpperCase(),
    `application/${REQUEST_OBJECT_TYP}`,
  ])
    assert.throws(() => verifyEs256Jws(compact, jwk, { typ }), JwsFault, typ);
});

test("a signature in DER is refused, also by a key that was made so that it has 64 bytes", () => {
  const input = `${encode(header)}.${encode({})}`;
  // That of the nonce 1, and a short one.
  const [r, s] = [p256.CURVE.Gx, 1n << 200n];
  const digest = BigInt(`0x${createHash("sha256").update(input).digest("hex")}`);
  const privateKey = mod((s - digest) * invert(r, p256.CURVE.n), p256.CURVE.n);
  const point = Buffer.from(p256.getPublicKey(privateKey, false));
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((each) =>
    each.toString("base64url"),
  ) as [string, string];
  const words = [r.toString(16).padStart(64, "0"), s.toString(16).padStart(52, "0")] as const;
  const der = Buffer.from(`303e0220${words[0]}021a${words[1]}`, "hex");
  const plain = Buffer.from(`${words[0]}${words[1].padStart(64, "0")}`, "hex");
  const verify = (signature: Buffer) =>
    verifyEs256Jws(`${input}.${signature.toString("base64url")}`, { ...jwk, x, y });
  assert.deepEqual(verify(plain).payload, {});
  assert.equal(der.length, 64);
  assert.throws(() => verify(der), /does not match/);
});

test("a token of more than 65,536 characters is not read", () => {
  assert.throws(() => verifyEs256Jws("x".repeat(65_536), jwk), /three parts/);
  assert.throws(() => verifyEs256Jws("x".repeat(65_537), jwk), /too long/);
});

test("a key that is no P-256 point, or not the one the token names, verifies nothing", () => {
  const compact = compactOf(header, {});
  assert.throws(() => verifyEs256Jws(compact, { ...jwk, x: jwk.y }), JwsFault);
  assert.throws(() => verifyEs256Jws(compact, { ...jwk, kty: "OKP" }), JwsFault);
  assert.throws(() => verifyEs256Jws(compact, { ...jwk, crv: "P-384" }), JwsFault);
  assert.throws(() => verifyEs256Jws(compact, { ...jwk, x: "AA" }), JwsFault);
  assert.throws(() => verifyEs256Jws(compact, { ...jwk, y: `${jwk.y}AAA` }), JwsFault);
  assert.throws(() => verifyEs256Jws(compact, { keys: [] }), JwsFault);
  assert.throws(() => verifyEs256Jws(compact, { keys: [{ ...jwk, kid: "k2" }] }), JwsFault);
  const { kid: _kid, ...nameless } = jwk;
  assert.throws(() => verifyEs256Jws(compact, { keys: [nameless] }), JwsFault);
  assert.throws(() => verifyEs256Jws(compact, { keys: [jwk, jwk] }), JwsFault);
});

const now = 1_800_000_000;
const brokers = ["https://id.example"];
const from = "0x00000000000000000000000000000000000000a1" as const;
const loginId = "AAAAAAAAAAAAAAAAAAAAAA";
const loginLink: Link = {
  action: "login",
  session: `${loginId}.7.BBBBBBBBBBBBBBBBBBBBBA`,
  connection: "https://id.example/w/l/1",
  returnType: "callback",
};
const loginClaims = {
  iss: "https://id.example",
  aud: "svc-wallet",
  action: "login",
  sess: loginLink.session,
  client_name: "Shop",
  domain: "shop.example",
  from,
  required: [],
  optional: [],
  redirect_host: "shop.example",
  scopes: ["openid"],
  iat: now,
  exp: now + 120,
};
const requestLink: Link = {
  action: "request",
  connection: "https://id.example/w/o/1",
  from,
  deadline: now + 120,
  attributes: ["full-name", "email"],
  id: "ref-1",
  returnType: "callback",
};
const { sess: _sess, redirect_host: _host, ...rest } = loginClaims;
const requestClaims = {
  ...rest,
  action: "request",
  id: "ref-1",
  required: ["NAME_PARENT_FIELD"],
  optional: ["EMAIL"],
  callback_host: "hooks.example",
  scopes: [],
  purpose: "Open an account",
};

test("a request object that agrees with the link counts, and unknown claims are dropped", () => {
  assert.deepEqual(
    checkRequestObject(
      { ...loginClaims, jti: "x", livemode: true },
      { link: loginLink, brokers, now },
    ),
    loginClaims,
  );
  // What only a login has means nothing in a request.
  const more = { acr: "urn:svc:acr:qr", number_matching: false, client_id: "c", valid_until: 1 };
  assert.deepEqual(
    checkRequestObject({ ...requestClaims, ...more }, { link: requestLink, brokers, now }),
    requestClaims,
  );
});

test("the object of a login may name the login id, and a client without a verified domain an empty one", () => {
  const claims = { ...loginClaims, sess: loginId, domain: "" };
  assert.deepEqual(checkRequestObject(claims, { link: loginLink, brokers, now }), claims);
});

test("the object of a login may tell how near the browser is and whether digits are asked", () => {
  const claims = { ...loginClaims, acr: "urn:svc:acr:qr", number_matching: false };
  assert.deepEqual(checkRequestObject(claims, { link: loginLink, brokers, now }), claims);
});

test("the object of a request may tell on which side its fields count", () => {
  for (const livemode of [true, false]) {
    const claims = { ...requestClaims, livemode };
    assert.deepEqual(checkRequestObject(claims, { link: requestLink, brokers, now }), claims);
  }
});

test("the object of an offer names the fields that its link does not", () => {
  const claims = { ...requestClaims, required: ["BUSINESS_LEI"], optional: ["BUSINESS_DUNS"] };
  const link: Link = { ...requestLink, attributes: ["business"] };
  assert.deepEqual(checkRequestObject(claims, { link, brokers, now }), claims);
});

const digest = `0x${"11".repeat(32)}` as const;
const signLink: Link = {
  action: "sign",
  data: digest,
  connection: "https://id.example/w/f/token",
  returnType: "callback",
};
const offerClaims = { ...rest, action: "sign", id: "01O", purpose: "To open an account." };

test("the object of an offer to sign counts, as taking the offer signs nothing", () => {
  for (const link of [signLink, { ...signLink, deadline: offerClaims.exp }])
    assert.deepEqual(checkRequestObject(offerClaims, { link, brokers, now }), offerClaims);
  const link = { ...signLink, deadline: offerClaims.exp + 1 };
  assert.ok("refused" in checkRequestObject(offerClaims, { link, brokers, now }));
});

test("no object speaks for what is signed: it names neither bytes, nor document, nor amount", () => {
  const connection = "https://id.example/w/other";
  const route = { connection, returnType: "callback" } as const;
  const links: Link[] = [
    { ...signLink, connection },
    { ...signLink, connection: "https://id.example/w/./f/token" },
    { ...signLink, connection: "https://id.example/w/form/token" },
    { ...signLink, connection: "https://id.example/w/f" },
    {
      action: "td",
      data: { domain: {}, primaryType: "Mail", message: {} },
      types: { Mail: [] },
      deadline: now + 600,
      ...route,
    },
    { action: "tx", valueWei: "1", to: from, ...route },
  ];
  for (const link of links) {
    const claims = { ...offerClaims, action: link.action };
    const read = checkRequestObject(claims, { link, brokers, now });
    assert.ok("refused" in read, link.action);
    assert.match(read.refused, /does not name what/);
  }
});

const refusals: [string, Link, Record<string, unknown>, RegExp][] = [
  ["an issuer that is no broker", loginLink, { iss: "https://evil.example" }, /^iss/],
  ["an issuer with a slash", loginLink, { iss: "https://id.example/" }, /^iss/],
  [
    "a conn of another origin",
    { ...loginLink, connection: "https://evil.example/w/l/1" },
    {},
    /^iss/,
  ],
  [
    "a conn of another port",
    { ...loginLink, connection: "https://id.example:8443/w/l/1" },
    {},
    /^iss/,
  ],
  [
    "an issuer whose name begins with that of a broker, at its own conn",
    { ...loginLink, connection: "https://id.example.evil.example/w/l/1" },
    { iss: "https://id.example.evil.example" },
    /^iss is not a broker/,
  ],
  [
    "an issuer of a broker's scheme and host, at another port",
    { ...loginLink, connection: "https://id.example:8443/w/l/1" },
    { iss: "https://id.example:8443" },
    /^iss is not a broker/,
  ],
  ["another audience", loginLink, { aud: "svc-wallets" }, /^aud/],
  ["a list of audiences", loginLink, { aud: ["svc-wallet"] }, /^aud/],
  [
    "another action",
    loginLink,
    { action: "request", sess: undefined, id: "x", redirect_host: undefined, callback_host: "x" },
    /^action/,
  ],
  ["an unknown action", loginLink, { action: "pay" }, /^action/],
  ["another session", loginLink, { sess: "other" }, /^sess/],
  [
    "another session for a link of the same device",
    { ...loginLink, session: loginId, returnType: "app-link" },
    { sess: "other" },
    /^sess/,
  ],
  [
    "another code of its login",
    loginLink,
    { sess: `${loginId}.8.BBBBBBBBBBBBBBBBBBBBBA` },
    /^sess/,
  ],
  ["an id that only begins that of its login", loginLink, { sess: loginId.slice(1) }, /^sess/],
  ["no session", loginLink, { sess: undefined }, /^sess/],
  ["a session and an id", loginLink, { id: "x" }, /^id/],
  ["digits asked by a text", loginLink, { number_matching: "no" }, /^number_matching/],
  ["fields in a login", loginLink, { required: ["EMAIL"] }, /fields/],
  ["no redirect host", loginLink, { redirect_host: undefined }, /^redirect_host/],
  ["both hosts", loginLink, { callback_host: "x.example" }, /^callback_host/],
  ["expired", loginLink, { iat: now - 1, exp: now }, /^exp/],
  ["made later", loginLink, { iat: now + 61, exp: now + 120 }, /^iat/],
  ["over before it was made", loginLink, { iat: now + 30, exp: now + 30 }, /^exp/],
  ["a text as time", loginLink, { exp: String(now + 120) }, /^exp/],
  ["a time with a fraction", loginLink, { exp: now + 120.5 }, /^exp/],
  ["a time before 1970", loginLink, { iat: -1 }, /^iat/],
  ["an empty client name", loginLink, { client_name: "" }, /^client_name/],
  ["a client name that turns around", loginLink, { client_name: "\u202epohs" }, /^client_name/],
  ["no domain", loginLink, { domain: undefined }, /^domain/],
  ["no scopes", loginLink, { scopes: undefined }, /^scopes/],
  ["a scope that hides what follows it", loginLink, { scopes: ["openid\u202e"] }, /^scopes/],
  ["a scope of several words", loginLink, { scopes: ["openid business"] }, /^scopes/],
  ["an empty scope", loginLink, { scopes: [""] }, /^scopes/],
  ["more than 200 scopes", loginLink, { scopes: Array<string>(201).fill("a") }, /^scopes/],
  ["a name of two lines", requestLink, { optional: ["EMAIL", "A\nB"] }, /^optional is not a list/],
  ["a from that is not canonical", loginLink, { from: from.slice(2) }, /^from/],
  ["a from that is no text", loginLink, { from: 161 }, /^from/],
  ["another from", requestLink, { from: "0x00000000000000000000000000000000000000a2" }, /^from/],
  ["a deadline of its own", { ...requestLink, deadline: now + 600 }, {}, /^exp differs/],
  ["an end after that of the link", { ...requestLink, deadline: now + 60 }, {}, /^exp differs/],
  ["an id and a session", requestLink, { sess: loginId }, /^sess/],
  ["another id", requestLink, { id: "ref-2" }, /^id/],
  ["one name more", requestLink, { optional: ["EMAIL", "PHONE"] }, /^required and optional/],
  ["one name less", requestLink, { optional: [] }, /^required and optional/],
  ["another name", requestLink, { optional: ["PHONE"] }, /^required and optional/],
  [
    "another name for the only one of the link",
    { ...requestLink, attributes: ["email"] },
    { required: ["PHONE"], optional: [] },
    /^required and optional/,
  ],
  [
    "other names beside the business of the link",
    { ...requestLink, attributes: ["business", "email"] },
    { required: ["PHONE"], optional: [] },
    /^required and optional/,
  ],
  ["a name twice", requestLink, { optional: ["EMAIL", "EMAIL"] }, /twice/],
  ["a side told by a text", requestLink, { livemode: "true" }, /^livemode/],
  ["no callback host", requestLink, { callback_host: undefined }, /^callback_host/],
];

test("a request object that is forged, stale or differs from the link is refused", () => {
  for (const [what, link, change, reason] of refusals) {
    const claims = { ...(link.action === "login" ? loginClaims : requestClaims), ...change };
    const read = checkRequestObject(claims, { link, brokers, now });
    assert.ok("refused" in read, what);
    assert.match(read.refused, reason, what);
  }
  for (const claims of [null, [], "x"]) {
    assert.ok("refused" in checkRequestObject(claims, { link: loginLink, brokers, now }));
  }
});

test("the object of a proof of fields agrees with its link as that of a release does", () => {
  const { purpose: _purpose, ...terms } = requestClaims;
  const claims = { ...terms, action: "access", livemode: true };
  const link = { ...requestLink, action: "access" } as Link;
  assert.deepEqual(checkRequestObject(claims, { link, brokers, now }), claims);
  const differing: [change: Record<string, unknown>, reason: RegExp][] = [
    [{ action: "request" }, /^action differs/],
    [{ from: "0x00000000000000000000000000000000000000a2" }, /^from differs/],
    [{ id: "ref-2" }, /^id differs/],
    [{ exp: now + 60 }, /^exp differs/],
    [{ optional: [] }, /^required and optional/],
    [{ callback_host: undefined }, /^callback_host is missing/],
    [{ redirect_host: "shop.example" }, /exclude each other/],
  ];
  for (const [change, reason] of differing) {
    const read = checkRequestObject({ ...claims, ...change }, { link, brokers, now });
    assert.match("refused" in read ? read.refused : "", reason);
  }
});

test("a session and an id have at most 4,096 characters, other texts 280", () => {
  const id = "x".repeat(4096);
  const link: Link = { ...requestLink, id };
  const claims = { ...requestClaims, id };
  assert.deepEqual(checkRequestObject(claims, { link, brokers, now }), claims);
  const tooLong = [
    { claims: { ...claims, id: `${id}x` }, link },
    { claims: { ...loginClaims, sess: `${id}x` }, link: loginLink },
    { claims: { ...loginClaims, client_name: "x".repeat(281) }, link: loginLink },
  ];
  for (const given of tooLong) {
    const read = checkRequestObject(given.claims, { link: given.link, brokers, now });
    assert.match("refused" in read ? read.refused : "", /characters/);
  }
});

test("only a web address can be asked for a request object", () => {
  assert.equal(originOfConnection("https://id.example/w?x"), "https://id.example");
  assert.equal(originOfConnection("http://localhost:4000/w"), "http://localhost:4000");
  assert.equal(originOfConnection("shop://login"), null);
  assert.equal(originOfConnection(undefined), null);
});

/** What a wallet does with an answer of the vectors' broker. */
function judge(link: string, compact: string): RequestObject | { refused: string } {
  const read = parseLink(link);
  assert.ok(!("refused" in read), link);
  try {
    const { payload } = verifyEs256Jws(compact, vectors.keys, { typ: REQUEST_OBJECT_TYP });
    return checkRequestObject(payload, { ...vectors, link: read });
  } catch (fault) {
    assert.ok(fault instanceof JwsFault);
    return { refused: fault.message };
  }
}

test("every good request object of the vectors counts, and no bad one", () => {
  for (const { what, link, compact, hash } of vectors.good) {
    const object = judge(link, compact);
    assert.ok(!("refused" in object), what);
    assert.equal(requestObjectHash(compact), hash, what);
  }
  for (const { what, link, compact } of vectors.bad)
    assert.ok("refused" in judge(link, compact), what);
});
