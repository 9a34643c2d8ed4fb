// What a broker does about verified fields, for the wallet's tests: it issues credentials, asks for fields, keeps boxes,
// has a chain. It checks what a wallet sends as the real one does, and lies when told to.
import { randomBytes } from "node:crypto";
import {
  buildTree,
  commitmentOf,
  decodeInfos,
  declineDigest,
  fieldsHash,
  hexOfBytes,
  leafOf,
  leavesHash,
  requestObjectHash,
  shareDigest,
  type Address,
  type FieldName,
  type Hex32,
} from "@svc/protocol";
import {
  problem,
  signJws,
  signerOf,
  type Answer,
  type FakeBroker,
  type Received,
} from "./fake-broker.ts";

/** The time at which everything here is in force. */
export const now = 1_000_030;
export const deadline = 1_000_600;
export const from: Address = `0x${"ab".repeat(20)}`;
export const requestToken = "o-token";

export interface Issued {
  id: string;
  environment: "live" | "sandbox";
  issuer: { id: Address; name: string };
  document: string;
  status: string;
  issuedAt: number;
  root: Hex32;
  collected: boolean;
  fields: { field: FieldName; expiresAt: number; data?: string; pepper?: Hex32; proof?: Hex32[] }[];
}

const random32 = (): Hex32 => hexOfBytes(randomBytes(32));

/** A credential as an issuer makes it. */
export function issue(
  user: Address,
  values: Partial<Record<FieldName, string>>,
  changed: Partial<Issued> & { expiresAt?: number } = {},
): Issued {
  const { expiresAt = 2_000_000, ...others } = changed;
  const salted = Object.entries(values).map(([name, data]) => {
    const field = name as FieldName;
    const pepper = random32();
    const commitment = commitmentOf({ data, pepper });
    return { field, data, pepper, leaf: leafOf({ user, field, commitment, expiresAt }) };
  });
  const tree = buildTree([...salted.map(({ leaf }) => leaf), random32()]);
  return {
    id: crypto.randomUUID(),
    environment: "live",
    issuer: { id: `0x${"15".repeat(20)}`, name: "Demo issuer" },
    document: "idcard",
    status: "live",
    issuedAt: 999_000,
    root: tree.root,
    collected: false,
    fields: salted.map(({ field, data, pepper, leaf }) => ({
      field,
      expiresAt,
      data,
      pepper,
      proof: tree.proofOf(leaf),
    })),
    ...others,
  };
}

export type FakeFields = ReturnType<typeof serveFields>;

/** Adds the routes to a broker. */
export function serveFields(broker: FakeBroker) {
  broker.deadline = now + 300;
  const fake = {
    issued: [] as Issued[],
    /** Members of the request object to replace; undefined leaves one out. */
    object: {} as Record<string, unknown>,
    header: {} as Record<string, unknown>,
    /** Another key than the broker's signs. */
    signer: null as FakeBroker["key"] | null,
    required: ["IDCARD_DOB", "EMAIL"] as string[],
    optional: ["ADDRESS_CITY"] as string[],
    purpose: "To check your age." as string | undefined,
    /** What the order became, and the fields that came with it. */
    status: "PENDING",
    shared: [] as readonly { field: string; data: string; pepper: string }[],
    error: undefined as unknown,
    /** The request object as it was last sent. */
    opened: "",
    boxes: new Map<string, { box: string; reader?: string }>(),
    link: (changed: Record<string, string | undefined> = {}) => linkOf(fake, broker, changed),
    reset() {
      Object.assign(fake, { issued: [], object: {}, header: {}, signer: null, status: "PENDING" });
      Object.assign(fake, { required: ["IDCARD_DOB", "EMAIL"], optional: ["ADDRESS_CITY"] });
      Object.assign(fake, { shared: [], error: undefined, purpose: "To check your age." });
      fake.boxes.clear();
    },
  };
  broker.more = (request, isInSession) => routeFields(fake, broker, { request, isInSession });
  return fake;
}

function linkOf(
  fake: FakeFields,
  broker: FakeBroker,
  changed: Record<string, string | undefined>,
): string {
  const names = [...fake.required, ...fake.optional];
  const parameters = {
    conn: `${broker.url}/w/o/${requestToken}`,
    from,
    dl: String(deadline),
    attr: names.map((name) => name.toLowerCase().replaceAll("_", "-")).join(","),
    id: "reference",
    type: "callback",
    ...changed,
  };
  const pairs = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return `svc:request?${pairs.map(([name, value]) => `${name}=${encodeURIComponent(value ?? "").replaceAll("%2C", ",")}`).join("&")}`;
}

interface Asked {
  readonly request: Received;
  readonly isInSession: boolean;
}

function routeFields(fake: FakeFields, broker: FakeBroker, asked: Asked): Answer | null {
  const { path, body, method } = asked.request;
  if (path === `/w/o/${requestToken}/open`)
    return {
      status: 200,
      body: (fake.opened = objectOf(fake, broker)),
      headers: { "content-type": "application/jwt" },
    };
  if (path === `/w/o/${requestToken}`) return takeAnswer(fake, broker, body);
  if (/^\/w\/mailbox\/.*\/take$/.test(path)) return takeBox(fake, path, body);
  const isSessionPath = /^\/w\/(?:credentials|emails|mailbox|relay)\b/.test(path);
  if (!isSessionPath) return null;
  if (!asked.isInSession) return problem(401, "wallet_session_required");
  if (path.startsWith("/w/credentials")) return routeCredentials(fake, path);
  if (path === "/w/mailbox") return leaveBox(fake, body);
  if (path === "/w/relay") return { status: 200, body: { status: 202, text: `{"taken":true}` } };
  return method === "POST" ? routeEmails(path, body) : null;
}

function routeCredentials(fake: FakeFields, path: string): Answer {
  const id = /^\/w\/credentials\/([^/]+)\/collected$/.exec(path)?.[1];
  if (id === undefined) return { status: 200, body: { items: fake.issued } };
  const credential = fake.issued.find((each) => each.id === id);
  if (credential === undefined) return problem(404, "credential_not_found");
  credential.collected = true;
  credential.fields = credential.fields.map(({ field, expiresAt }) => ({ field, expiresAt }));
  return { status: 204, body: "" };
}

function leaveBox(fake: FakeFields, body: Record<string, unknown>): Answer {
  const id = randomBytes(24).toString("base64url");
  fake.boxes.set(id, { box: String(body["box"]) });
  return {
    status: 201,
    body: { id, expiresAt: body["expiresAt"], pickUpUrl: "https://wallet.example/p" },
  };
}

function takeBox(fake: FakeFields, path: string, { reader }: Record<string, unknown>): Answer {
  const left = fake.boxes.get(path.split("/")[3] ?? "");
  if (left === undefined || typeof reader !== "string" || (left.reader ?? reader) !== reader)
    return problem(404, "mailbox_empty");
  left.reader = reader;
  return { status: 200, body: { box: left.box } };
}

function routeEmails(path: string, body: Record<string, unknown>): Answer {
  if (path === "/w/emails")
    return { status: 202, body: { verificationId: "v1", expiresAt: now + 600 } };
  if (body["code"] !== "123456") return problem(422, "code_wrong");
  return { status: 200, body: { credentialId: "c1" } };
}

function objectOf(fake: FakeFields, broker: FakeBroker): string {
  const claims = {
    iss: broker.url,
    aud: "svc-wallet",
    action: "request",
    id: "reference",
    client_name: "Demo shop",
    domain: "shop.example",
    from,
    required: fake.required,
    optional: fake.optional,
    callback_host: "api.shop.example",
    scopes: [],
    purpose: fake.purpose,
    iat: now - 10,
    exp: deadline,
    ...fake.object,
  };
  const key = fake.signer ?? broker.key;
  return signJws(
    key,
    { alg: "ES256", typ: "svc-request+jwt", kid: key.kid, ...fake.header },
    claims,
  );
}

/** A result or refusal, checked as the real broker does. */
function takeAnswer(fake: FakeFields, broker: FakeBroker, body: Record<string, unknown>): Answer {
  const { svcID, id, signature = "" } = body as Record<string, string>;
  const connection = `${broker.url}/w/o/${requestToken}`;
  const isSigned = (digest: Uint8Array): boolean => signerOf(digest, signature) === svcID;
  if (body["error"] !== undefined) {
    if (!isSigned(declineDigest({ request: "reference", connection })))
      return problem(422, "result_refused");
    Object.assign(fake, { status: "FAILED", error: body["error"] });
    return { status: 200, body: { status: "FAILED" } };
  }
  const infos = decodeInfos(String(body["infos"]));
  if ("fault" in infos || id !== "reference") return problem(422, "result_refused");
  const leaves = infos.map(({ field, data, pepper }) =>
    leafOf({
      user: svcID as Address,
      field,
      commitment: commitmentOf({ data, pepper }),
      expiresAt: 2_000_000,
    }),
  );
  const digest = shareDigest({
    request: "reference",
    connection,
    requester: (fake.object["domain"] as string | undefined) ?? "shop.example",
    object: requestObjectHash(fake.opened),
    fields: fieldsHash(infos.map(({ field }) => field)),
    data: leavesHash(leaves),
    deadline,
  });
  if (!isSigned(digest)) return problem(422, "result_refused");
  Object.assign(fake, { status: "INITIATING", shared: infos });
  return { status: 200, body: { status: "INITIATING", referenceKey: "reference" } };
}
