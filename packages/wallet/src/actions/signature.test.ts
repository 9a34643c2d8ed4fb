import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  bytesOfText,
  hexOfBytes,
  personalDigest,
  typedDataDigest,
  type TypedDataDocument,
} from "@svc/protocol";
import { openFakeBroker, privateKeys, signerOf } from "../../test/fake-broker.ts";
import { refuses } from "../../test/test-wallet.ts";
import {
  ConcernsRefusal,
  WalletRefusal,
  memoryStorage,
  openIdentity,
  openWallet,
  type Concern,
} from "../index.ts";

interface Vectors {
  readonly types: { name: string }[];
  readonly refused: TypedDataDocument[];
  readonly allowed: (TypedDataDocument & { warnings: Concern[] })[];
}

const vectors = JSON.parse(
  readFileSync(new URL("../../../protocol/vectors/reserved.json", import.meta.url), "utf8"),
) as Vectors;

await using broker = await openFakeBroker();
const now = 1_000_030;
const identity = await openIdentity({ kind: "private-key", privateKey: privateKeys.alice });
const wallet = openWallet({
  identity,
  storage: memoryStorage(),
  seededBrokers: [broker.url],
  fetch,
  now: async () => now,
  random: (length) => new Uint8Array(length),
});

const encoded = (value: unknown): string => encodeURIComponent(JSON.stringify(value));

function tdLink(document: TypedDataDocument, more = `&dl=${now}`): string {
  const { domain, primaryType, message, types } = document;
  return `svc:td?data=${encoded({ domain, primaryType, message })}&td=${encoded(types)}${more}`;
}

const signLink = (bytes: Uint8Array, more = ""): string =>
  `svc:sign?data=${hexOfBytes(bytes)}${more}`;

/** Values that fit the types, where a vector gives none. */
function filled({ domain, primaryType, types, message }: TypedDataDocument): TypedDataDocument {
  const valueOf = (type: string): unknown => {
    const [, element, length] = /^(.*)\[(\d*)\]$/.exec(type) ?? [];
    if (element !== undefined)
      return Array.from({ length: Number(length) }, () => valueOf(element));
    const fields = types[type];
    if (fields !== undefined)
      return Object.fromEntries(fields.map((each) => [each.name, valueOf(each.type)]));
    if (type === "string") return "text";
    if (type === "bool") return true;
    if (type === "address") return `0x${"11".repeat(20)}`;
    if (type.startsWith("bytes")) return `0x${"22".repeat(Number(type.slice(5)))}`;
    return types[primaryType] === undefined ? {} : 7;
  };
  const isEmpty = Object.keys(message).length === 0;
  const made = isEmpty ? ((valueOf(primaryType) ?? {}) as TypedDataDocument["message"]) : message;
  return { domain, primaryType, types, message: made };
}

const mail: TypedDataDocument = {
  domain: { name: "Mail", chainId: 1 },
  primaryType: "Mail",
  types: {
    Mail: [
      { name: "from", type: "Person" },
      { name: "amounts", type: "uint256[]" },
      { name: "text", type: "string" },
      { name: "notes", type: "string[]" },
    ],
    Person: [{ name: "wallet", type: "address" }],
  },
  message: {
    from: { wallet: `0x${"11".repeat(20)}` },
    amounts: ["0xff", 3],
    text: 'Hi\n"there" \u202egnp',
    notes: [],
  },
};

await test("the vectors hold every reserved type", () => {
  const names = new Set(vectors.refused.map(({ primaryType }) => primaryType));
  assert.equal(vectors.types.length, 12);
  for (const { name } of vectors.types) assert.ok(names.has(name), name);
});

for (const [index, document] of vectors.refused.entries()) {
  await test(`no flag makes the wallet sign the reserved document ${index}, ${document.primaryType}`, async () => {
    const accept = new Set<Concern>(["unknown-requester", "permit", "delegation", "blind-hash"]);
    for (const work of [
      wallet.describe(tdLink(filled(document))),
      wallet.approve(tdLink(filled(document)), { accept }),
    ])
      await assert.rejects(work, (error) => {
        assert.ok(error instanceof WalletRefusal);
        // What has no hash does not even make a link.
        const isLink = document.types[document.primaryType] !== undefined;
        assert.equal(error.code, isLink ? "invalid_request" : "invalid_link", error.message);
        return true;
      });
  });
}

for (const document of vectors.allowed) {
  await test(`${document.primaryType} is signed once ${document.warnings.join(", ") || "nothing"} is accepted`, async () => {
    const made = filled(document);
    const { concerns } = await wallet.describe(tdLink(made));
    assert.deepEqual(concerns, document.warnings);
    if (concerns.length > 0) await assert.rejects(wallet.approve(tdLink(made)), ConcernsRefusal);
    const outcome = await wallet.approve(tdLink(made), { accept: new Set(concerns) });
    assert.ok(outcome.kind === "shown");
    const { signature, svcID } = JSON.parse(outcome.payload) as Record<string, string>;
    assert.equal(signerOf(typedDataDigest(made), signature ?? ""), svcID);
  });
}

await test("every member of a document is shown, numbers in decimal and texts as they are", async () => {
  const { words } = await wallet.describe(tdLink(mail));
  assert.deepEqual(words.slice(1, -1), [
    'domain.name: "Mail"',
    "domain.chainId: 1",
    `message.from.wallet (address): 0x${"11".repeat(20)}`,
    "message.amounts[0] (uint256): 255",
    "message.amounts[1] (uint256): 3",
    'message.text (string): "Hi\\n\\"there\\" <U+202E>gnp"',
    "message.notes (string[]): empty",
  ]);
});

await test("the chain that a document is for is shown as the number that is signed, however it is spelled", async () => {
  const { types } = mail;
  const chainLines = async (made: object): Promise<readonly string[]> => {
    const { words } = await wallet.describe(tdLink({ ...mail, ...made }));
    return words.filter((line) => line.startsWith("domain.chainId"));
  };
  for (const chainId of ["0x89", "0x0000000089", "137", 137])
    assert.deepEqual(await chainLines({ types, domain: { chainId } }), ["domain.chainId: 137"]);
  const declared = { ...types, EIP712Domain: [{ name: "chainId", type: "uint64" }] };
  const hex = { chainId: "0xff" };
  assert.deepEqual(await chainLines({ types: declared, domain: hex }), ["domain.chainId: 255"]);
  // A text is signed as it is spelled.
  const text = { ...types, EIP712Domain: [{ name: "chainId", type: "string" }] };
  assert.deepEqual(await chainLines({ types: text, domain: hex }), ['domain.chainId: "0xff"']);
});

await test("no member of a message passes for one of the domain", async () => {
  const { words } = await wallet.describe(
    tdLink({
      domain: {},
      primaryType: "Order",
      types: {
        Order: [
          { name: "domain", type: "Shop" },
          { name: "nothing", type: "Empty" },
        ],
        Shop: [{ name: "name", type: "string" }],
        Empty: [],
      },
      message: { domain: { name: "Bank" }, nothing: {} },
    }),
  );
  assert.deepEqual(words.slice(1, -1), [
    "domain: empty",
    'message.domain.name (string): "Bank"',
    "message.nothing (Empty): empty",
  ]);
});

await test("the answer goes to conn, once its unknown owner is accepted", async () => {
  broker.reset();
  broker.answers.set("/merchant", { status: 200, body: { stored: true } });
  const conn = `${broker.url.replace("localhost", "127.0.0.1")}/merchant`;
  const link = tdLink(mail, `&dl=${now}&conn=${encodeURIComponent(conn)}`);
  await assert.rejects(wallet.approve(link), ConcernsRefusal);
  assert.deepEqual(broker.received, []);
  const outcome = await wallet.approve(link, { accept: new Set(["unknown-requester"]) });
  assert.ok(outcome.kind === "delivered");
  assert.deepEqual([outcome.status, outcome.answer], [200, { stored: true }]);
  assert.deepEqual(Object.keys(broker.bodies()[0] ?? {}), ["signature", "svcID"]);
});

await test("behind a broker that cannot say who asks, the requester is unknown", async () => {
  broker.reset();
  const conn = encodeURIComponent(`${broker.url}/w/x/token`);
  broker.answers.set("/w/x/token/open", { status: 404, body: "" });
  const description = await wallet.describe(signLink(bytesOfText("hello"), `&conn=${conn}`));
  assert.deepEqual(description.concerns, ["unknown-requester"]);
  broker.answers.set("/w/x/token/open", { status: 200, body: "not.an.object" });
  await refuses(wallet.describe(signLink(bytesOfText("hello"), `&conn=${conn}`)), "forged_request");
});

await test("a passed deadline is a refusal named expired, and is declined as that", async () => {
  for (const link of [
    tdLink(mail, `&dl=${now - 1}`),
    signLink(bytesOfText("a"), `&dl=${now - 1}`),
  ]) {
    await refuses(wallet.approve(link), "expired");
    const outcome = await wallet.decline(link);
    assert.ok(outcome.kind === "shown");
    assert.match(outcome.payload, /^\{"error":"expired"/);
  }
});

await test("text is signed by EIP-191 over its bytes and shown line by line", async () => {
  const text = "first\nsecond";
  const { words, data } = await wallet.describe(signLink(bytesOfText(text)));
  assert.deepEqual(words.slice(1, 3), ['Text: "first"', 'Text: "second"']);
  assert.equal(data["text"], text);
  const outcome = await wallet.approve(signLink(bytesOfText(text)));
  assert.ok(outcome.kind === "shown");
  const { signature } = JSON.parse(outcome.payload) as Record<string, string>;
  assert.equal(signerOf(personalDigest(bytesOfText(text)), signature ?? ""), identity.address);
});

await test("a bare hash is warned about", async () => {
  const link = signLink(new Uint8Array(32).fill(0xab));
  assert.deepEqual((await wallet.describe(link)).concerns, ["blind-hash"]);
  await assert.rejects(wallet.approve(link), ConcernsRefusal);
  assert.equal((await wallet.approve(link, { accept: new Set(["blind-hash"]) })).kind, "shown");
});

await test("a sign-in text for another domain than the one that receives it is refused", async () => {
  const text = bytesOfText("bank.example wants you to sign in with your Ethereum account:\n0x00");
  const accept = new Set<Concern>(["unknown-requester"]);
  const link = signLink(text, "&conn=https%3A%2F%2Fevil.example%2Fx&type=app-link");
  await refuses(wallet.approve(link, { accept }), "invalid_request");
  const outcome = await wallet.approve(link.replace("evil", "bank"), { accept });
  assert.ok(outcome.kind === "opened");
  assert.match(outcome.url, /^https:\/\/bank\.example\/x\?signature=0x[0-9a-f]{130}&svcID=0x/);
});

await test("a sign-in text is not signed for an app of another, nor for whoever shows the link", async () => {
  const text = bytesOfText("bank.example wants you to sign in with your Ethereum account:\n0x00");
  const accept = new Set<Concern>(["unknown-requester"]);
  for (const route of [
    "conn=evilapp%3A%2F%2Fbank.example%2Fcb&type=app-link",
    "conn=https%3A%2F%2Fbank.example%2Fcb&type=qr",
    "conn=https%3A%2F%2Fbank.example%2Fcb&type=p2p",
  ])
    await refuses(wallet.approve(signLink(text, `&${route}`), { accept }), "invalid_request");
});

/** Who asks, and where the answer goes. */
async function sayEnds(route: string): Promise<string> {
  const { words } = await wallet.describe(signLink(bytesOfText("hello"), route));
  return `${words[0]?.split(" asks")[0]}; ${words.at(-1)}`;
}

await test("what is said of the answer is the way it takes", async () => {
  const web = "&conn=https%3A%2F%2Fbank.example%2Fcb";
  const unknown = "Somebody unknown at bank.example";
  assert.deepEqual(
    await Promise.all(
      [
        "",
        web,
        `${web}&type=app-link`,
        `${web}&type=qr`,
        `${web}&type=p2p`,
        "&conn=evilapp%3A%2F%2Fbank.example%2Fcb&type=app-link",
      ].map(sayEnds),
    ),
    [
      "Whoever gave you this; The signature is shown to you as a QR code, and sent to nobody.",
      `${unknown}; The signature goes to bank.example.`,
      `${unknown}; The signature goes to bank.example, within an address that is opened.`,
      `${unknown}; The signature is shown to you as a QR code, and sent to nobody.`,
      `${unknown}; The signature is left behind a link by which one reader can pick it up, once.`,
      "Somebody unknown at the app behind evilapp:; The signature goes to the app behind evilapp:, within an address that is opened.",
    ],
  );
});

await test("of several warnings each is shown, and each has to be accepted", async () => {
  const amount = [{ name: "value", type: "uint256" }];
  const link = tdLink({
    domain: {},
    primaryType: "SafeTx",
    types: { SafeTx: [{ name: "permit", type: "PermitSingle" }], PermitSingle: amount },
    message: { permit: { value: 1 } },
  });
  const { concerns, words } = await wallet.describe(link);
  assert.deepEqual(new Set(concerns), new Set(["safe-transaction", "permit"]));
  assert.equal(words.filter((line) => line.startsWith("Careful:")).length, 2);
  for (const one of concerns)
    await assert.rejects(wallet.approve(link, { accept: new Set([one]) }), /asks, and/);
  assert.equal((await wallet.approve(link, { accept: new Set(concerns) })).kind, "shown");
});

const said = async (text: string): Promise<unknown> =>
  (await wallet.describe(signLink(new TextEncoder().encode(text)))).data["text"];

await test("a text with a control character besides line feed and tab is shown as its bytes", async () => {
  assert.equal(await said("a\n\tb"), "a\n\tb");
  for (const hidden of ["\u0000", "\b", "\u000b", "\r", "\u001b", "\u001f", "\u007f"])
    assert.equal(await said(`a${hidden}b`), undefined, JSON.stringify(hidden));
});
