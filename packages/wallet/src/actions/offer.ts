import {
  isBusinessField,
  isOfferConnection,
  businessAttribute,
  returnTypeOf,
  type RequestLink,
  type SignLink,
} from "@svc/protocol";
import { chooseBusiness } from "../businesses.ts";
import type { WalletContext } from "../context.ts";
import { sayTime } from "../field-request.ts";
import type { Outcome } from "../outcome.ts";
import { WalletRefusal } from "../refusal.ts";
import type { CheckedApproval, OpenRequest } from "../request.ts";
import {
  askRequester,
  brokerUrl,
  findBroker,
  requesterOf,
  sayRequester,
  type VerifiedObject,
} from "../requester.ts";
import { saidByObject } from "../shown-links.ts";
import { shownText } from "../shown-text.ts";
import { membersOf, refusalOfAnswer } from "../transport.ts";

/** An offer to a business, at its broker (decisions, section 6, Offers). */
export type OfferLink = (RequestLink | SignLink) & { readonly connection: string };

/**
 * Whether a link is an offer: a person who scans it accepts it for a business of theirs, without signing anything. The
 * address below a known broker says so; `attr=business` means nothing else.
 *
 * @throws {WalletRefusal} unsupported for `attr=business` that leads elsewhere
 */
export async function isOffer(ctx: WalletContext, link: OfferLink): Promise<boolean> {
  const broker = await findBroker(ctx, link);
  const isAtBroker = broker !== null && isOfferConnection(link.connection, broker);
  const isReserved = link.action === "request" && link.attributes.includes(businessAttribute);
  if (isAtBroker && (link.action === "sign" || isReserved)) return true;
  if (!isReserved) return false;
  throw new WalletRefusal(
    "unsupported",
    "an offer to a business can be taken only at a broker on this wallet's list",
  );
}

/**
 * Opens an offer: shows who offers what. The answer claims the offer; the vote then appears in the inbox.
 *
 * @throws {WalletRefusal}
 */
export async function openOffer(ctx: WalletContext, link: OfferLink): Promise<OpenRequest> {
  const verified = await askRequester(ctx, link);
  if (verified === null)
    throw new WalletRefusal("broker_refused", "no broker vouches for who makes this offer");
  const { object } = verified;
  const unknown = [...object.required, ...object.optional].find((name) => !isBusinessField(name));
  if (unknown !== undefined)
    throw new WalletRefusal("invalid_request", `${unknown} is not a field of a business`);
  const { required, optional, purpose, id, exp } = object;
  return {
    description: {
      action: link.action,
      identity: ctx.identity.address,
      words: sayOffer(link, verified).map(shownText),
      requester: requesterOf(link, verified),
      concerns: [],
      codeNeeded: false,
      returnType: returnTypeOf(link),
      connection: link.connection,
      expiresAt: exp,
      data: { offer: id, required, optional, ...(purpose === undefined ? {} : { purpose }) },
    },
    said: saidByObject(verified),
    takes: { business: true },
    claim: async (approval) => claimOffer(ctx, link, approval),
    trace: (approval) => ({
      ...(id === undefined ? {} : { id }),
      ...(purpose === undefined ? {} : { purpose }),
      ...(approval.business === undefined ? {} : { business: approval.business }),
    }),
  };
}

function sayOffer(link: OfferLink, verified: VerifiedObject): readonly string[] {
  const { required, optional, purpose, exp } = verified.object;
  const ask = link.action === "sign" ? "sign a document" : "share verified company data";
  return [
    `${sayRequester(requesterOf(link, verified))} offers that a business of yours may ${ask}.`,
    ...(purpose === undefined ? [] : [`Purpose: ${JSON.stringify(purpose)}.`]),
    ...required.map((name) => `Required: ${name}.`),
    ...optional.map((name) => `Optional: ${name}.`),
    "Taking it signs nothing: its voting members, you among them, then find it in their inbox.",
    `It can be taken until ${sayTime(exp)}.`,
  ];
}

async function claimOffer(
  ctx: WalletContext,
  link: OfferLink,
  { business }: CheckedApproval,
): Promise<Outcome> {
  const broker = await findBroker(ctx, link);
  if (broker === null)
    throw new WalletRefusal("unsupported", "the broker is no longer on this wallet's list");
  const { address } = await chooseBusiness(ctx, business, broker);
  const url = brokerUrl(link.connection, "claim");
  const result = { svcID: ctx.identity.address, business: address };
  const answer = await ctx.sessions.call(broker, { path: url.slice(broker.length), body: result });
  const { status } = answer;
  const said = { kind: "delivered", status, result, answer: membersOf(answer.text) } as const;
  return status < 300 ? said : { ...said, refusal: refusalOfAnswer(url, answer).message };
}
