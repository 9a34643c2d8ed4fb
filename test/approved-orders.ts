// Orders that their user has approved, without wallet and chain: rows as a consent leaves them, and blocks on demand.
import { createHash, randomBytes, randomUUID } from "node:crypto";
import {
  type Address,
  encodeInfos,
  fieldsHash,
  type Hex32,
  hexOfBytes,
  leafOf,
  leavesHash,
  commitmentOf,
  requestObjectHash,
  shareDigest,
} from "@svc/protocol";
import type { FinalTransaction } from "../service/src/chain/index.ts";
import { getBuiltInIssuer } from "../service/src/credentials/index.ts";
import {
  giveCredential,
  openTestCredentials,
  type TestCredentials,
} from "../service/src/credentials/test-credentials.ts";
import { takeQueued } from "../service/src/credentials/test-credentials-store.ts";
import type { KycContext } from "../service/src/kyc/kyc-context.ts";
import { findOrder } from "../service/src/kyc/order-store.ts";
import { settlementFinalHandlers, settleOrders } from "../service/src/kyc/settlement.ts";
import * as store from "./approved-orders-store.ts";
import { addressOfPrivateKey, signDigest } from "./signing.ts";

/** Orders under settlement, without a chain: `mine` makes up what a chain would report. */
export interface TestSettlement extends AsyncDisposable {
  readonly ctx: KycContext;
  readonly world: TestCredentials;
  readonly packageId: string;
  readonly organizationId: string;
  readonly user: Address;
  /** The credential of the user's e-mail address, which every order asks for. */
  readonly credentialId: string;
  /**
   * Makes orders that their user approved just now.
   *
   * @param data.packageId default: the first package
   * @param data.isUnsigned leaves the signatures out, which take a millisecond each: for tests that need many orders
   */
  approve(
    count: number,
    data?: { infos?: string; packageId?: string; isUnsigned?: boolean },
  ): Promise<store.TestOrder[]>;
  /** Moves the time past the window of the batch, and settles. */
  readonly closeBatch: () => Promise<void>;
  /** The status of an order, and why it failed if it did. */
  readonly statusOf: (order: store.TestOrder) => Promise<string>;
  /** Another package of the same domain. @returns its id */
  addPackage(): Promise<string>;
  /** Makes everything that is queued final, with this status. */
  mine(status?: FinalTransaction["status"]): Promise<FinalTransaction[]>;
}

const email = "user@example.com";

export async function openTestSettlement(
  environment: NodeJS.ProcessEnv = {},
): Promise<TestSettlement> {
  const world = await openTestCredentials(environment);
  const ctx: KycContext = {
    ...world.ctx,
    signRequestObject: () => "e30.e30.e30",
    mayContractSign: async () => true,
  };
  const key = randomBytes(32);
  const user = addressOfPrivateKey(key);
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  const fields = [{ field: "EMAIL", data: email }];
  const given = await giveCredential(world, issuer, { user, document: "CONTACT", fields });
  const [held] = given.held;
  if (held === undefined) throw new Error("the credential has one field");
  const { packageId, ...domain } = await addPackage(ctx, world.live.organizationId);
  const commitment = commitmentOf({ data: email, pepper: held.pepper });
  const leaf = leafOf({ user, field: "EMAIL", commitment, expiresAt: held.expiresAt });
  const infos = encodeInfos([{ field: "EMAIL", data: email, pepper: held.pepper }]);
  return {
    ctx,
    world,
    packageId,
    organizationId: world.live.organizationId,
    user,
    credentialId: given.id,
    async approve(count, data = {}) {
      const consented = {
        user,
        leaf,
        infos: data.infos ?? infos,
        key: data.isUnsigned ? null : key,
      };
      const orders = Array.from({ length: count }, () =>
        makeOrder(ctx, domain.organizationId, consented),
      );
      await store.insertApproved(ctx.db, {
        ...domain,
        packageId: data.packageId ?? packageId,
        user,
        orders,
        at: ctx.clock.now(),
      });
      return orders;
    },
    async closeBatch() {
      world.advance(ctx.config.settlementWindowSeconds);
      await settleOrders(ctx);
    },
    async statusOf({ referenceKey }) {
      const order = await findOrder(ctx.db, referenceKey);
      if (order === null) throw new Error("there is no such order");
      return order.failureReason === null ? order.status : `${order.status} ${order.failureReason}`;
    },
    addPackage: async () => (await addPackage(ctx, world.live.organizationId)).packageId,
    mine: async (status = "succeeded") => mine(ctx, status),
    [Symbol.asyncDispose]: async () => world[Symbol.asyncDispose](),
  };
}

async function addPackage(ctx: KycContext, apiKeyOf: string) {
  const packageId = randomUUID();
  const domain = await store.insertTestPackage(ctx.db, {
    id: packageId,
    apiKeyOf,
    signingKeySealed: ctx.seal.seal(Buffer.from("whsec_test"), {
      table: "kyc_package",
      id: packageId,
      column: "signing_key_sealed",
    }),
  });
  return { packageId, ...domain };
}

/** What the user of an order gives. */
interface Given {
  readonly user: Address;
  readonly leaf: Hex32;
  readonly infos: string;
  readonly key: Buffer | null;
}

function makeOrder(
  ctx: KycContext,
  organizationId: string,
  { user, leaf, infos, key }: Given,
): store.TestOrder {
  const id = randomUUID();
  const referenceKey = randomBytes(32).toString("hex");
  const requestObject = `eyJ.${referenceKey.slice(0, 8)}.c2ln`;
  const share = {
    request: referenceKey,
    connection: `http://localhost:4000/w/o/${referenceKey.slice(0, 22)}`,
    requester: "shop.example.com",
    object: requestObjectHash(requestObject),
    fields: fieldsHash(["EMAIL"]),
    data: leavesHash([leaf]),
    deadline: ctx.clock.now() + 600,
  };
  const consent = shareDigest(share);
  return {
    id,
    referenceKey,
    salt: hexOfBytes(randomBytes(32)),
    consent: {
      order: { id, organizationId, user },
      attempt: 1,
      requestObject,
      connection: share.connection,
      requester: share.requester,
      deadline: share.deadline,
      fields: ["EMAIL"],
      leaves: [leaf],
      signature: Buffer.from(key === null ? "" : signDigest(consent, key).slice(2), "hex"),
      consent: hexOfBytes(consent),
      data: share.data,
      payloadSealed: ctx.seal.seal(Buffer.from(infos), {
        table: "kyc_payload",
        id,
        column: "sealed",
      }),
      createdAt: ctx.clock.now(),
    },
  };
}

let blockNumber = 1;

async function mine(
  ctx: KycContext,
  status: FinalTransaction["status"],
): Promise<FinalTransaction[]> {
  const handlers = settlementFinalHandlers(ctx);
  return ctx.db.transaction(async (tx) => {
    const done = (await takeQueued(tx)).map(({ id, kind, subjectId, data }): FinalTransaction => {
      const hash = hexOfBytes(
        createHash("sha256").update(`${kind}${subjectId}`).update(data).digest(),
      );
      blockNumber += 1;
      const blockTime = ctx.clock.now();
      const signer = ctx.chain.operator;
      return { id, kind, subjectId, hash, signer, status, blockNumber, blockTime };
    });
    for (const [kind, group] of Map.groupBy(done, (each) => each.kind))
      await handlers[kind]?.(tx, group);
    return done;
  });
}
