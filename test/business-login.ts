// What the wallet of a member sends to log in for a business.
import assert from "node:assert/strict";
import { approvalDigest, businessCategory, businessLoginHash } from "@svc/protocol";
import type { InboxItem, KybWorld, TestBusiness } from "./kyb-world.ts";
import {
  finish,
  type LoginClient,
  openPage,
  type OpenPage,
  redeem,
  statusOf,
} from "./login-flow.ts";
import type { Tokens } from "./login-flow.ts";
import { approvalOf, claim, type Claimed, post, scan } from "./raw-wallet.ts";
import { signDigest } from "./signing.ts";

export const businessScope = "openid offline_access business";

/** The QR page of a client that asks for a business. */
export async function openBusinessPage(
  world: KybWorld,
  { client = world.client }: { client?: LoginClient } = {},
): Promise<OpenPage> {
  return openPage(world.baseUrl, client, { changed: { scope: businessScope } });
}

type LoginMessage = Parameters<typeof businessLoginHash>[0];
type Approval = Parameters<typeof approvalDigest>[0];

export interface Acting {
  readonly name: string;
  readonly business?: TestBusiness;
  /** Members to replace in the message that the approval names. */
  readonly message?: Partial<LoginMessage>;
  /** Members to replace in the approval that is signed. */
  readonly approval?: Partial<Approval>;
  /** Members to replace in the part that is sent. */
  readonly sent?: Record<string, unknown>;
}

/** The acting member's part of the result, as an honest wallet makes it. */
export async function businessPart(
  world: KybWorld,
  claimed: Claimed,
  { name, business = world.business, message = {}, approval = {}, sent = {} }: Acting,
): Promise<Record<string, unknown>> {
  const claims = claimed.claims as unknown as {
    iss: string;
    client_id: string;
    domain: string;
    scopes: string[];
    valid_until: number;
  };
  const hash = businessLoginHash({
    session: claimed.session.split(".")[0] ?? "",
    issuer: claims.iss,
    clientId: claims.client_id,
    requester: claims.domain,
    scope: claims.scopes.join(" "),
    business: business.address,
    actingMember: world.person(name).address,
    ...message,
  });
  const member = business.members[0] ?? name;
  const { epoch } = (await world.businessOf(member, business.address)) as { epoch: number };
  const signed = {
    chainId: world.ctx.chain.chainId,
    business: business.address,
    category: businessCategory.login,
    hash,
    epoch,
    validUntil: claims.valid_until,
    ...approval,
  };
  return {
    address: business.address,
    epoch: signed.epoch,
    validUntil: signed.validUntil,
    approval: signDigest(approvalDigest(signed), world.person(name).privateKey),
    ...sent,
  };
}

/** Claims by QR code and answers with the digits of the page and the part of the business. */
export async function actAs(
  world: KybWorld,
  page: OpenPage,
  acting: Acting,
): Promise<{ claimed: Claimed; response: Response }> {
  const claimed = await claim(scan(page.qr), world.person(acting.name));
  return { claimed, response: await answerAs(world, page, { claimed, acting }) };
}

/** The answer alone, for a login that was claimed. */
export async function answerAs(
  world: KybWorld,
  page: OpenPage,
  { claimed, acting }: { claimed: Claimed; acting: Acting },
): Promise<Response> {
  return post(claimed.connection, await answerOf(world, page, { claimed, acting }));
}

/** The body of that answer. */
export async function answerOf(
  world: KybWorld,
  page: OpenPage,
  { claimed, acting }: { claimed: Claimed; acting: Acting },
): Promise<Record<string, unknown>> {
  const { digits } = await statusOf(world.baseUrl, page);
  return {
    ...approvalOf(claimed, typeof digits === "string" ? digits : ""),
    business: await businessPart(world, claimed, acting),
  };
}

/** The tokens of a page whose login the members have approved. */
export async function takeTokens(world: KybWorld, page: OpenPage): Promise<Tokens> {
  const code = (await finish(world.baseUrl, page)).searchParams.get("code") ?? "";
  const response = await redeem(world.baseUrl, world.client, {
    code,
    verifier: page.pkce.verifier,
  });
  if (response.status !== 200)
    throw new Error(`token answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as Tokens;
}

/** A whole login for a business: the first member acts, the others named vote. */
export async function logInFor(
  world: KybWorld,
  { business = world.business, voters }: { business?: TestBusiness; voters: readonly string[] },
): Promise<{ tokens: Tokens; page: OpenPage }> {
  const [name = "", ...others] = voters;
  const page = await openBusinessPage(world);
  const { response } = await actAs(world, page, { name, business });
  if (response.status !== 200) throw new Error(`acting: ${await response.text()}`);
  for (const other of others) {
    const voted = await world.voteAs(other, page.loginId);
    if (voted.status !== 200) throw new Error(`vote: ${JSON.stringify(voted.body)}`);
  }
  return { tokens: await takeTokens(world, page), page };
}

/** Checks that what the member asked sam is over, and that the member may ask anew. */
export async function checkAskedNoMore(
  world: KybWorld,
  of: { item: InboxItem; acting: Acting },
): Promise<void> {
  const { item, acting } = of;
  const items = await world.inboxOf("sam");
  assert.ok(items.every(({ id }) => id !== item.id));
  const late = await world.voteAs("sam", item.id, { item });
  assert.equal(late.body.error?.reason, "ballot_over");
  const next = await openBusinessPage(world);
  assert.equal((await actAs(world, next, acting)).response.status, 200);
}
