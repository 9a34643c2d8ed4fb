import { type Static, Type } from "../../platform/http/schema.ts";
import { pageSize } from "../../platform/http/text-form.ts";
import { type Address, isHexOf } from "@svc/protocol";
import type { Http } from "../../platform/http/http.ts";
import { pageBody, pageParameters } from "../../platform/http/list-page.ts";
import { networkOfCaller } from "../../platform/http/large-answers.ts";
import { invalidRequest } from "../../platform/http/problems.ts";
import { bodyReasons, refusals } from "../../platform/http/refusals.ts";
import type { WalletCaller } from "../../platform/http/wallet-caller.ts";
import type { Vote } from "./ballot.ts";
import * as store from "./ballot-store.ts";
import { castVote } from "./ballots.ts";
import { answerInvitation, listInvitations } from "../business/invitations.ts";
import type { KybContext } from "../kyb-context.ts";
import { businessAddress, nameOfBusiness, idParams } from "../member-schemas.ts";
import { findRemovalByBallot } from "../business/removal-store.ts";
import { shownRequester } from "../request/shown-requester.ts";

const tags = ["wallet"];
const pageMax = 100;
/**
 * No item is added to a page that has reached this size: a hundred documents take 6 MiB, and are in memory until the
 * client has read them.
 */
const pageBytesMax = 1024 * 1024;
/** The prefix of cursors among ballots of businesses whose member the identity never agreed to be. */
const strangerCursor = "stranger:";
/** The prefix of cursors among invitations. */
const invitationCursor = "invitation:";
/** A prefix and the id of the last item shown: a ULID, or that of a login; empty if nothing of that part was shown. */
const cursorForm = /^(?:stranger:|invitation:)?(?:[0-9A-HJKMNP-TV-Z]{26}|[\w-]{22})?$/;

const InboxItem = Type.Object(
  {
    id: Type.String({ description: "The id of what is voted on." }),
    kind: Type.String({
      description:
        "`data_request`, `signature_request`, `business_login`, `governance` or `invitation`.",
    }),
    business: Type.Object(
      { address: businessAddress, name: nameOfBusiness },
      { description: "The business that asks its members, or that invites." },
    ),
    expiresAt: Type.Integer({ description: "Unix seconds." }),
  },
  {
    title: "InboxItem",
    additionalProperties: true,
    description:
      "An entry of the inbox. It has further members, depending on its kind, from which the wallet computes the approval.",
  },
);

/** The inbox of an identity, and the route that takes its votes. */
export function inboxRoutes(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.get(
    "/w/inbox",
    {
      config: { costlyAnswerOf: networkOfCaller(ctx) },
      schema: {
        querystring: Type.Object({
          limit: Type.Optional(
            pageSize({ description: `The page size, 1 to 100. Default: ${pageMax}.` }),
          ),
          cursor: pageParameters.cursor,
        }),
        response: {
          200: pageBody(InboxItem, {
            description:
              "Open votes first, then those of businesses that the identity never agreed to be a member of, then invitations; each oldest first. A page holds about 1 MiB, so it may be shorter than `limit`; only a page without `nextCursor` is the last.",
          }),
          ...refusals("invalid_request", "wallet_session_required", "rate_limited"),
        },
        tags,
        operationId: "listInbox",
        summary: "List what waits for this identity's vote",
      },
    },
    async (request) => {
      const user = await getWalletUser(request.headers.authorization);
      const { limit = String(pageMax), cursor = "" } = request.query;
      if (!cursorForm.test(cursor)) throw invalidRequest("cursor is not one of ours");
      return readInbox(ctx, user, { limit: Number(limit), after: cursor });
    },
  );
  voteRoute(ctx, scope, getWalletUser);
}

interface InboxPage {
  readonly items: {
    id: string;
    kind: string;
    business: { address: string; name: string };
    expiresAt: number;
  }[];
  readonly nextCursor?: string;
}

/** One part of an inbox, ordered by id. */
interface InboxPart {
  /** Prefix of its cursors. */
  readonly prefix: string;
  readonly list: (page: { limit: number; after: string }) => Promise<InboxPage["items"]>;
}

/**
 * Anybody can found a business and make anybody a member. So items of businesses to which this identity has agreed come
 * first, and cannot be buried under others.
 */
function inboxParts(ctx: KybContext, user: Address): readonly InboxPart[] {
  return [
    { prefix: "", list: async (page) => listVotes(ctx, user, { ...page, hasAgreed: true }) },
    {
      prefix: strangerCursor,
      list: async (page) => listVotes(ctx, user, { ...page, hasAgreed: false }),
    },
    { prefix: invitationCursor, list: async (page) => listInvitations(ctx, user, page) },
  ];
}

async function readInbox(
  ctx: KybContext,
  user: Address,
  { limit, after }: { limit: number; after: string },
): Promise<InboxPage> {
  const parts = inboxParts(ctx, user);
  const first = parts.findLastIndex(({ prefix }) => after.startsWith(prefix));
  const items: InboxPage["items"] = [];
  let bytes = 0;
  for (const [at, { prefix, list }] of parts.entries()) {
    if (at < first) continue;
    const begin = at === first ? after.slice(prefix.length) : "";
    const room = bytes > pageBytesMax ? 0 : limit - items.length;
    const found = await list({ limit: room + 1, after: begin });
    let last = begin;
    for (const item of found.slice(0, room)) {
      if (bytes > pageBytesMax) return { items, nextCursor: prefix + last };
      bytes += Buffer.byteLength(JSON.stringify(item));
      items.push(item);
      last = item.id;
    }
    if (found.length > room) return { items, nextCursor: prefix + last };
  }
  return { items };
}

async function listVotes(
  ctx: KybContext,
  user: Address,
  page: { limit: number; after: string; hasAgreed: boolean },
): Promise<InboxPage["items"]> {
  const first = await readVotes(ctx, user, page);
  // If a login has ended between the two reads, its ballot has no details: it is gone by now, so read again.
  const read = first.isWhole ? first : await readVotes(ctx, user, page);
  return read.rows.map(({ ballot, businessName, requester }) => {
    const { id, kind, category, business, epoch, validUntil, expiresAt } = ballot;
    const item = {
      id,
      kind,
      category,
      business: { address: business, name: businessName },
      chainId: ctx.chain.chainId,
      epoch,
      validUntil,
      expiresAt,
      requester: requester === null ? null : shownRequester(ctx, requester),
    };
    return Object.assign(item, read.details.get(id));
  });
}

/** Open votes and their details; `isWhole` is false if a ballot has none. */
async function readVotes(
  ctx: KybContext,
  user: Address,
  page: { limit: number; after: string; hasAgreed: boolean },
) {
  const rows = await store.listInbox(ctx.db, user, { ...page, now: ctx.clock.now() });
  const details = await showAll(ctx, rows);
  return { rows, details, isWhole: rows.every(({ ballot }) => details.has(ballot.id)) };
}

/** The details of ballots, with one call of `show` per kind. */
async function showAll(
  ctx: KybContext,
  rows: readonly store.InboxRow[],
): Promise<ReadonlyMap<string, object>> {
  const byKind = Map.groupBy(rows, ({ ballot }) => ballot.kind);
  const shown = await Promise.all(
    [...byKind].map(async ([kind, of]) =>
      ctx.ballotKinds[kind].show(
        ctx,
        of.map(({ ballot }) => ballot.id),
      ),
    ),
  );
  return new Map(shown.flatMap((each) => Array.from(each)));
}

const VoteBody = Type.Object(
  {
    vote: Type.Union([Type.Literal("approve"), Type.Literal("reject")], {
      description: "It may be sent again, but not changed.",
    }),
    signature: Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        "The signature over `BusinessApproval` or `Invitation` or, for a rejection, over `Decline`.",
    }),
    epoch: Type.Optional(Type.Integer({ minimum: 0, description: "Only for an approval." })),
    validUntil: Type.Optional(Type.Integer({ minimum: 0, description: "Only for an approval." })),
    optional: Type.Optional(
      Type.Array(Type.String({ maxLength: 100 }), {
        maxItems: 40,
        description: "Only for the approval of a data request: the optional fields to release.",
      }),
    ),
  },
  { additionalProperties: false },
);

function voteRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.post(
    "/w/votes/:id",
    {
      schema: {
        params: idParams("The `id` of an entry of the inbox."),
        body: VoteBody,
        response: {
          200: Type.Object(
            {
              id: Type.String({ description: "The `id` of the entry." }),
              status: Type.String({ description: "`open`, `approved` or `refused`." }),
              removalOpen: Type.Optional(
                Type.Literal(true, {
                  description: "True if this member is being removed; sign `Keep` to stay.",
                }),
              ),
            },
            { description: "The current state.", additionalProperties: true },
          ),
          ...refusals(
            ...bodyReasons,
            "wallet_session_required",
            "ballot_not_found",
            "ballot_over",
            "ballot_changed",
            "already_voted",
            "signature_wrong",
            "result_refused",
          ),
        },
        tags,
        operationId: "vote",
        summary: "Vote on an entry of the inbox",
      },
    },
    async (request) => {
      const member = await getWalletUser(request.headers.authorization);
      const { id } = request.params;
      if (!isHexOf(request.body.signature, 65))
        throw invalidRequest("signature must be 65 bytes in hex");
      const invited = await answerInvitation(ctx, { id, member, ...request.body });
      if (invited !== null) return { id, ...invited };
      const status = await castVote(ctx, { id, member, vote: voteOf(request.body) });
      const removal = await findRemovalByBallot(ctx.db, { ballotId: id, member });
      return { id, status, ...(removal === null ? {} : { removalOpen: true as const }) };
    },
  );
}

function voteOf(body: Static<typeof VoteBody>): Vote {
  const { vote: kind, signature, epoch, validUntil, optional } = body;
  if (kind === "reject") return { kind, signature };
  if (epoch === undefined || validUntil === undefined)
    throw invalidRequest("an approval names epoch and validUntil");
  return { kind, signature, epoch, validUntil, ...(optional === undefined ? {} : { optional }) };
}
