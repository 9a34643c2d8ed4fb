import {
  encodeInfos,
  leavesHash,
  nameOfAttribute,
  returnTypeOf,
  transferDigest,
  type DataTransferLink,
} from "@svc/protocol";
import type { WalletContext } from "../context.ts";
import { refuseLink } from "../decline.ts";
import {
  chooseHeld,
  decideRelease,
  refuseMissing,
  sayChoices,
  sayIdentity,
  sayTime,
  sayValue,
} from "../field-request.ts";
import { listHeld } from "../held-credential.ts";
import { WalletRefusal } from "../refusal.ts";
import type { ActionHandler, CheckedApproval } from "../request.ts";
import { isGuarded, leafOfSource, nameOfText, type Choice, type Source } from "../selection.ts";
import { saidOfFields } from "../shown-links.ts";
import { shownText } from "../shown-text.ts";

/**
 * `svc:<identity>?attr=..`: hand fields over to somebody who is present, without a service in between (service
 * document, data transfer request). Nobody vouches for who that is, so guarded fields are never handed over this way.
 */
export const dataTransferAction: ActionHandler<DataTransferLink> = {
  async open(ctx, link) {
    const linked = namesOf(link.attributes.map((each) => nameOfAttribute(each) ?? each));
    const choices = await chooseHeld(ctx, linked, { broker: null, mustHold: false });
    const offered = linked.length > 0 ? [] : await listOffered(ctx);
    const expiresAt = (await ctx.now()) + link.expiresInMinutes * 60;
    const { audience, nonce } = link;
    const release = async (approval: CheckedApproval): Promise<readonly Source[]> => {
      if (linked.length > 0) return decideRelease(choices, approval);
      if (approval.fields.length === 0)
        throw new WalletRefusal(
          "invalid_input",
          "the link leaves it to you which fields to share: name each with --field, such as --field EMAIL",
        );
      const picked = namesOf(approval.fields.map(nameOfText));
      const found = await chooseHeld(ctx, picked, { broker: null, mustHold: false });
      return decideRelease(requireAll(found), { without: approval.without });
    };
    let released: readonly Source[] = [];
    return {
      description: {
        action: link.action,
        identity: ctx.identity.address,
        words: [
          `Whoever gave you this asks for verified fields ${sayIdentity(ctx)}.`,
          ...(audience === undefined ? [] : [`It is made out to ${JSON.stringify(audience)}.`]),
          sayRoute(link, expiresAt),
          ...sayChoices(choices, sayValue),
          ...(linked.length > 0
            ? []
            : [`You pick which: ${offered.join(", ") || "you hold none"}.`]),
        ].map(shownText),
        requester: { known: false },
        concerns: [],
        codeNeeded: false,
        returnType: returnTypeOf(link),
        expiresAt,
        data: {
          asked: linked.map(({ name }) => name),
          fields: choices.flatMap(({ name, source }) =>
            source === null ? [] : [{ name, field: source.field, value: source.data }],
          ),
          missing: choices.filter(({ source }) => source === null).map(({ name }) => name),
          ...(linked.length > 0 ? {} : { offered }),
          ...(audience === undefined ? {} : { audience }),
          ...(nonce === undefined ? {} : { nonce }),
        },
      },
      said: saidOfFields(null, choices),
      takes: { without: true, ...(linked.length > 0 ? {} : { fields: true }) },
      async answer(approval) {
        released = await release(approval);
        const { address } = ctx.identity;
        const data = leavesHash(released.map((source) => leafOfSource(address, source)));
        const message = {
          from: address,
          data,
          expiresAt,
          audience: audience ?? "",
          nonce: nonce ?? "",
        };
        const signature = await ctx.identity.sign(transferDigest(message));
        return { svcID: address, infos: encodeInfos(released), expiresAt, signature };
      },
      trace: () => ({ fields: released.map(({ field }) => field) }),
    };
  },

  refuse: async (ctx, link, declining) =>
    refuseLink(ctx, link, { error: "access_denied", request: link.nonce ?? "", declining }),
};

/** A person who is asked face to face decides about every field. */
function namesOf(names: readonly string[]): readonly { name: string; isOptional: true }[] {
  return [...new Set(names)].map((name) => ({ name, isOptional: true }));
}

/** The wallet has to hold every field that the person picked. */
function requireAll(choices: readonly Choice[]): readonly Choice[] {
  const missing = choices.filter(({ source }) => source === null);
  refuseMissing(missing, "nothing that this wallet holds and may give fits");
  return choices;
}

async function listOffered(ctx: WalletContext): Promise<readonly string[]> {
  const now = await ctx.now();
  const fields = (await listHeld(ctx))
    .filter(({ status }) => status === "live")
    .flatMap((held) => held.fields)
    .filter(({ field, expiresAt }) => expiresAt > now && !isGuarded(field));
  return [...new Set(fields.map(({ field }) => field))].toSorted();
}

function sayRoute({ returnType }: DataTransferLink, expiresAt: number): string {
  switch (returnType) {
    case "p2p":
      return `A link is made by which one reader can pick it up, once, until ${sayTime(expiresAt)}.`;
    case "nfc":
      return "It is handed over by NFC.";
    case "qr":
    case "text":
      break;
  }
  return `It is shown here, and counts until ${sayTime(expiresAt)}.`;
}
