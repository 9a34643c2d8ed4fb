import {
  approvalDigest,
  businessCategory,
  businessLoginHash,
  loginDigest,
  parseLoginSession,
  returnTypeOf,
  shortAddress,
  zeroHash,
  type Address,
  type BusinessPart,
  type LoginLink,
  type LoginMessage,
  type LoginResult,
  type RequestObject,
} from "@svc/protocol";
import { readBusiness } from "../business-wallet.ts";
import { chooseBusiness } from "../businesses.ts";
import { claimLogin, needsNumber, type BrokerLogin, type ClaimedLogin } from "../claim.ts";
import type { Concern } from "../concern.ts";
import type { WalletContext } from "../context.ts";
import { signDecline } from "../decline.ts";
import { endRemoval, type KeptBusiness } from "../keep.ts";
import { chainGraceSeconds } from "../votes.ts";
import { WalletRefusal } from "../refusal.ts";
import type {
  ActionHandler,
  Declining,
  Description,
  OpenRequest,
  SentRefusal,
} from "../request.ts";
import { findBroker, requesterOf, sayRequester } from "../requester.ts";
import { sayRoute } from "../return-route.ts";
import { shownText } from "../shown-text.ts";

/** `svc:login` (decisions, section 2, "The QR page"). */
export const loginAction: ActionHandler<LoginLink> = {
  async open(ctx, link) {
    const login = await findLogin(ctx, link);
    return login === null ? openUnknown(ctx, link) : openClaimed(ctx, login);
  },

  async refuse(ctx, link, declining) {
    const login = await findLogin(ctx, link);
    // On the same device the browser's cookie is the proof, and the broker need not be asked first.
    if (login === null || returnTypeOf(link) === "app-link")
      return refuseUnclaimed(ctx, { link, declining, isKnown: login !== null });
    const { session, connection, claimSecret } = await claimLogin(ctx, login);
    return {
      error: "access_denied",
      session,
      ...(await signDecline(ctx, { request: session, connection })),
      claimSecret,
      ...(declining.notStarted ? { notStarted: true } : {}),
    };
  },
};

/** The login at its broker; null if the link leads to no broker on the list. @throws {WalletRefusal} unsupported */
async function findLogin(ctx: WalletContext, link: LoginLink): Promise<BrokerLogin | null> {
  const { connection } = link;
  const broker = await findBroker(ctx, link);
  if (broker === null || connection === undefined) return null;
  const returnType = returnTypeOf(link);
  if (returnType !== "callback" && returnType !== "app-link")
    throw new WalletRefusal("unsupported", "a broker accepts a login only by callback or app-link");
  return { link, connection, broker };
}

async function openClaimed(ctx: WalletContext, login: BrokerLogin): Promise<OpenRequest> {
  const claimed = await claimLogin(ctx, login);
  const { object, hash, session, connection, claimSecret } = claimed;
  const isScanned = returnTypeOf(login.link) === "callback";
  const isForBusiness = object.scopes.includes(businessScope);
  return {
    description: describeClaimed(ctx, login, claimed),
    ...(isForBusiness ? { takes: { business: true } } : {}),
    async answer({ code, business: named }) {
      const message = { session, connection, requester: object.domain, code, object: hash };
      const business = isForBusiness
        ? { business: await approveForBusiness(ctx, { login, claimed, named }) }
        : {};
      const result = { ...(await signLogin(ctx, message)), ...business };
      // The query of an app-link ends up in histories, so it carries neither the secret nor the digits.
      if (!isScanned) return result;
      return { ...result, claimSecret, ...(code === "" ? {} : { code }) };
    },
    trace: ({ business }) => (business === undefined ? {} : { business }),
  };
}

/** The scope with which a person logs in for a business, as one of its voting members. */
const businessScope = "business";

/** A login lives for minutes: whatever its request object says, no approval of it counts for much longer than a day. */
const loginSecondsMax = 86_400;

/** The acting member's approval, the first vote on the login (decisions, sections 2 and 6). */
async function approveForBusiness(
  ctx: WalletContext,
  given: { login: BrokerLogin; claimed: ClaimedLogin; named: Address | undefined },
): Promise<BusinessPart> {
  const { login, claimed, named } = given;
  const { object, session } = claimed;
  const { client_id: clientId, valid_until: validUntil } = object;
  if (clientId === undefined || validUntil === undefined)
    throw new WalletRefusal("forged_request", "the request object does not say what is approved");
  const latest = Math.min(object.exp, (await ctx.now()) + loginSecondsMax);
  if (validUntil > latest + chainGraceSeconds)
    throw new WalletRefusal("forged_request", "the approval would last longer than logins do");
  const { address } = await chooseBusiness(ctx, named, login.broker);
  const { chainId, charter, epoch, removal } = await readBusiness(ctx, login.broker, address);
  const actingMember = ctx.identity.address;
  if (!charter.members.some((each) => each.isVoting && each.address === actingMember))
    throw new WalletRefusal("invalid_request", `this identity has no vote in ${address}`);
  const hash = businessLoginHash({
    session: parseLoginSession(session)?.loginId ?? session,
    issuer: object.iss,
    clientId,
    requester: object.domain,
    scope: object.scopes.join(" "),
    business: address,
    actingMember,
  });
  if (removal?.member === actingMember) await tellPresence(ctx, { address, broker: login.broker });
  const category = businessCategory.login;
  const approval = { chainId, business: address, category, hash, epoch, validUntil };
  return {
    address,
    epoch,
    validUntil,
    approval: await ctx.identity.sign(approvalDigest(approval)),
  };
}

/**
 * A member who approves is not lost, which ends a removal. If the broker does not accept that now, the login goes on,
 * and the next vote reports it.
 */
async function tellPresence(ctx: WalletContext, business: KeptBusiness): Promise<void> {
  try {
    await endRemoval(ctx, business);
  } catch (error) {
    if (!(error instanceof WalletRefusal)) throw error;
  }
}

async function openUnknown(ctx: WalletContext, link: LoginLink): Promise<OpenRequest> {
  const { session, connection } = link;
  const requester = requesterOf(link, null);
  const description: Description = {
    action: "login",
    identity: ctx.identity.address,
    words: [
      `${sayRequester(requester)} asks you to log in as ${shortAddress(ctx.identity.address)}.`,
      sayRoute("The answer, your identity with a signature,", link),
    ].map(shownText),
    requester,
    concerns: connection === undefined ? [] : ["unknown-requester"],
    codeNeeded: false,
    returnType: returnTypeOf(link),
    ...(connection === undefined ? {} : { connection }),
    data: { session },
  };
  return {
    description,
    answer: async () =>
      signLogin(ctx, {
        session,
        connection: connection ?? "",
        requester: "",
        code: "",
        object: zeroHash,
      }),
  };
}

function describeClaimed(
  ctx: WalletContext,
  { link }: BrokerLogin,
  { object, session, connection, hash }: ClaimedLogin,
): Description {
  const requester = requesterOf(link, { object, hash });
  const returnType = returnTypeOf(link);
  const isScanned = returnType === "callback";
  const isNumberNeeded = isScanned && needsNumber(object);
  const { redirect_host: redirectHost, scopes, acr, exp } = object;
  return {
    action: "login",
    identity: ctx.identity.address,
    words: [
      `${sayRequester(requester)} asks you to log in as ${shortAddress(ctx.identity.address)}.`,
      `Afterwards the browser goes to ${redirectHost ?? "an unnamed place"}.`,
      ...sayScopes(scopes),
      isScanned ? sayNearness(object) : "The page was opened on this device.",
      ...(isNumberNeeded ? ["Approving takes the two digits that the page shows now."] : []),
    ].map(shownText),
    requester,
    concerns: isScanned ? concernsOf(object) : [],
    codeNeeded: isNumberNeeded,
    returnType,
    connection,
    expiresAt: exp,
    data: {
      session,
      redirectHost,
      scopes,
      ...(acr === undefined ? {} : { acr }),
      ...(object.purpose === undefined ? {} : { purpose: object.purpose }),
    },
  };
}

async function refuseUnclaimed(
  ctx: WalletContext,
  { link, declining, isKnown }: { link: LoginLink; declining: Declining; isKnown: boolean },
): Promise<SentRefusal> {
  const { session, connection = "" } = link;
  const refusal: SentRefusal = { error: "access_denied", session };
  if (isKnown || !declining.signed) return refusal;
  return { ...refusal, ...(await signDecline(ctx, { request: session, connection })) };
}

async function signLogin(ctx: WalletContext, message: LoginMessage): Promise<LoginResult> {
  const signature = await ctx.identity.sign(loginDigest(message));
  return { signature, session: message.session, svcID: ctx.identity.address };
}

const isNear = ({ acr }: RequestObject): boolean => acr === "urn:svc:acr:qr-near";

/** Anything that the broker does not call near counts as far. */
function concernsOf(object: RequestObject): readonly Concern[] {
  return isNear(object) ? [] : ["other-network"];
}

function sayNearness(object: RequestObject): string {
  return isNear(object)
    ? "The browser is in the same network as this wallet."
    : "The browser is in another network: is it in front of you?";
}

const saidScopes = new Set(["openid", "offline", "offline_access", businessScope]);

function sayScopes(scopes: readonly string[]): readonly string[] {
  const isLasting = scopes.includes("offline") || scopes.includes("offline_access");
  const others = scopes.filter((scope) => !saidScopes.has(scope));
  return [
    ...(scopes.includes(businessScope)
      ? [
          "You log in for a business: its other voting members are asked as well, as its rules say. It learns what the business is called and that you act for it.",
        ]
      : []),
    ...(isLasting ? ["It may keep you logged in until you end the login."] : []),
    ...(others.length > 0 ? [`It also asks for: ${others.join(", ")}.`] : []),
  ];
}
