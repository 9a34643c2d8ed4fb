// An account that is a contract logs in and decides orders: its own code says whether it signed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Address, addressOfSubject, type Hex, hexOfBytes, sessionDigest } from "@svc/protocol";
import { concat, encodeAbiParameters, getCreate2Address, parseAbiParameters } from "viem";
import { type Anvil, startAnvil } from "../anvil.ts";
import { holdTimers } from "../held-timers.ts";
import { actorsOf } from "../kyb-world.ts";
import {
  decline,
  declineResult,
  type KycWorld,
  openKycWorld,
  openRequest,
  scanRequest,
  shareResult,
  verifyAccount,
} from "../kyc-world.ts";
import { approveByQr, logIn, openPage, statusOf } from "../login-flow.ts";
import {
  approvalOf,
  claim,
  newIdentity,
  openWalletSession,
  post,
  sameDeviceReturn,
  scan,
} from "../raw-wallet.ts";
import { fundedKey } from "../chain-processes.ts";

// PUSH4 <value> PUSH1 e0 SHL PUSH0 MSTORE PUSH1 20 PUSH0 RETURN: answers every call with these four bytes.
const answering = (value: string): string => `0x63${value}60e01b5f5260205ff3`;

let anvil: Anvil;
let world: KycWorld;
/** A contract has two seconds to answer, and a machine that stalls may take as long. */
const held = holdTimers(2_000);
before(async () => {
  anvil = await startAnvil();
  world = await openKycWorld({
    CHAIN_RPC_URL: anvil.url,
    SIGNER_KEY: fundedKey,
    CONFIRMATIONS: "1",
    // Rate limits exempt loopback: as a trusted proxy, the test names other addresses.
    TRUSTED_PROXIES: "127.0.0.0/8,::1",
  });
});
after(async () => {
  held[Symbol.dispose]();
  await world[Symbol.asyncDispose]();
  await anvil[Symbol.asyncDispose]();
});

/** What the wallet gets at `/w/logins`, each the name of a client. */
async function listLogins(baseUrl: string, headers: Record<string, string>): Promise<string[]> {
  const answer = await fetch(`${baseUrl}/w/logins`, { headers });
  const { items = [] } = (await answer.json()) as { items?: { clientName: string }[] };
  return items.map(({ clientName }) => clientName);
}

test("a wallet that is a contract logs in and lists its logins by ERC-1271, and only when the contract agrees", async () => {
  const contract = { ...newIdentity(), address: `0x${"c0".repeat(20)}` as const };
  await anvil.rpc("anvil_setCode", [contract.address, answering("ffffffff")]);
  const refused = await openPage(world.baseUrl, world.client);
  await assert.rejects(
    approveByQr(world.baseUrl, refused, contract),
    /answered 422.*signature_wrong/,
  );
  await anvil.rpc("anvil_setCode", [contract.address, answering("1626ba7e")]);
  const { tokens } = await logIn(world.baseUrl, world.client, contract);
  const { sub } = JSON.parse(
    Buffer.from(tokens.id_token.split(".")[1] ?? "", "base64url").toString(),
  ) as { sub: string };
  assert.equal(addressOfSubject(sub), contract.address);
  const session = await openWalletSession(world.baseUrl, contract);
  assert.deepEqual(await listLogins(world.baseUrl, session), ["Test shop"]);
  await anvil.rpc("anvil_setCode", [contract.address, answering("ffffffff")]);
  await assert.rejects(openWalletSession(world.baseUrl, contract), /answered 422.*signature_wrong/);
});

/** A wallet of 2,000 bytes of code, not deployed yet, and its ERC-6492 signature, which is good for any digest. */
function undeployed(): { address: Address; signature: Hex } {
  const code = `${answering("1626ba7e").slice(2)}${"00".repeat(2000)}`;
  const size = (code.length / 2).toString(16).padStart(4, "0");
  // PUSH2 size DUP1 PUSH1 0a RETURNDATASIZE CODECOPY RETURNDATASIZE RETURN, and the code.
  const initCode: Hex = `0x61${size}80600a3d393df3${code}`;
  const deployer = "0x4e59b44847b379578588920ca78fbf26c0b4956c";
  const salt: Hex = `0x${"07".repeat(32)}`;
  const address = getCreate2Address({ from: deployer, salt, bytecode: initCode });
  const words = parseAbiParameters("address, bytes, bytes");
  const wrapped = encodeAbiParameters(words, [deployer, concat([salt, initCode]), "0x02"]);
  const signature: Hex = `${wrapped}${"6492".repeat(16)}`;
  return { address: address.toLowerCase() as Address, signature };
}

test("a wallet that is not deployed yet logs in by either way, and declines, with all that deploys it", async () => {
  const { address, signature } = undeployed();
  const contract = { ...newIdentity(), address };
  for (const answer of ["approve", "decline"]) {
    const page = await openPage(world.baseUrl, world.client);
    const claimed = await claim(scan(page.qr), contract);
    const { digits } = await statusOf(world.baseUrl, page);
    const { claimSecret, ...approval } = approvalOf(claimed, String(digits));
    const body =
      answer === "approve" ? { ...approval, claimSecret } : { ...approval, error: "access_denied" };
    const answered = await post(claimed.connection, { ...body, signature });
    assert.equal(answered.status, 200, `${answer}: ${await answered.text()}`);
  }
  const page = await openPage(world.baseUrl, world.client);
  const url = new URL(sameDeviceReturn(scan(page.sameDevice), contract));
  url.searchParams.set("signature", signature);
  const returned = await page.jar.fetch(url.href, { redirect: "manual" });
  assert.equal(returned.status, 303, await returned.text());
  assert.equal(await anvil.rpc("eth_getCode", [address, "latest"]), "0x");
});

const signatureOf = (kibibytes: number): Hex => `0x${"ab".repeat(kibibytes * 1024)}`;

test("on the same device a contract's signature has room for 7 KiB in the address, by QR code for 16", async () => {
  const contract = { ...newIdentity(), address: `0x${"c3".repeat(20)}` as const };
  await anvil.rpc("anvil_setCode", [contract.address, answering("1626ba7e")]);
  for (const [kibibytes, expected] of [
    [7, 303],
    [16, 431],
  ] as const) {
    const page = await openPage(world.baseUrl, world.client);
    const url = new URL(sameDeviceReturn(scan(page.sameDevice), contract));
    url.searchParams.set("signature", signatureOf(kibibytes));
    const returned = await page.jar.fetch(url.href, { redirect: "manual" });
    assert.equal(returned.status, expected, await returned.text());
  }
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), contract);
  const { digits } = await statusOf(world.baseUrl, page);
  const body = { ...approvalOf(claimed, String(digits)), signature: signatureOf(16) };
  assert.equal((await post(claimed.connection, body)).status, 200);
});

/** Opens a session with what `sign` makes of the digest. @returns the status, and the reason of a refusal */
async function openBySignature(
  address: Address,
  sign: (digest: Hex) => Hex,
): Promise<[status: number, reason: string | undefined]> {
  const { baseUrl } = world;
  const asked = await post(`${baseUrl}/w/session/challenge`, {});
  const terms = (await asked.json()) as { challenge: string; deadline: number; origin: string };
  const signature = sign(hexOfBytes(sessionDigest(terms)));
  const { challenge, deadline } = terms;
  const given = { svcID: address, challenge, deadline, signature };
  const answer = await post(`${baseUrl}/w/session`, given);
  const { error } = (await answer.json()) as { error?: { reason: string } };
  return [answer.status, error?.reason];
}

/** Of wallets of our factories it is `01`. */
const markedBy =
  (mark: string) =>
  (digest: Hex): Hex =>
    `0x${mark}${digest.slice(2)}`;
const unreadable: Hex = `0x${"ff".repeat(64)}${"6492".repeat(16)}`;

const markedInCapitals = (digest: Hex): Hex => `0x01${digest.slice(2).toUpperCase()}`;

test("what wallets of our factories sign by opens no session, deployed, registered or not", async () => {
  const address = `0x${"c7".repeat(20)}` as const;
  await anvil.rpc("anvil_setCode", [address, answering("1626ba7e")]);
  const wrapped =
    (sign: (digest: Hex) => Hex) =>
    (digest: Hex): Hex => {
      const words = parseAbiParameters("address, bytes, bytes");
      const encoded = encodeAbiParameters(words, [address, "0x", sign(digest)]);
      return `${encoded}${"6492".repeat(16)}`;
    };
  const refused = [422, "signature_wrong"];
  assert.deepEqual(await openBySignature(address, markedBy("01")), refused);
  assert.deepEqual(await openBySignature(address, wrapped(markedBy("01"))), refused);
  assert.deepEqual(await openBySignature(address, markedInCapitals), refused);
  assert.deepEqual(await openBySignature(address, () => unreadable), refused);
  for (const sign of [markedBy("02"), wrapped(markedBy("02"))])
    assert.deepEqual((await openBySignature(address, sign))[0], 200);
});

const from = (address: string): Record<string, string> => ({ "x-forwarded-for": address });

test("a login asks a contract ten times a minute, and leaves the others their share", async () => {
  const contract = { ...newIdentity(), address: `0x${"c1".repeat(20)}` as const };
  await anvil.rpc("anvil_setCode", [contract.address, answering("ffffffff")]);
  const begin = async (): Promise<() => Promise<number>> => {
    const page = await openPage(world.baseUrl, world.client);
    const claimed = await claim(scan(page.qr), contract);
    const digits = String((await statusOf(world.baseUrl, page))["digits"]);
    const body = approvalOf(claimed, digits);
    return async () => (await post(claimed.connection, body, from("192.0.2.3"))).status;
  };
  const statuses: number[] = [];
  const [approve, approveOther] = [await begin(), await begin()];
  // The limit refills by one in six seconds.
  using _ = world.holdTime();
  for (let times = 0; times < 11; times += 1) statuses.push(await approve());
  assert.deepEqual(statuses, [...Array.from({ length: 10 }, () => 422), 429]);
  const described = (await (await fetch(`${world.baseUrl}/openapi.json`)).json()) as {
    paths: Record<string, { post: { responses: object } }>;
  };
  assert.ok("429" in (described.paths["/w/l/{loginId}"]?.post.responses ?? {}));
  assert.equal(await approveOther(), 422);
});

test("an address asks contracts 60 times a minute, however many logins it has, and leaves others their share", async () => {
  const contract = { ...newIdentity(), address: `0x${"c2".repeat(20)}` as const };
  await anvil.rpc("anvil_setCode", [contract.address, answering("ffffffff")]);
  const returnFrom = async (address: string, times: number): Promise<number[]> => {
    const { sameDevice } = await openPage(world.baseUrl, world.client);
    const url = sameDeviceReturn(scan(sameDevice), contract);
    const ask = async (): Promise<number> => (await fetch(url, { headers: from(address) })).status;
    return Promise.all(Array.from({ length: times }, ask));
  };
  const claimed = await claim(scan((await openPage(world.baseUrl, world.client)).qr), contract);
  const { claimSecret, ...unproved } = approvalOf(claimed, "00");
  const bodies = [
    { ...unproved, claimSecret },
    { ...unproved, error: "access_denied" },
  ];
  const answerFrom = async (address: string): Promise<number[]> =>
    Promise.all(
      bodies.map(async (body) => (await post(claimed.connection, body, from(address))).status),
    );
  // The limit refills by one a second.
  using _ = world.holdTime();
  const logins = [1, 2, 3, 4, 5, 6, 7, 8].map(async (at) => returnFrom(`2001:db8::${at}`, 10));
  const statuses = (await Promise.all(logins)).flat();
  assert.equal(statuses.filter((status) => status === 422).length, 60);
  assert.ok(statuses.includes(429));
  assert.deepEqual(await answerFrom("2001:db8::ff"), [429, 429]);
  assert.deepEqual(await answerFrom("2001:db8:0:1::1"), [422, 422]);
  assert.deepEqual(await returnFrom("2001:db8:0:1::1", 1), [422]);
});

test("an order of an account that is a contract asks it ten times a minute by each link, and leaves the others their share", async () => {
  const person = await world.verify();
  await anvil.rpc("anvil_setCode", [person.address, answering("ffffffff")]);
  const contract = { ...person, privateKey: newIdentity().privateKey };
  const askFor = async (fields: string[]): Promise<unknown> =>
    (await world.ask({ user: person.address, fields })).body.data?.["link"];
  const link = await askFor(["EMAIL"]);
  const opened = await openRequest(link);
  const statuses: number[] = [];
  // The limit refills by one in six seconds.
  using _ = world.holdTime();
  for (let times = 0; times < 6; times += 1)
    for (const answer of [declineResult(contract, link), shareResult(contract, opened)])
      statuses.push((await post(opened.connection, answer, from("192.0.2.4"))).status);
  assert.deepEqual(statuses, [...Array.from({ length: 10 }, () => 422), 429, 429]);
  await anvil.rpc("anvil_setCode", [person.address, answering("1626ba7e")]);
  const other = await askFor(["IDCARD_DOB"]);
  const declined = declineResult(contract, other);
  const { connection } = scanRequest(other);
  assert.equal((await post(connection, declined, from("192.0.2.4"))).status, 200);
});

/** Declines an order with a signature that is nobody's. */
async function declineFrom(address: string, link: unknown): Promise<number> {
  const { connection, id } = scanRequest(link);
  const body = { error: "access_denied", id, signature: `0x${"11".repeat(65)}` };
  return (await post(connection, body, from(address))).status;
}

test("an address asks contracts 60 times a minute, however many orders it was shown, and leaves others their share", async () => {
  const links: unknown[] = [];
  for (let orders = 0; orders < 8; orders += 1) {
    const { sourceKey } = await world.buy();
    links.push((await world.ask({ sourceKey })).body.data?.["link"]);
  }
  const [other, ...flooded] = links;
  // The limit refills by one a second.
  using _ = world.holdTime();
  const asked = flooded.flatMap((link) => Array.from({ length: 10 }, () => link));
  const statuses = await Promise.all(asked.map(async (link) => declineFrom("192.0.2.1", link)));
  assert.equal(statuses.filter((status) => status === 422).length, 60);
  assert.ok(statuses.includes(429));
  assert.equal(await declineFrom("192.0.2.2", other), 422);
});

test("a business logs in by its members, opens no session and decides no order, never by its own signature", async () => {
  const { address } = await actorsOf(world, world.apiKey).found();
  // The contract accepts everything, as if the members had approved it all.
  await anvil.rpc("anvil_setCode", [address, answering("1626ba7e")]);
  const page = await openPage(world.baseUrl, world.client);
  const contract = { ...newIdentity(), address };
  await assert.rejects(approveByQr(world.baseUrl, page, contract), /answered 422.*signature_wrong/);
  await assert.rejects(openWalletSession(world.baseUrl, contract), /answered 422.*signature_wrong/);
  await verifyAccount(world, address);
  const asked = await world.ask({ user: address, fields: ["EMAIL"] });
  assert.equal((await decline(contract, asked.body.data?.["link"])).status, 422);
});
