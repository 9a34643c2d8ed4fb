import {
  bytesOfHex,
  hexOfBytes,
  personalDigest,
  refusalOf,
  returnTypeOf,
  shortAddress,
  textOfBytes,
  typedDataDigest,
  warningsOf,
  type SignLink,
  type TdLink,
  type TypedDataDocument,
} from "@svc/protocol";
import { sayConcern, type Concern } from "../concern.ts";
import type { WalletContext } from "../context.ts";
import { isLate, refuseLink } from "../decline.ts";
import { WalletRefusal } from "../refusal.ts";
import type { ActionHandler, Declining, OpenRequest, SentRefusal } from "../request.ts";
import { askRequester, requesterOf, sayRequester } from "../requester.ts";
import { sayRoute } from "../return-route.ts";
import { shownText } from "../shown-text.ts";
import { sayTypedData } from "../typed-data-words.ts";

/** What is signed, and how it is shown. */
interface Content {
  readonly digest: Uint8Array;
  /** The end of "asks you to ..". */
  readonly ask: string;
  readonly words: readonly string[];
  readonly data: Readonly<Record<string, unknown>>;
}

/** `svc:td`: an EIP-712 document (decisions, section 3, "Signatures" and "Reserved types"). */
export const typedDataAction: ActionHandler<TdLink> = {
  open: async (ctx, link) => openSignature(ctx, link, typedDataContent),
  refuse: refuseSignature,
};

/** `svc:sign`: bytes, signed by EIP-191. */
export const signAction: ActionHandler<SignLink> = {
  open: async (ctx, link) => openSignature(ctx, link, messageContent),
  refuse: refuseSignature,
};

async function openSignature<L extends TdLink | SignLink>(
  ctx: WalletContext,
  link: L,
  contentOf: (link: L) => Content,
): Promise<OpenRequest> {
  const refusal = refusalOf(link);
  if (refusal !== null) throw new WalletRefusal("invalid_request", refusal.reason);
  const { digest, ask, words, data } = contentOf(link);
  const requester = requesterOf(link, await askRequester(ctx, link));
  const { connection, deadline } = link;
  const { identity } = ctx;
  const isForeign = connection !== undefined && !requester.known;
  const concerns: Concern[] = [
    ...(isForeign ? ["unknown-requester" as const] : []),
    ...warningsOf(link),
  ];
  return {
    description: {
      action: link.action,
      identity: identity.address,
      words: [
        `${sayRequester(requester)} asks you to ${ask} as ${shortAddress(identity.address)}.`,
        ...concerns.map((concern) => `Careful: ${sayConcern(concern)}.`),
        ...words,
        sayRoute("The signature", link),
      ].map(shownText),
      requester,
      concerns,
      codeNeeded: false,
      returnType: returnTypeOf(link),
      ...(connection === undefined ? {} : { connection }),
      ...(deadline === undefined ? {} : { expiresAt: deadline }),
      data,
    },
    answer: async () => ({ signature: await identity.sign(digest), svcID: identity.address }),
  };
}

function typedDataContent(link: TdLink): Content {
  const document: TypedDataDocument = { ...link.data, types: link.types };
  const digest = typedDataDigest(document);
  return {
    digest,
    ask: `sign the document ${link.data.primaryType}`,
    words: sayTypedData(document),
    data: { ...document, hash: hexOfBytes(digest) },
  };
}

function messageContent(link: SignLink): Content {
  const bytes = bytesOfHex(link.data) ?? new Uint8Array(0);
  const text = textOfBytes(bytes);
  const digest = personalDigest(bytes);
  const readable = text !== null && isReadable(text) ? text : null;
  return {
    digest,
    ask: readable === null ? `sign ${bytes.length} bytes` : "sign a text",
    words:
      readable === null
        ? [`Bytes: ${link.data}`]
        : readable.split("\n").map((line) => `Text: ${JSON.stringify(line)}`),
    data: {
      bytes: link.data,
      ...(readable === null ? {} : { text: readable }),
      hash: hexOfBytes(digest),
    },
  };
}

/** Texts may hold line feeds and tabs; any other control character makes them bytes. */
// eslint-disable-next-line no-control-regex
const isReadable = (text: string): boolean => !/[\u0000-\u0008\u000b-\u001f\u007f]/.test(text);

async function refuseSignature(
  ctx: WalletContext,
  link: TdLink | SignLink,
  declining: Declining,
): Promise<SentRefusal> {
  const refusal = { request: "", declining };
  if (await isLate(ctx, link)) return refuseLink(ctx, link, { ...refusal, error: "expired" });
  const isForbidden = refusalOf(link) !== null;
  const error = isForbidden ? "invalid_request" : "access_denied";
  return refuseLink(ctx, link, { ...refusal, error });
}
