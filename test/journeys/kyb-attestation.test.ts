// What the service signs of a release, before a verifier that is not ours: jose with the published key set.
import assert from "node:assert/strict";
import { createPublicKey, type JsonWebKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  generateKeyPair,
  type JSONWebKeySet,
  jwtVerify,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  SignJWT,
  UnsecuredJWT,
} from "jose";
import { encodeAbiParameters, type Hex, keccak256, parseAbiParameters, stringToBytes } from "viem";
import { verifyAttestation } from "../../packages/merchant/src/index.ts";
import { getRelease } from "../../service/src/kyb/release/releases.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { runVerb } from "../operator-verbs.ts";
import { actsOn } from "../audited-acts.ts";
import { openDataWorld, requestsPath } from "../kyb-data-world.ts";

const keyLifetimeSeconds = 60 * 86_400;
const monthSeconds = 30 * 86_400;
await using world = await openDataWorld({
  environment: { KEY_LIFETIME_SECONDS: String(keyLifetimeSeconds) },
});
const { ctx, clientDomainId } = world;
const jwksUrl = new URL("/.well-known/kyb-jwks.json", world.baseUrl);
const keys = createRemoteJWKSet(jwksUrl, { cooldownDuration: 0 });

/** The key set as a new verifier gets it. */
async function published(): Promise<JSONWebKeySet> {
  return (await (await fetch(jwksUrl)).json()) as JSONWebKeySet;
}

/** What a careful merchant demands, at the service's time. */
const demands = (): JWTVerifyOptions => ({
  issuer: `${world.baseUrl}/kyb`,
  audience: clientDomainId,
  typ: "kyb-attestation+jwt",
  algorithms: ["RS256"],
  currentDate: new Date(ctx.clock.now() * 1000),
});

const verify = async (jwt: string, changed: JWTVerifyOptions = {}, by: JWTVerifyGetKey = keys) =>
  jwtVerify(jwt, by, { ...demands(), ...changed });

async function release(): Promise<string> {
  const { body } = await world.ask();
  const id = String(body["requestId"]);
  for (const name of ["alice", "bob"]) await world.voteAs(name, id);
  await world.waitFor(id, "released");
  const answer = await world.call("GET", `${requestsPath}/${id}/release`);
  return String(answer.body["attestation"]);
}

const attestation = await release();

await test("jose accepts an attestation with the published keys", async () => {
  const { payload, protectedHeader } = await verify(attestation);
  assert.equal(payload.aud, clientDomainId);
  assert.equal(protectedHeader.typ, "kyb-attestation+jwt");
  const { kid } = protectedHeader;
  const jwk = (await published()).keys.find((each) => each.kid === kid);
  assert.deepEqual([jwk?.kty, jwk?.alg, jwk?.use], ["RSA", "RS256", "sig"]);
  assert.ok(jwk !== undefined && !("d" in jwk));
  const kept = sql`
    select body from webhook_event where stream_id = ${String(payload["stream_id"])} and sequence = 2`;
  assert.deepEqual(await ctx.db.query(kept), [{ body: null }], "the event has it sealed alone");
  const acts = await actsOn(ctx.db, String(payload["stream_id"]));
  assert.deepEqual(acts, [`${payload.sub} data-request.release`]);
});

await test("a release is handed out to the last second of its 30 days, and not after them, purged or not", async () => {
  const { stream_id: id } = decodeJwt(attestation);
  const at = async (now: number) =>
    getRelease({ ...ctx, clock: { ...ctx.clock, now: () => now } }, String(id));
  const { releasedAt, expiresAt } = await at(0);
  assert.equal(expiresAt, releasedAt + monthSeconds);
  assert.equal((await at(expiresAt - 1)).attestation, attestation);
  await assert.rejects(at(expiresAt), { reason: "payload_expired" });
});

const hashOf = (text: string): Hex => keccak256(stringToBytes(text));

await test("every hash can be recomputed as the reference says, with a library that is not ours", () => {
  const reference = readFileSync(new URL("../../docs/reference/kyb.md", import.meta.url), "utf8");
  const [leafType = ""] = /Leaf\([^)]+\)/.exec(reference) ?? [];
  const { sub, fields } = decodeJwt<{ fields: Record<string, string>[] }>(attestation);
  assert.ok(fields.some(({ subject }) => subject !== ""));
  for (const { name = "", subject = "", value = "", pepper, hash, expires_at: end } of fields) {
    const commitment = keccak256(
      encodeAbiParameters(parseAbiParameters("bytes32, bytes32"), [hashOf(value), pepper as Hex]),
    );
    const field = hashOf(subject === "" ? name : `${name}/${subject}`);
    const leaf = encodeAbiParameters(
      parseAbiParameters("bytes32, address, bytes32, bytes32, uint64"),
      [hashOf(leafType), sub as Hex, field, commitment, BigInt(end ?? 0)],
    );
    assert.equal(keccak256(keccak256(leaf)), hash, name);
  }
});

await test("jose refuses alg none, and the public key as the secret of HS256, in any of its forms", async () => {
  const claims = decodeJwt(attestation);
  const header = decodeProtectedHeader(attestation);
  await assert.rejects(verify(new UnsecuredJWT(claims).encode()));
  const none = Buffer.from(JSON.stringify({ ...header, alg: "none" })).toString("base64url");
  await assert.rejects(verify(`${none}.${attestation.split(".")[1]}.`), errors.JOSEAlgNotAllowed);
  const jwk = (await published()).keys.find(({ kid }) => kid === header.kid);
  assert.ok(jwk !== undefined);
  const key = createPublicKey({ key: jwk as JsonWebKey, format: "jwk" });
  const secrets = [
    key.export({ format: "pem", type: "spki" }),
    key.export({ format: "pem", type: "pkcs1" }),
    key.export({ format: "der", type: "spki" }),
    JSON.stringify(jwk),
    Buffer.from(jwk.n ?? "", "base64url"),
  ];
  for (const secret of secrets) {
    const forged = await new SignJWT(claims)
      .setProtectedHeader({ ...header, alg: "HS256" })
      .sign(new Uint8Array(Buffer.from(secret)));
    await assert.rejects(verify(forged), errors.JOSEAlgNotAllowed);
    // It fails even if a merchant forgot to name the algorithm, because an RSA key is none for HS256.
    const { algorithms: _, ...careless } = demands();
    await assert.rejects(jwtVerify(forged, keys, careless));
  }
});

await test("jose refuses another typ, another audience, another issuer, another key and another time", async () => {
  await assert.rejects(verify(attestation, { typ: "at+jwt" }), errors.JWTClaimValidationFailed);
  await assert.rejects(verify(attestation, { typ: "JWT" }), errors.JWTClaimValidationFailed);
  const audience = "0190c0de-0000-7000-8000-000000000001";
  await assert.rejects(verify(attestation, { audience }), errors.JWTClaimValidationFailed);
  const issuer = world.baseUrl;
  await assert.rejects(verify(attestation, { issuer }), errors.JWTClaimValidationFailed);
  const { privateKey } = await generateKeyPair("RS256");
  const forged = await new SignJWT(decodeJwt(attestation))
    .setProtectedHeader({ ...decodeProtectedHeader(attestation), alg: "RS256" })
    .sign(privateKey);
  await assert.rejects(verify(forged), errors.JWSSignatureVerificationFailed);
  const lateDate = new Date((Number(decodeJwt(attestation).exp) + 1) * 1000);
  await assert.rejects(verify(attestation, { currentDate: lateDate }), errors.JWTExpired);
  const [header, , signature] = attestation.split(".");
  const changed = { ...decodeJwt(attestation), sub: `0x${"22".repeat(20)}` };
  const claims = Buffer.from(JSON.stringify(changed)).toString("base64url");
  await assert.rejects(
    verify(`${header}.${claims}.${signature}`),
    errors.JWSSignatureVerificationFailed,
  );
});

await test("no other key of the service signs attestations, and these keys sign nothing else", async () => {
  const answer = await fetch(new URL("/.well-known/jwks.json", world.baseUrl));
  const others = (await answer.json()) as JSONWebKeySet;
  const kids = new Set(others.keys.map(({ kid }) => kid));
  assert.ok(others.keys.length > 0);
  for (const { kid } of (await published()).keys) assert.ok(!kids.has(kid));
  const byOthers = createLocalJWKSet(others);
  await assert.rejects(verify(attestation, {}, byOthers), errors.JWKSNoMatchingKey);
});

await test("after a rotation old attestations verify until they expire, and the key goes with them", async () => {
  const now = ctx.clock.now();
  // Keys start at whole multiples of their lifetime; go to the last hour of one.
  await world.advance(keyLifetimeSeconds - (now % keyLifetimeSeconds) - 3600);
  await world.issueRecord(world.business.address, [
    { field: "BUSINESS_LEGAL_NAME", data: "Muster AG" },
    { field: "BUSINESS_DIRECTOR_COUNT", data: "2" },
    { field: "BUSINESS_DIRECTOR_NAME", subject: "director-1", data: "Canary Muster" },
  ]);
  const old = await release();
  await world.until("the successor is published before it signs", async () =>
    (await published()).keys.length >= 2 ? true : null,
  );
  const before = await published();
  await world.advance(3600 + 60);
  const fresh = await release();
  const [oldKid, freshKid] = [old, fresh].map((each) => decodeProtectedHeader(each).kid);
  assert.notEqual(oldKid, freshKid);
  // A verifier that fetched the keys before the rotation knows the new one already.
  await verify(fresh, {}, createLocalJWKSet(before));
  await verify(old);

  await world.advance(monthSeconds - 3600 - 600);
  assert.ok(ctx.clock.now() < Number(decodeJwt(old).exp));
  const late = await published();
  await verify(old, {}, createLocalJWKSet(late));
  await verifyAttestation(old, {
    issuer: world.baseUrl,
    clientDomainId,
    now: ctx.clock.now(),
    keys: late,
  });
  await world.advance(3600 + 2400);
  await assert.rejects(verify(old), errors.JWTExpired);
  await world.until("the old key is no longer published", async () =>
    (await published()).keys.some(({ kid }) => kid === oldKid) ? null : true,
  );
  await verify(await release(), {}, createLocalJWKSet(await published()));
});

async function svc(...args: string[]): Promise<Record<string, unknown>[]> {
  const [status, said] = await runVerb(world, args, { BASE_URL: world.baseUrl, CHAIN: "off" });
  assert.equal(status, 0, said);
  return [JSON.parse(said)].flat() as Record<string, unknown>[];
}

await test("a key that was rotated or revoked by an operator signs no more, in the process that runs too", async () => {
  const old = await release();
  const isPublished = async (kid: unknown): Promise<boolean> =>
    (await published()).keys.some((key) => key.kid === kid);
  const [rotated] = await svc("key", "rotate", "kyb-attestation");
  await world.until("the process signs with the key that took over", async () => {
    const { kid } = decodeProtectedHeader(await release());
    return kid === rotated?.["current"] ? true : null;
  });
  await verify(old, {}, createLocalJWKSet(await published()));
  const { kid } = decodeProtectedHeader(old);
  await svc("key", "revoke", String(kid));
  await world.until("the revoked key is published no more", async () =>
    (await isPublished(kid)) ? null : true,
  );
  const listed = await svc("key", "list");
  assert.ok(!listed.some((key) => key["kid"] === kid));
  assert.deepEqual(
    listed.filter(({ purpose }) => purpose === "kyb-attestation").map(({ status }) => status),
    ["current", "next"],
  );
});
