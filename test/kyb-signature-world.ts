// Businesses with a merchant that asks them to sign, an endpoint that hears of it, and a reader of the chain that knows
// nothing of the service.
import { randomBytes } from "node:crypto";
import type { PublicClient } from "viem";
import { readerOf } from "./chain-reader.ts";
import { openReceiver, type Receiver } from "./kyb-receiver.ts";
import type { KybEvent } from "./kyb-data-world.ts";
import { addMerchant } from "./kyb-merchant.ts";
import { type Answer, type KybWorld, type KybWorldOptions, openKybWorld } from "./kyb-world.ts";

export const signaturesPath = "/api/v1/kyb/signature-requests";

export const someText = {
  messageKind: "TEXT",
  message: "We accept the terms of the shop.\nVersion 7.",
  purpose: "To agree on the terms",
};

export interface SignatureWorld extends KybWorld {
  /** Gets the events of the world's client domain. */
  readonly receiver: Receiver;
  /** Knows the chain alone. */
  readonly reader: PublicClient;
  /** Asks for a signature; what is not given is as in {@link someText}. */
  askSignature(changed?: Record<string, unknown>, options?: AskOptions): Promise<Answer>;
  /** Asks, and returns the id of the request. */
  begin(changed?: Record<string, unknown>, options?: AskOptions): Promise<string>;
  /** Waits until the request has this status. */
  reach(id: string, status: string, apiKey?: string): Promise<Record<string, unknown>>;
  eventsOf(id: string, apiKey?: string): Promise<KybEvent[]>;
  /** Has the world's business, or another, sign: asked, voted, recorded. @returns what GET signature answers */
  sign(
    changed?: Record<string, unknown>,
    voters?: readonly string[],
  ): Promise<Record<string, unknown>>;
  /** Another organization, with these entitlements and an endpoint. @returns its API key */
  otherMerchant(entitlements?: readonly string[]): Promise<string>;
}

interface AskOptions {
  readonly apiKey?: string;
  readonly headers?: Record<string, string>;
}

export async function openSignatureWorld(options: KybWorldOptions = {}): Promise<SignatureWorld> {
  const world = await openKybWorld(options);
  const receiver = await openReceiver();
  await registerReceiver(world, receiver);
  return {
    ...world,
    receiver,
    reader: readerOf(world.ctx.chain),
    ...merchantOf(world, receiver),
    async [Symbol.asyncDispose]() {
      await receiver[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

async function registerReceiver(
  world: KybWorld,
  receiver: Receiver,
  apiKey = world.apiKey,
): Promise<void> {
  const path = "/api/v1/kyb/webhook-endpoint";
  const { url } = receiver;
  const { status, body } = await world.call("PUT", path, { apiKey, body: { url } });
  if (status >= 300) throw new Error(`endpoint: ${JSON.stringify(body)}`);
  receiver.trust(body["secret"]);
}

function merchantOf(
  world: KybWorld,
  receiver: Receiver,
): Omit<SignatureWorld, keyof KybWorld | "receiver" | "reader"> {
  const askSignature: SignatureWorld["askSignature"] = async (changed = {}, given = {}) =>
    world.call("POST", signaturesPath, {
      ...given,
      headers: { "idempotency-key": randomBytes(8).toString("hex"), ...given.headers },
      body: { businessWalletAddress: world.business.address, ...someText, ...changed },
    });
  const begin: SignatureWorld["begin"] = async (changed, given) => {
    const { status, body } = await askSignature(changed, given);
    if (status !== 201) throw new Error(`request: ${JSON.stringify(body)}`);
    return String(body["requestId"]);
  };
  const reach: SignatureWorld["reach"] = async (id, status, apiKey = world.apiKey) =>
    world.until(`${id} is ${status}`, async () => {
      const { body } = await world.call("GET", `${signaturesPath}/${id}`, { apiKey });
      return body["status"] === status ? body : null;
    });
  return {
    askSignature,
    begin,
    reach,
    eventsOf: async (id, apiKey = world.apiKey) => {
      const { body } = await world.call("GET", `${signaturesPath}/${id}/events`, { apiKey });
      return (body["items"] as { body: string }[]).map((each) => JSON.parse(each.body) as KybEvent);
    },
    sign: async (changed = {}, voters = ["alice", "bob"]) => {
      const id = await begin(changed);
      for (const name of voters) await world.voteAs(name, id);
      await reach(id, "signed");
      return (await world.call("GET", `${signaturesPath}/${id}/signature`)).body;
    },
    otherMerchant: async (entitlements = ["kyb:signature"]) => {
      const { apiKey } = await addMerchant(world, { entitlements });
      await registerReceiver(world, receiver, apiKey);
      return apiKey;
    },
  };
}
