// The founding of a business (decisions section 6, BusinessWallet): everybody on its roster signs, then it is deployed.
import { type Address, encodeCharter, type Hex, type Hex32, invitationDigest } from "@svc/protocol";
import type { Environment } from "../../accounts/index.ts";
import { enqueueTransaction, type FinalHandlers } from "../../chain/index.ts";
import { ulid, uuidv7 } from "../../platform/ids.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { purgeInBatches } from "../../platform/database/purge.ts";
import { workInBatches } from "../../platform/database/work-in-batches.ts";
import { invalidRequest, Problem } from "../../platform/http/problems.ts";
import { recoverAddress } from "../../platform/cryptography/secp256k1.ts";
import { findBusiness, lockBusiness } from "./business-store.ts";
import {
  type NamedMember,
  parseCharter,
  parseName,
  type RequestedCharter,
} from "./charter-request.ts";
import * as store from "./founding-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { refuseBusinesses, sealMemberName } from "./members.ts";
import { wakeRoster } from "./roster-store.ts";
import { loadWalletCalls } from "./wallet-calls.ts";
import { signatureWrong } from "../../platform/http/wrong-signature.ts";

/** The kind of the transaction that deploys a wallet. */
const createKind = "business.create";
/** Bounds of the deadline, in seconds from now. */
const deadlineMin = 60;
const deadlineMax = 30 * 86_400;
/** The most open foundings of one founder, since each of them appears in others' inboxes. */
const openMax = 20;
const lapsedRetentionSeconds = 30 * 86_400;
/** Small, because the deletion of a business is checked against every table that refers to businesses. */
const lapsedBatch = 500;

/** A business to be founded, as its founder requests it. */
export interface FoundingRequest extends RequestedCharter {
  readonly name: string;
  readonly environment: Environment;
  readonly salt: Hex32;
  /** Unix seconds. */
  readonly deadline: number;
  /** The founder's signature of the invitation. */
  readonly signature: string;
}

/**
 * Founds a business: invites everybody on its roster. The request contains the founder's own signature, so a business
 * without other members is deployed at once. Repeating the call changes nothing.
 *
 * @returns the founding, and whether this call made it
 * @throws {Problem} invalid_request, not_a_member, signature_wrong, too_many, business_exists
 */
export async function foundBusiness(
  ctx: KybContext,
  founder: Address,
  request: FoundingRequest,
): Promise<{ founding: store.Founding; isNew: boolean }> {
  const now = ctx.clock.now();
  const { environment, salt, deadline } = request;
  if (deadline < now + deadlineMin || deadline > now + deadlineMax)
    throw invalidRequest("deadline is 60 seconds to 30 days ahead");
  const { charter, members } = parseCharter(request);
  const name = parseName("name", request.name);
  if (members.every(({ address }) => address !== founder)) throw new Problem("not_a_member");
  await refuseBusinesses(ctx.db, members);
  const bytes = encodeCharter(charter);
  const factory = ctx.chain.contracts.factories[environment];
  const calls = await loadWalletCalls();
  const address = calls.addressOf({ factory, charter: bytes, salt });
  const invitation = { chainId: ctx.chain.chainId, factory, salt, charter: bytes, deadline };
  if (recoverAddress(invitationDigest(invitation), request.signature) !== founder)
    throw signatureWrong(request.signature);
  const invitationId = ulid(ctx.clock, ctx.random);
  const founding = { address, environment, name, creator: founder, invitationId, deadline, salt };
  return ctx.db.transaction(async (tx) =>
    keep(ctx, tx, {
      founding: { ...founding, charter: bytes },
      members,
      signature: request.signature.toLowerCase() as Hex,
    }),
  );
}

async function keep(
  ctx: KybContext,
  tx: Queryable,
  given: {
    founding: Omit<store.Founding, "status">;
    members: readonly NamedMember[];
    signature: Hex;
  },
): Promise<{ founding: store.Founding; isNew: boolean }> {
  const { founding, members, signature } = given;
  const { address, creator } = founding;
  const now = ctx.clock.now();
  if (!(await store.insertFounding(tx, founding, now))) {
    const known = await store.findFounding(tx, address);
    if (known?.creator !== creator || known.status === "lapsed")
      throw new Problem("business_exists");
    return { founding: known, isNew: false };
  }
  if ((await store.countOpenFoundings(tx, creator)) > openMax) throw new Problem("too_many");
  const rows = members.map((member) => {
    const id = uuidv7(ctx.clock, ctx.random);
    const isCreator = member.address === creator;
    return {
      id,
      member: member.address,
      nameSealed: sealMemberName(ctx, id, member.name),
      isVoting: member.isVoting,
      isCreator,
      signature: isCreator ? signature : null,
    };
  });
  await store.insertMembers(tx, address, { members: rows, now });
  await ctx.audit.record(tx, { actor: creator, action: "business.found", subject: address });
  if (members.length > 1) return { founding: { ...founding, status: "inviting" }, isNew: true };
  await deploy(ctx, tx, founding);
  return { founding: { ...founding, status: "deploying" }, isNew: true };
}

/**
 * Ends a founding that waits for signatures, at the request of its founder. Repeating the call changes nothing.
 *
 * @throws {Problem} business_not_found, also for one of somebody else; ballot_over once everybody has signed
 */
export async function abandonFounding(
  ctx: Pick<KybContext, "db" | "audit">,
  founder: Address,
  address: Address,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    // First without a lock: a stranger who had to wait for one would learn that members are acting.
    const known = await findBusiness(tx, address);
    const business = known?.creator === founder ? await lockBusiness(tx, address) : null;
    if (business === null) throw new Problem("business_not_found");
    if (business.status === "lapsed") return;
    if (business.status !== "inviting") throw new Problem("ballot_over");
    await store.setFoundingStatus(tx, address, "lapsed");
    await ctx.audit.record(tx, { actor: founder, action: "business.abandon", subject: address });
  });
}

/**
 * Queues the deployment of the wallet, once everybody on the roster has signed. If somebody else calls the factory
 * first, the wallet is the same.
 */
export async function deploy(
  ctx: KybContext,
  tx: Queryable,
  founding: Pick<store.Founding, "address" | "environment" | "charter" | "salt">,
): Promise<void> {
  const { address, environment, charter, salt } = founding;
  const calls = await loadWalletCalls();
  await store.setFoundingStatus(tx, address, "deploying");
  await enqueueTransaction(ctx, tx, {
    kind: createKind,
    subjectId: address,
    to: ctx.chain.contracts.factories[environment],
    data: calls.create(charter, salt),
  });
}

/** Activates foundings whose transaction is final, or lets them lapse. */
export function foundingFinalHandlers(ctx: KybContext): FinalHandlers {
  return {
    [createKind]: async (tx, done) => {
      const deployed = done
        .filter(({ status }) => status === "succeeded")
        .map(({ subjectId, blockTime }) => ({ address: subjectId, at: blockTime }));
      const active = await store.activate(tx, deployed);
      for (const { address, environment } of active) {
        const details = { environment };
        const entry = { actor: "system", action: "business.register", subject: address, details };
        await ctx.audit.record(tx, entry);
      }
      for (const { subjectId, status } of done) {
        if (status === "succeeded") continue;
        ctx.log.error(
          { alarm: "business_create", business: subjectId },
          "the chain refused the wallet of a business; its founding has lapsed",
        );
        await store.setFoundingStatus(tx, subjectId as Address, "lapsed");
      }
      await wakeRoster(tx);
    },
  };
}

/** Ends foundings that were not signed in time. */
export async function lapseFoundings(ctx: Pick<KybContext, "db" | "clock">): Promise<void> {
  const now = ctx.clock.now();
  await workInBatches(lapsedBatch, async (limit) => store.lapseFoundings(ctx.db, now, limit));
}

/** Deletes lapsed foundings 30 days after the deadline of their invitations. */
export async function forgetLapsed(ctx: Pick<KybContext, "db" | "clock">): Promise<void> {
  const before = ctx.clock.now() - lapsedRetentionSeconds;
  await purgeInBatches(async (limit) => store.deleteLapsed(ctx.db, before, limit), lapsedBatch);
}
