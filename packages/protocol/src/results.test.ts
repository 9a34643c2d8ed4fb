import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import vectors from "../vectors/results.json" with { type: "json" };
import type { Action } from "./action.ts";
import { buildResult, parseResult, resultLengthMax } from "./results.ts";
import type { Received, Refusal, ResultOf } from "./results.ts";
import { decodeInfos, encodeInfos } from "./results/infos.ts";
import { anyAddress, anyHash, anyShowable } from "../tools/generated-links.ts";

const actions: Action[] = ["data-transfer", "login", "td", "request", "access", "sign", "tx"];

test("every good answer of the vectors reads as it says", () => {
  for (const { action, received, result } of vectors.good) {
    assert.deepEqual(
      parseResult(action as Action, received as Received),
      result,
      JSON.stringify(received),
    );
  }
});

test("every bad answer of the vectors is refused for the member at fault", () => {
  for (const { action, received, member } of vectors.bad) {
    const read = parseResult(action as Action, received as Received);
    assert.ok("fault" in read, JSON.stringify(received));
    assert.equal(read.fault.member, member, `${JSON.stringify(received)} -> ${read.fault.reason}`);
  }
});

test("an app-link answer is appended to the connection, whose own query and fragment stay", () => {
  for (const { connection, result, url } of vectors.links) {
    const delivery = buildResult(result as Refusal, { returnType: "app-link", connection });
    assert.deepEqual(delivery, { type: "app-link", url });
  }
});

test("what follows the first # of a connection stays, another # too", () => {
  const connection = "https://a.example/#/x#y";
  const delivery = buildResult(
    { error: "access_denied" },
    {
      returnType: "app-link",
      connection,
    },
  );
  assert.deepEqual(delivery, {
    type: "app-link",
    url: "https://a.example/?error=access_denied#/x#y",
  });
});

const signature = fc
  .uint8Array({ minLength: 1, maxLength: 80 })
  .map((bytes) => `0x${Buffer.from(bytes).toString("hex")}` as const);
const seconds = fc.integer({ min: 0, max: 253_402_300_799 });
const options = { noNullPrototype: true };
const anyResult: fc.Arbitrary<[Action, ResultOf[Action] | Refusal]> = fc.oneof(
  fc.tuple(
    fc.constant("login" as const),
    fc.record(
      {
        signature,
        session: anyShowable,
        svcID: anyAddress,
        business: fc.record(
          { address: anyAddress, epoch: fc.maxSafeNat(), validUntil: seconds, approval: signature },
          options,
        ),
      },
      { requiredKeys: ["signature", "session", "svcID"], ...options },
    ),
  ),
  fc.tuple(
    fc.constantFrom("td" as const, "sign" as const),
    fc.record({ signature, svcID: anyAddress }, options),
  ),
  fc.tuple(
    fc.constant("access" as const),
    fc.record(
      {
        svcID: anyAddress,
        id: anyShowable,
        proofs: fc.array(
          fc.record(
            {
              field: fc.constantFrom("EMAIL" as const, "AGE_OVER_18" as const),
              commitment: anyHash,
              expiresAt: seconds,
              root: anyHash,
              proof: fc.array(anyHash, { maxLength: 4 }),
              opening: fc.record({ data: anyShowable, pepper: anyHash }, options),
            },
            { requiredKeys: ["field", "commitment", "expiresAt", "root", "proof"], ...options },
          ),
          { maxLength: 3 },
        ),
        signature,
      },
      { requiredKeys: ["svcID", "proofs", "signature"], ...options },
    ),
  ),
  fc.tuple(
    fc.constant("request" as const),
    fc.record(
      { svcID: anyAddress, id: anyShowable, infos: fc.base64String({ minLength: 4 }), signature },
      { requiredKeys: ["svcID", "infos", "signature"], ...options },
    ),
  ),
  fc.tuple(
    fc.constant("data-transfer" as const),
    fc.record(
      {
        svcID: anyAddress,
        infos: fc.base64String({ minLength: 4 }),
        expiresAt: seconds,
        signature,
      },
      options,
    ),
  ),
  fc.tuple(fc.constant("tx" as const), fc.record({ txHash: anyHash, svcID: anyAddress }, options)),
  fc.tuple(
    fc.constant("login" as const),
    fc.record(
      {
        error: fc.constantFrom("access_denied" as const, "expired" as const),
        session: anyShowable,
        svcID: anyAddress,
        signature,
      },
      { requiredKeys: ["error", "session"], ...options },
    ),
  ),
);

test("an answer of every action and a refusal read back by every way they can travel", () => {
  const connection = "https://shop.example/done?tab=2#top";
  const ways = fc.constantFrom(
    "callback" as const,
    "app-link" as const,
    "qr" as const,
    "text" as const,
    "p2p" as const,
    "nfc" as const,
  );
  fc.assert(
    fc.property(anyResult, ways, ([action, result], returnType) => {
      assert.deepEqual(
        parseResult(action, buildResult(result, { returnType, connection })),
        result,
      );
    }),
    { numRuns: 600 },
  );
});

test("no answer makes the parser throw", () => {
  const received = fc.oneof(
    fc.jsonValue().map((body): Received => ({ type: "callback", body })),
    fc.string().map((payload): Received => ({ type: "qr", payload })),
    fc.string().map((query): Received => ({
      type: "app-link",
      url: `a:?business=${query}&proofs=${query}`,
    })),
    fc
      .dictionary(
        fc.constantFrom(
          "signature",
          "session",
          "svcID",
          "error",
          "business",
          "proofs",
          "infos",
          "__proto__",
        ),
        fc.jsonValue(),
      )
      .map((body): Received => ({ type: "callback", body })),
  );
  fc.assert(
    fc.property(fc.constantFrom(...actions), received, (action, each) => {
      assert.equal(typeof parseResult(action, each), "object");
    }),
    { numRuns: 1000 },
  );
});

test("a callback without a connection becomes a qr payload, an app-link without one is a mistake", () => {
  const refusal: Refusal = { error: "expired" };
  assert.deepEqual(buildResult(refusal, { returnType: "callback" }), {
    type: "qr",
    payload: '{"error":"expired"}',
  });
  assert.throws(() => buildResult(refusal, { returnType: "app-link" }), TypeError);
});

test("a claim secret or a code never travels in a query", () => {
  const login = { signature: "0xab", session: "s", svcID: `0x${"ab".repeat(20)}` } as const;
  const route = { returnType: "app-link", connection: "https://id.example/w/b/1" } as const;
  assert.throws(() => buildResult({ ...login, code: "42" }, route), TypeError);
  assert.throws(() => buildResult({ ...login, claimSecret: "x" }, route), TypeError);
});

test("the digits of a login are two, and a claim secret is base64url of 32 bytes", () => {
  const login = { signature: "0x00", session: "a", svcID: "a1".repeat(20) };
  const faultOf = (changed: object): string | null | undefined => {
    const read = parseResult("login", { type: "callback", body: { ...login, ...changed } });
    return "fault" in read ? read.fault.member : undefined;
  };
  assert.equal(faultOf({ code: "07", claimSecret: "A".repeat(43) }), undefined);
  for (const code of ["7", "007", "0000", "4 ", "4a", "４２", 42])
    assert.equal(faultOf({ code }), "code", String(code));
  for (const claimSecret of ["A".repeat(42), "A".repeat(44), `${"A".repeat(42)}B`, "+".repeat(43)])
    assert.equal(faultOf({ claimSecret }), "claimSecret", claimSecret);
});

test("infos carry text of any script and refuse what is not a triple", () => {
  const pepper = `0x${"07".repeat(32)}` as const;
  const infos = [
    { field: "IDCARD_NAME", data: "Zoë 東京 🦊", pepper },
    { field: "EMAIL", data: "", pepper },
  ] as const;
  const encoded = encodeInfos(infos);
  assert.deepEqual(JSON.parse(Buffer.from(encoded, "base64").toString()), [
    {
      field: "IDCARD_NAME",
      data: Buffer.from("Zoë 東京 🦊").toString("base64"),
      pepper: Buffer.alloc(32, 7).toString("base64"),
    },
    { field: "EMAIL", data: "", pepper: Buffer.alloc(32, 7).toString("base64") },
  ]);
  assert.deepEqual(decodeInfos(encoded), infos);
  const faults: [unknown, string][] = [
    [{}, "infos"],
    [Array(65_537).fill(0), "infos"],
    [[null], "infos[0]"],
    [[{ field: "NAME_PARENT_FIELD", data: "", pepper: "" }], "infos[0].field"],
    [[{ field: "EMAIL", data: "/w==", pepper: "" }], "infos[0].data"],
    [[{ field: "EMAIL", data: "", pepper: "AA==" }], "infos[0].pepper"],
    [
      [
        JSON.parse(Buffer.from(encoded, "base64").toString())[1],
        JSON.parse(Buffer.from(encoded, "base64").toString())[1],
      ],
      "infos",
    ],
  ];
  for (const [value, member] of faults) {
    const read = decodeInfos(Buffer.from(JSON.stringify(value)).toString("base64"));
    assert.ok("fault" in read);
    assert.equal(read.fault.member, member);
  }
});

const svcID = `0x${"ab".repeat(20)}`;
const hash = `0x${"01".repeat(32)}`;
const access = (proofs: unknown): Received => ({
  type: "callback",
  body: { svcID, signature: "0xab", proofs },
});
const proof = { field: "EMAIL", commitment: hash, expiresAt: 1, root: hash, proof: [] };
const signed = (changed: object): Received => ({
  type: "callback",
  body: { svcID, signature: "0xab", session: "a", infos: "AAAA", expiresAt: 1, ...changed },
});
const faultOf = (action: Action, received: Received): string | null | undefined => {
  const read = parseResult(action, received);
  return "fault" in read ? read.fault.member : undefined;
};

/** An answer of so many characters, entries or seconds, and the member that has them. */
const bounds: [Action, string | null, number, (count: number) => Received][] = [
  [
    "td",
    null,
    resultLengthMax,
    (n) => ({ type: "qr", payload: JSON.stringify({ svcID, signature: "0xab" }).padEnd(n) }),
  ],
  [
    "td",
    null,
    resultLengthMax,
    (n) => ({ type: "app-link", url: `a:?svcID=${svcID}&signature=0xab&x=`.padEnd(n, "a") }),
  ],
  ["login", "session", 4096, (n) => signed({ session: "a".repeat(n) })],
  ["td", "signature", 16_384, (n) => signed({ signature: `0x${"ab".repeat(n)}` })],
  ["data-transfer", "expiresAt", 253_402_300_799, (n) => signed({ expiresAt: n })],
  ["request", "infos", 8_388_608 / 4, (n) => signed({ infos: "AAAA".repeat(n) })],
  ["access", "proofs", 200, (n) => access(Array.from({ length: n }, () => proof))],
  [
    "access",
    "proofs[0].proof",
    64,
    (n) => access([{ ...proof, proof: Array.from({ length: n }, () => hash) }]),
  ],
  ["access", "proofs[0].expiresAt", 253_402_300_799, (n) => access([{ ...proof, expiresAt: n }])],
];

test("each bound of an answer holds exactly: the longest is read, one more is refused by its member", () => {
  for (const [action, member, most, received] of bounds) {
    assert.equal(faultOf(action, received(most)), undefined, `${action} ${member}`);
    assert.equal(faultOf(action, received(most + 1)), member, `${action} ${member}`);
  }
});

test("proofs and openings that are none are refused, naming the place", () => {
  const opening = { data: "true", pepper: hash };
  assert.equal(faultOf("access", access([{ ...proof, opening }])), undefined);
  const cases: [unknown, string][] = [
    [undefined, "proofs"],
    [{}, "proofs"],
    [[proof, "EMAIL"], "proofs[1]"],
    [[{ ...proof, opening: "true" }], "proofs[0].opening"],
    [[{ ...proof, opening: { ...opening, pepper: "0x01" } }], "proofs[0].opening.pepper"],
  ];
  for (const [proofs, member] of cases) assert.equal(faultOf("access", access(proofs)), member);
});

test("infos are read up to 8 MiB and no further, and a pepper is 32 bytes", () => {
  const most = Buffer.from("[]".padEnd((8_388_608 / 4) * 3)).toString("base64");
  assert.deepEqual(decodeInfos(most), []);
  const longer = decodeInfos(`${most}ICAg`);
  assert.ok("fault" in longer);
  assert.equal(longer.fault.member, "infos");
  const pepper = `0x${"07".repeat(31)}` as const;
  assert.throws(() => encodeInfos([{ field: "EMAIL", data: "", pepper }]), TypeError);
});
