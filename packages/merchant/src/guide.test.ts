import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { startAnvil } from "../../../test/anvil.ts";
import { attestCompany, someReleased } from "../../../test/attested-company.ts";
import {
  infos,
  issuer,
  openSettledChain,
  settleOrder,
  user as holder,
} from "../../../test/settled-order.ts";
import { business as company, requestId as releasedId } from "../test/fake-business.ts";
import { alice, clientId, openFakeIssuer } from "../test/fake-issuer.ts";
import {
  openKyb,
  openKyc,
  openMerchant,
  verifyCompanyProof,
  verifyProof,
  type Attestation,
  type ChainAnchors,
  type Info,
  type Kyb,
  type Kyc,
  type Merchant,
} from "./index.ts";

const root = join(import.meta.dirname, "../../..");
const guides = ["login", "kyc", "kyb"] as const;
const read = (guide: string) => readFileSync(join(root, `docs/guides/${guide}.md`), "utf8");

const trimmed = (text: string) => text.split("\n").map((line) => line.trim());
/** The lines that a diff leaves in a file: new ones, between those that were there. */
const resultOf = (diff: string) =>
  trimmed(diff.replaceAll(/^[+ ]/gm, "")).filter((line, index) => index > 0 || line !== "");

for (const guide of guides) {
  test(`every line of code in the ${guide} guide stands, in this order, in the file it names`, () => {
    const text = read(guide);
    const blocks = [...text.matchAll(/<!-- (\S+) -->\n\n```(ts|diff)\n([\s\S]*?)```/g)];
    const unnamed = [...text.matchAll(/^```(?:ts|diff)$/gm)].length - blocks.length;
    assert.equal(unnamed, 0, "every block names its file");
    assert.ok(blocks.length > 5);
    for (const [, file = "", kind, code = ""] of blocks) {
      assert.doesNotMatch(kind === "diff" ? code : "", /^[^+ \n]/m, "nothing is taken away");
      const lines = kind === "diff" ? resultOf(code) : trimmed(code);
      const source = trimmed(readFileSync(join(root, file), "utf8")).join("\n");
      assert.ok(source.includes(lines.join("\n").trim()), `${file} no longer holds:\n${code}`);
    }
  });

  test(`every code of an error in the ${guide} guide exists`, () => {
    const source = readFileSync(join(import.meta.dirname, "merchant-error.ts"), "utf8");
    const table = /\| `code`[\s\S]*?\n\n/.exec(read(guide))?.[0] ?? "";
    const rows = [...table.matchAll(/^\| ([^|]*)/gm)].map(([, codes = ""]) => codes).join();
    const codes = [...rows.matchAll(/`([a-z]+_[a-z_]+)`/g)].map(([, code]) => code);
    assert.ok(codes.length > 9);
    for (const code of codes) assert.ok(source.includes(`  ${code}:`), code);
  });
}

test("the kyc guide's tables name every fact and every event", () => {
  const text = read("kyc");
  const tables: [head: string, file: string, pattern: RegExp][] = [
    ["fact", "receipt.ts", /^ {2}\| \{ fact: "(\w+)"/gm],
    ["event", "order-event.ts", /^ {2}event: "([a-z.]+)";/gm],
  ];
  for (const [head, file, pattern] of tables) {
    const table = new RegExp(`\\| \`${head}\`[\\s\\S]*?\\n\\n`).exec(text)?.[0] ?? "";
    const rows = [...table.matchAll(/^\| ([^|]*)/gm)].slice(2).map(([, names = ""]) => names);
    const named = [...rows.join().matchAll(/`([a-z._]+)`/g)].map(([, name]) => name);
    const source = readFileSync(join(import.meta.dirname, file), "utf8");
    const declared = [...source.matchAll(pattern)].map(([, name]) => name);
    assert.ok(declared.length > 3);
    assert.deepEqual(new Set(named), new Set(declared));
  }
});

test("the kyb guide's table names every event", () => {
  const table = /\| `event`[\s\S]*?\n\n/.exec(read("kyb"))?.[0] ?? "";
  const named = [...table.matchAll(/^\| `([a-z._]+)` +\|/gm)].map(([, name]) => name).slice(1);
  const source = readFileSync(join(import.meta.dirname, "kyb-event.ts"), "utf8");
  const kinds = [...source.matchAll(/^(?: {2}|.* = )"(kyb\.[a-z._]+)"[,;]$/gm)].map(
    ([, name]) => name,
  );
  assert.ok(kinds.length > 9);
  assert.deepEqual(new Set(named), new Set([...kinds, "unknown"]));
});

test("the guide's API knows who calls", async () => {
  await using fake = await openFakeIssuer();
  const merchant = openMerchant({
    issuer: fake.url,
    clientId,
    redirectUri: "http://localhost/callback",
  });
  const accessToken = await fake.sign("at+jwt", fake.accessClaims());
  assert.equal(await whoCalls(merchant, `Bearer ${accessToken}`, fake.now), alice);
  for (const header of ["", "Bearer", "Bearer x", `Basic ${accessToken}`]) {
    await assert.rejects(whoCalls(merchant, header, fake.now), { code: "token_refused" });
  }
});

async function whoCalls(merchant: Merchant, authorization: string, now: number): Promise<string> {
  const [, accessToken = ""] = /^Bearer (.+)$/i.exec(authorization) ?? [];
  const audience = "https://api.example.com";
  const { user } = await merchant.verifyAccessToken(accessToken, { audience, now });
  return user;
}

interface Stored {
  user: string;
  info: Info;
}

test("the guide's proof of a stored field asks a node of the chain alone", async () => {
  await using anvil = await startAnvil();
  const chain = await openSettledChain(anvil);
  const { chainId } = anvil;
  const expiresAt = (await chain.now()) + 60;
  const order = await settleOrder(chain, { chainId, expiresAt });
  const proofs = order.proofs.filter(({ field }) => field === "EMAIL");
  const send = async () => Response.json({ data: { proofs }, message: "", success: true });
  const kyc = openKyc({ issuer: "https://id.example", apiKey: "svc_test_1", fetch: send });
  const [info] = infos;
  assert.ok(info !== undefined);
  const own = { rpcUrl: anvil.url, chainId, registry: chain.registry, issuers: [issuer] };
  assert.equal(
    await isProvedToday(kyc, { user: holder, info }, { ...own, now: expiresAt - 1 }),
    true,
  );
  assert.equal(await isProvedToday(kyc, { user: holder, info }, { ...own, now: expiresAt }), false);
});

async function isProvedToday(kyc: Kyc, { user, info }: Stored, anchors: ChainAnchors) {
  const [proof] = await kyc.proof({ user, items: [info.field] });
  const expected = { user, field: info.field, value: info };
  const { proved } = await verifyProof(proof, expected, anchors);
  return proved.some(({ fact }) => fact === "live");
}

test("the guide's proof of a release asks a node of the chain alone", async () => {
  await using anvil = await startAnvil();
  const chain = await openSettledChain(anvil);
  const { chainId } = anvil;
  const expiresAt = (await chain.now()) + 60;
  const proofs = await attestCompany(chain, { chainId, expiresAt });
  const { kyb } = openFakeKyb({ [`/data-requests/${releasedId}/proofs`]: { proofs } });
  const own = { rpcUrl: anvil.url, chainId, registry: chain.registry, issuers: [issuer] };
  const provenance = { subjectType: "", provenance: "Register AG", asOf: 0, expiresAt };
  const fields = someReleased.map((field, index) =>
    Object.assign({ hash: proofs[index]?.leaf ?? "0x" }, provenance, field),
  );
  const times = { issuedAt: 0, approvedAt: 0, expiresAt };
  const released = { eventId: "", requestId: releasedId, business: company, ...times, fields };
  assert.equal(await isReleaseProved(kyb, released, { ...own, now: expiresAt - 1 }), true);
  assert.equal(await isReleaseProved(kyb, released, { ...own, now: expiresAt }), false);
  const [first, ...others] = fields;
  const changed = { ...released, fields: [Object.assign({}, first, { value: "B" }), ...others] };
  await assert.rejects(isReleaseProved(kyb, changed, { ...own, now: 0 }), {
    code: "proof_refused",
    reason: "commitment",
  });
});

async function isReleaseProved(kyb: Kyb, released: Attestation, anchors: ChainAnchors) {
  const { requestId, business, fields } = released;
  const proofs = new Map((await kyb.proofs(requestId)).map((proof) => [proof.leaf, proof]));
  for (const field of fields) {
    const proof = proofs.get(field.hash);
    const { standing } = await verifyCompanyProof(proof, { business, field }, anchors);
    if (standing !== "LIVE") return false;
  }
  return true;
}

/** A service that answers each path with this body, and notes what it was asked. */
function openFakeKyb(answers: Readonly<Record<string, object>>) {
  const calls: { path: string; body: unknown; idempotencyKey: string | null }[] = [];
  const send = async (url: string | URL | Request, init: RequestInit = {}) => {
    const path = new URL(url instanceof Request ? url.url : url).pathname.replace(
      "/api/v1/kyb",
      "",
    );
    const headers = new Headers(init.headers);
    const body: unknown = typeof init.body === "string" ? JSON.parse(init.body) : undefined;
    calls.push({ path, body, idempotencyKey: headers.get("idempotency-key") });
    return Response.json(answers[path] ?? {});
  };
  const kyb = openKyb({ issuer: "https://id.example", apiKey: "svc_test_1", fetch: send });
  return { kyb, calls };
}

test("the guide's quote is compared with what is available, to the Rappen", async () => {
  assert.equal(await isEnough(4.35), true);
  assert.equal(await isEnough(4.34), false);
});

/** Whether this much is enough to ask for something that costs CHF 4.35. */
async function isEnough(availableChf: number): Promise<boolean> {
  const lines = [{ field: "BUSINESS_LEGAL_NAME", tier: "A", cents: 435 }];
  const account = { totalChf: 10, spentChf: 0, frozenChf: 0, availableChf, billingEnabled: true };
  const { kyb } = openFakeKyb({
    "/data-requests/quote": { currency: "CHF", totalCents: 435, lines },
    "/billing/account": { currency: "CHF", ...account },
  });
  return isAffordable(kyb, { business: holder, fields: ["BUSINESS_LEGAL_NAME"] });
}

async function isAffordable(kyb: Kyb, asked: { business: string; fields: string[] }) {
  const { totalCents } = await kyb.quote(asked);
  const { availableChf } = await kyb.billing();
  return totalCents <= Math.round(availableChf * 100);
}

test("the guide's offer is the same for one till, and shows its code as an image", async () => {
  const { kyb, calls } = openFakeKyb({
    "/signature-requests/offers": {
      offerId: "offer",
      status: "OPEN",
      link: "svc:sign?data=0x00",
      universalLink: "https://wallet.example/l#svc:sign?data=0x00",
      qrcode: "iVBORw0KGgo=",
      expiresAt: 1_800_000_000,
    },
  });
  const shown = await offerTerms(kyb, { message: "Terms", till: "4" });
  assert.deepEqual(shown, {
    link: "svc:sign?data=0x00",
    image: "data:image/png;base64,iVBORw0KGgo=",
  });
  assert.equal(calls[0]?.idempotencyKey, "terms-1-4");
});

async function offerTerms(kyb: Kyb, { message, till }: { message: string; till: string }) {
  const asked = { messageKind: "TEXT", message, purpose: "Our terms for companies" } as const;
  const { link, qrcode } = await kyb.offerSignature(asked, { idempotencyKey: `terms-1-${till}` });
  return { link, image: `data:image/png;base64,${qrcode}` };
}
