// A business with a company record, and a merchant with money and an endpoint that asks it for data.
import { randomBytes } from "node:crypto";
import type { Address } from "@svc/protocol";
import { topUp } from "../service/src/accounts/index.ts";
import { createIssuer, createIssuerKey } from "../service/src/credentials/index.ts";
import { sql } from "../service/src/platform/database/db.ts";
import { type Answer, type KybWorld, type KybWorldOptions, openKybWorld } from "./kyb-world.ts";

export interface CompanyValue {
  readonly field: string;
  readonly subject?: string;
  readonly data: string;
}

export interface DataWorld extends KybWorld {
  /** Issues a record, for 300 days unless given, and waits until it counts. @returns the credential's id */
  issueRecord(
    business: Address,
    fields: readonly CompanyValue[],
    lifetimeDays?: number,
  ): Promise<string>;
  /** Issues {@link someRecord} to each, and waits until all of them count. */
  issueRecords(businesses: readonly Address[]): Promise<void>;
  /** Asks for data; what is not given is as in {@link someRequest}. */
  ask(changed?: Record<string, unknown>, options?: AskOptions): Promise<Answer>;
  /** Waits until the request has this status. */
  waitFor(id: string, status: string): Promise<Record<string, unknown>>;
  /** The events of a request, as they were or will be delivered. */
  eventsOf(id: string): Promise<KybEvent[]>;
  revokeRecord(credentialId: string): Promise<void>;
}

interface AskOptions {
  readonly apiKey?: string;
  readonly baseUrl?: string;
  readonly headers?: Record<string, string>;
}

export interface KybEvent {
  readonly event: string;
  readonly event_id: string;
  readonly stream_id: string;
  readonly seq: number;
  readonly timestamp: number;
  readonly livemode: boolean;
  readonly data: Record<string, unknown>;
  readonly attestation?: string;
}

export const someRecord: readonly CompanyValue[] = [
  { field: "BUSINESS_LEGAL_NAME", data: "Muster AG" },
  { field: "BUSINESS_REGISTRATION_NUMBER", data: "CHE-123.456.789" },
  { field: "BUSINESS_COMPANY_TYPE", data: "CORPORATION" },
  { field: "BUSINESS_DIRECTOR_COUNT", data: "2" },
  { field: "BUSINESS_DIRECTOR_NAME", subject: "director-1", data: "Canary Muster" },
  { field: "BUSINESS_DIRECTOR_NAME", subject: "director-2", data: "Canary Beispiel" },
];

/** 4.00 + 1.00 + 2.50 when everything goes. */
export const someRequest = {
  fields: ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_NAME"],
  optionalFields: ["BUSINESS_DIRECTOR_COUNT"],
  purpose: "To open an account for the company",
};

export const requestsPath = "/api/v1/kyb/data-requests";

export async function openDataWorld(
  options: KybWorldOptions & { readonly fundsRappen?: bigint } = {},
): Promise<DataWorld> {
  const world = await openKybWorld(options);
  try {
    const { ctx, organizationId, business } = world;
    const { fundsRappen = 10_000n } = options;
    if (fundsRappen > 0n)
      await topUp(ctx, { organizationId, environment: "live", amountRappen: fundsRappen }, "test");
    await registerEndpoint(world);
    const actors = await merchantOf(world);
    await actors.issueRecord(business.address, someRecord);
    return { ...world, ...actors };
  } catch (error) {
    await world[Symbol.asyncDispose]();
    throw error;
  }
}

/** Nobody listens there: deliveries fail, and events are read over the API. */
export async function registerEndpoint(world: KybWorld, apiKey = world.apiKey): Promise<void> {
  const { status, body } = await world.call("PUT", "/api/v1/kyb/webhook-endpoint", {
    apiKey,
    body: { url: "http://localhost:4998/hooks" },
  });
  if (status >= 300) throw new Error(`endpoint: ${JSON.stringify(body)}`);
}

export async function merchantOf(world: KybWorld): Promise<Omit<DataWorld, keyof KybWorld>> {
  const { ctx } = world;
  const issuer = await createIssuer(ctx, { name: "Register AG", environment: "live" }, "test");
  const { key } = await createIssuerKey(ctx, { issuerId: issuer.id, name: "backend" }, "test");
  const issue: DataWorld["issueRecord"] = async (business, fields, lifetimeDays = 300) => {
    const issued = await world.call("POST", "/api/v1/issuer/companies", {
      apiKey: key,
      body: { business, fields, expiresAt: ctx.clock.now() + lifetimeDays * 86_400 },
    });
    if (issued.status !== 201) throw new Error(`record: ${JSON.stringify(issued.body)}`);
    return String(issued.body["id"]);
  };
  const untilCounted = async (ids: readonly string[]): Promise<true> =>
    world.until(`the records ${ids.join()} count`, async () => {
      const left = await ctx.db.query(
        sql`select from credential where id = any(${[...ids]}) and attested_at is null limit 1`,
      );
      return left.length === 0 ? true : null;
    });
  return {
    issueRecord: async (...given) => {
      const id = await issue(...given);
      await untilCounted([id]);
      return id;
    },
    async issueRecords(businesses) {
      const ids = await Promise.all(businesses.map(async (each) => issue(each, someRecord)));
      await untilCounted(ids);
    },
    ask: async (changed = {}, options = {}) =>
      world.call("POST", requestsPath, {
        ...options,
        headers: { "idempotency-key": randomBytes(8).toString("hex"), ...options.headers },
        body: { businessWalletAddress: world.business.address, ...someRequest, ...changed },
      }),
    waitFor: async (id, status) =>
      world.until(`${id} is ${status}`, async () => {
        const { body } = await world.call("GET", `${requestsPath}/${id}`);
        return body["status"] === status ? body : null;
      }),
    eventsOf: async (id) => {
      const { body } = await world.call("GET", `${requestsPath}/${id}/events`);
      return (body["items"] as { body: string }[]).map((each) => JSON.parse(each.body) as KybEvent);
    },
    revokeRecord: async (credentialId) => {
      const path = `/api/v1/issuer/companies/${credentialId}/revoke`;
      const { status, body } = await world.call("POST", path, { apiKey: key });
      if (status >= 300) throw new Error(`revocation: ${JSON.stringify(body)}`);
    },
  };
}
