import assert from "node:assert/strict";
import { test } from "node:test";

import { bytesOfText, hexOfBytes, personalDigest, typedDataDigest } from "@svc/protocol";

import { verifyBusinessSignature, type SignatureAnchors, type SignedContent } from "./index.ts";

const business = `0x${"ab".repeat(20)}`;
const chainId = 31_337;
const message = "We deliver on Monday.";
const digest = hexOfBytes(personalDigest(bytesOfText(message)));
const signature = `0x01${digest.slice(2)}`;
const typedData = {
  domain: { name: "Orders" },
  types: { Order: [{ name: "text", type: "string" }] },
  primaryType: "Order",
  message: { text: message },
};
/** A word whose first four bytes are the magic value of ERC-1271. */
const signed = `0x1626ba7e${"0".repeat(56)}`;

interface Call {
  readonly method: string;
  readonly params?: unknown;
}

/** A node that answers every call of a contract with these bytes, and keeps what it was asked. */
function openNode({ answer = signed, id = chainId }: { answer?: string; id?: number } = {}) {
  const calls: { to?: string; data: string; gas?: string }[] = [];
  const request = async ({ method, params }: Call): Promise<unknown> => {
    if (method === "eth_chainId") return `0x${id.toString(16)}`;
    if (answer === "revert") throw Object.assign(new Error("execution reverted"), { code: 3 });
    if (answer === "away") throw new Error("connection refused");
    const [call] = params as [{ to?: string; data: string; gas?: string }];
    calls.push(call);
    return answer;
  };
  return { calls, client: { request } };
}

async function verify(
  node: ReturnType<typeof openNode>,
  given: { signature?: string; content?: SignedContent; anchors?: Partial<SignatureAnchors> } = {},
): Promise<void> {
  const anchors = { client: node.client, chainId, business, timeoutMs: 60_000, ...given.anchors };
  return verifyBusinessSignature(
    given.signature ?? signature,
    given.content ?? { message },
    anchors,
  );
}

const misconfigured = (reason: string) => ({ code: "configuration_invalid", reason });
const refused = (reason: string) => ({ code: "signature_refused", reason });

test("the wallet itself is asked about the digest of the caller's own document", async () => {
  const node = openNode();
  await verify(node);
  await verify(node, {
    content: { typedData },
    signature: signature.toUpperCase().replace("X", "x"),
  });
  const [text, document] = node.calls;
  assert.equal(text?.to, business);
  assert.ok(Number(text?.gas) <= 1_000_000);
  assert.ok(text?.data.startsWith(`0x1626ba7e${digest.slice(2)}`));
  assert.ok(document?.data.includes(hexOfBytes(typedDataDigest(typedData)).slice(2)));
  assert.ok(document?.data.includes(signature.slice(2)));
});

test("a signature of another form is refused before the node is asked", async () => {
  const node = openNode();
  const forms = [
    "",
    "0x",
    digest,
    `0x02${digest.slice(2)}`,
    `${signature}00`,
    `0x01${"g".repeat(64)}`,
  ];
  for (const each of forms)
    await assert.rejects(verify(node, { signature: each }), refused("signature"), each);
  assert.deepEqual(node.calls, []);
});

test("a node of another chain vouches for nothing", async () => {
  const node = openNode({ id: 1 });
  await assert.rejects(verify(node), refused("chainId"));
  assert.deepEqual(node.calls, []);
});

test("anything but the magic value of ERC-1271 is a no", async () => {
  const answers = [
    "0x",
    "0x1626ba7e",
    // The call itself, sent back.
    `0x1626ba7e${"11".repeat(28)}`,
    `0xffffffff${"0".repeat(56)}`,
    `0x${"0".repeat(64)}`,
    "revert",
  ];
  for (const answer of answers)
    await assert.rejects(verify(openNode({ answer })), refused("contract"), answer);
});

test("a node that is away is no refusal", async () => {
  await assert.rejects(verify(openNode({ answer: "away" })), { code: "chain_unreachable" });
});

test("a malformed document or address is the caller's mistake", async () => {
  const content = { typedData: { ...typedData, primaryType: "Missing" } };
  await assert.rejects(verify(openNode(), { content }), misconfigured("typedData"));
  for (const lost of [undefined, null, bytesOfText(message), 5] as unknown as string[])
    await assert.rejects(
      verify(openNode(), { content: { message: lost } }),
      misconfigured("message"),
    );
  const anchors = { business: "0x12" };
  await assert.rejects(verify(openNode(), { anchors }), misconfigured("business"));
});
