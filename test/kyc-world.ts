// A world with orders in it: an embedded chain, packages, a person with verified fields, and a wallet reduced to what
// goes over the wire.
import {
  type Address,
  commitmentOf,
  declineDigest,
  encodeInfos,
  fieldsHash,
  type Hex32,
  type Info,
  leafOf,
  leavesHash,
  parseLink,
  requestObjectHash,
  shareDigest,
} from "@svc/protocol";
import { buyPackage, createApiKey, type KycPackage } from "../service/src/accounts/index.ts";
import {
  findVerified,
  getBuiltInIssuer,
  issueCredential,
} from "../service/src/credentials/index.ts";
import { until } from "./patience.ts";
import { type Identity, newIdentity, openWalletSession, post } from "./raw-wallet.ts";
import { openWorld, type World } from "./world.ts";
import { signDigest } from "./signing.ts";

export interface KycWorld extends World {
  readonly apiKey: string;
  /** Each request names its own fields. */
  readonly dynamic: KycPackage;
  readonly person: Person;
  buy(changed?: { fields?: readonly string[] | null; transfers?: number }): Promise<KycPackage>;
  verify(): Promise<Person>;
  call(method: "GET" | "POST", path: string, more?: CallOptions): Promise<Answer>;
  /** POST /api/v2/kyc/qrcode with a good body, changed. */
  ask(changed?: Record<string, unknown>, options?: CallOptions): Promise<Answer>;
  statusOf(referenceKey: string): Promise<Record<string, unknown>>;
  /** Waits until the order has the status. */
  reach(referenceKey: string, status: string): Promise<Record<string, unknown>>;
}

interface CallOptions {
  readonly body?: unknown;
  readonly apiKey?: string | null;
  /** Of another process. */
  readonly baseUrl?: string;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: {
    readonly success?: boolean;
    readonly message?: string;
    readonly data?: Record<string, unknown>;
    readonly error?: {
      readonly code: number;
      readonly message: string;
      readonly reason: string;
      readonly details?: object;
    };
  };
}

/** Somebody with verified fields, collected into a wallet. */
export interface Person extends Identity {
  readonly held: readonly HeldField[];
}

export interface HeldField extends Info {
  /** Unix seconds. */
  readonly expiresAt: number;
  readonly leaf: Hex32;
  readonly credentialId: string;
}

export const personalValues = {
  IDCARD_DOB: "1987-06-05",
  IDCARD_NAME: "Perla Canary",
  EMAIL: "perla.canary@example.com",
  ADDRESS_CITY: "Canaryville",
} as const;

const documents = [
  { document: "IDCARD", fields: ["IDCARD_DOB", "IDCARD_NAME"] },
  { document: "CONTACT", fields: ["EMAIL"] },
  { document: "ADDRESS", fields: ["ADDRESS_CITY"] },
] as const;

export const receiverUrl = "http://localhost:4998/hook";
const year = 365 * 86_400;

export async function openKycWorld(environment: NodeJS.ProcessEnv = {}): Promise<KycWorld> {
  const world = await openWorld({ CHAIN: "on", SETTLEMENT_WINDOW_SECONDS: "0", ...environment });
  const { ctx } = world;
  const { clientDomainId } = world;
  const { key: apiKey } = await createApiKey(ctx, { clientDomainId, name: "Backend" }, "test");
  const buy: KycWorld["buy"] = async ({ fields = null, transfers = 1000 } = {}) => {
    const given = { clientDomainId, name: "Package", fields, transfers, priceRappen: 0n };
    return (await buyPackage(ctx, given, "test")).kycPackage;
  };
  const call: KycWorld["call"] = async (method, path, options = {}) => {
    const { body, baseUrl = world.baseUrl, apiKey: key = apiKey } = options;
    const answer = await fetch(`${baseUrl}${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: key }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return {
      status: answer.status,
      headers: answer.headers,
      body: (await answer.json()) as Answer["body"],
    };
  };
  const dynamic = await buy();
  const verify = async (): Promise<Person> => verifyPerson(world);
  const person = await verify();
  const statusOf = async (referenceKey: string): Promise<Record<string, unknown>> =>
    (await call("GET", `/api/v2/kyc/status?referenceKey=${referenceKey}`)).body.data ?? {};
  return {
    ...world,
    apiKey,
    dynamic,
    person,
    buy,
    verify,
    call,
    ask: async (changed = {}, options = {}) =>
      call("POST", "/api/v2/kyc/qrcode", {
        ...options,
        body: {
          user: person.address,
          sourceKey: dynamic.sourceKey,
          callback: receiverUrl,
          expiration: ctx.clock.now() + 600,
          fields: ["IDCARD_DOB", "EMAIL"],
          ...changed,
        },
      }),
    statusOf,
    async reach(referenceKey, status) {
      return until(`the order is ${status}`, async () => {
        const found = await statusOf(referenceKey);
        return found["status"] === status ? found : null;
      });
    },
  };
}

async function verifyPerson(world: World): Promise<Person> {
  const identity = newIdentity();
  await verifyAccount(world, identity.address);
  return { ...identity, held: await collect(world.baseUrl, identity) };
}

/** Issues the documents to an account and waits for the chain. */
export async function verifyAccount({ ctx }: World, user: Address): Promise<void> {
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  const names = documents.flatMap(({ fields }) => fields);
  for (const { document, fields } of documents)
    await issueCredential(ctx, issuer, {
      user,
      document,
      fields: fields.map((field) => ({ field, data: personalValues[field] })),
      expiresAt: ctx.clock.now() + year,
    });
  const asker = { id: null, organizationId: "", environment: "live" } as const;
  await until("the fields are attested", async () => {
    const { unverified } = await findVerified(ctx, asker, { user, names });
    return unverified.length === 0 ? true : null;
  });
}

async function collect(baseUrl: string, identity: Identity): Promise<HeldField[]> {
  const headers = await openWalletSession(baseUrl, identity);
  const answer = await fetch(`${baseUrl}/w/credentials`, { headers });
  const { items } = (await answer.json()) as {
    items: {
      id: string;
      fields: { field: Info["field"]; expiresAt: number; data: string; pepper: Hex32 }[];
    }[];
  };
  return items.flatMap(({ id, fields }) =>
    fields.map(({ field, data, pepper, expiresAt }) => {
      const info = {
        field,
        data,
        pepper: pepper.startsWith("0x") ? pepper : (`0x${pepper}` as const),
      };
      const commitment = commitmentOf(info);
      const leaf = leafOf({ user: identity.address, field, commitment, expiresAt });
      return { ...info, expiresAt, leaf, credentialId: id };
    }),
  );
}

/** A link as a wallet reads it, opened. */
export interface OpenedRequest {
  readonly connection: string;
  readonly id: string;
  readonly deadline: number;
  readonly object: string;
  readonly claims: Readonly<Record<string, unknown>>;
}

export function scanRequest(link: unknown): Omit<OpenedRequest, "object" | "claims"> {
  const parsed = parseLink(String(link));
  if ("refused" in parsed || parsed.action !== "request" || parsed.id === undefined)
    throw new Error(`not a request link: ${String(link)}`);
  return { connection: parsed.connection, id: parsed.id, deadline: parsed.deadline };
}

export async function openRequest(link: unknown): Promise<OpenedRequest> {
  const scanned = scanRequest(link);
  const answer = await post(`${scanned.connection}/open`, {});
  if (answer.status !== 200) throw new Error(`open answered ${answer.status}`);
  const object = await answer.text();
  const claims = JSON.parse(
    Buffer.from(object.split(".")[1] ?? "", "base64url").toString(),
  ) as OpenedRequest["claims"];
  return { ...scanned, object, claims };
}

export interface ShareOptions {
  /** Default: date of birth and e-mail. */
  readonly fields?: readonly string[];
  readonly signer?: Identity;
  /** Members of the `Share` to replace before it is signed. */
  readonly changed?: Partial<Parameters<typeof shareDigest>[0]>;
  /** Members of the result to replace before it is sent. */
  readonly sent?: Record<string, unknown>;
}

/** The result that an honest wallet would send, changed. */
export function shareResult(
  person: Person,
  opened: OpenedRequest,
  { fields = ["IDCARD_DOB", "EMAIL"], signer = person, changed = {}, sent = {} }: ShareOptions = {},
): Record<string, unknown> {
  const chosen = person.held
    .filter(({ field }) => fields.includes(field))
    .toSorted((a, b) => (a.field < b.field ? -1 : 1));
  const digest = shareDigest({
    request: opened.id,
    connection: opened.connection,
    requester: String(opened.claims["domain"]),
    object: requestObjectHash(opened.object),
    fields: fieldsHash(chosen.map(({ field }) => field)),
    data: leavesHash(chosen.map(({ leaf }) => leaf)),
    deadline: opened.deadline,
    ...changed,
  });
  return {
    svcID: person.address,
    id: opened.id,
    infos: encodeInfos(chosen),
    signature: signDigest(digest, signer.privateKey),
    ...sent,
  };
}

/** Opens a link and approves it. */
export async function approve(
  person: Person,
  link: unknown,
  options: ShareOptions = {},
): Promise<Response> {
  const opened = await openRequest(link);
  return post(opened.connection, shareResult(person, opened, options));
}

/** What a wallet sends to decline. */
export function declineResult(signer: Identity, link: unknown): Record<string, unknown> {
  const { connection, id } = scanRequest(link);
  const digest = declineDigest({ request: id, connection });
  const signature = signDigest(digest, signer.privateKey);
  return { error: "access_denied", id, svcID: signer.address, signature };
}

export async function decline(
  signer: Identity,
  link: unknown,
  sent: Record<string, unknown> = {},
): Promise<Response> {
  return post(scanRequest(link).connection, { ...declineResult(signer, link), ...sent });
}
