import { buildResult, type Link, type ResultOf, type Action, returnTypeOf } from "@svc/protocol";
import { openRequest, readLink, refuseRequest } from "./actions.ts";
import { listBrokers } from "./brokers.ts";
import { ConcernsRefusal, type Concern } from "./concern.ts";
import type { WalletContext } from "./context.ts";
import { endLogin, listLogins, type Login } from "./logins.ts";
import { WalletRefusal } from "./refusal.ts";
import type { Description, SentRefusal } from "./request.ts";
import { sayRequester } from "./requester.ts";
import { openSessions } from "./sessions.ts";
import { call, membersOf, refusalOfAnswer, requireSecure } from "./transport.ts";

/** What came of an approval or a refusal. */
export type Outcome =
  | {
      readonly kind: "delivered";
      /** HTTP status of the other side; it took the answer if this is 2xx. */
      readonly status: number;
      /** The result or refusal that was sent, without secret and digits. */
      readonly result: Readonly<Record<string, unknown>>;
      /** What the other side said: the members of its JSON object, none for anything else. */
      readonly answer: Readonly<Record<string, unknown>>;
      /** Present when the other side did not take it: why, in one line. */
      readonly refusal?: string;
    }
  /** The address to open in the browser, or in the app that asked. */
  | { readonly kind: "opened"; readonly url: string }
  /** The answer as text, to be shown as a QR code or as it is. */
  | { readonly kind: "shown"; readonly payload: string }
  /** Nothing was signed: the approval takes the two digits that the page shows now. */
  | { readonly kind: "code-required" };

export interface Approval {
  /** The two digits, where the page shows some. */
  readonly code?: string;
  /** The concerns that were confirmed. */
  readonly accept?: ReadonlySet<Concern>;
}

export interface Denial {
  /** "I did not start this"; only a broker is told. */
  readonly notStarted?: boolean;
  /** With `unknown-requester` also somebody unknown learns the identity, by a signed refusal. */
  readonly accept?: ReadonlySet<Concern>;
}

/** The wallet of one identity. Every verb throws `WalletRefusal`. */
export interface Wallet {
  /**
   * Says what a link asks for. A login at a known broker is claimed by it, once: a later approval or refusal,
   * from any process over the same storage, goes on with that claim. Nobody else is contacted.
   */
  describe(link: string): Promise<Description>;
  /**
   * Signs and sends what a link asks for.
   *
   * @throws {ConcernsRefusal} when a concern of the description is not accepted
   */
  approve(link: string, approval?: Approval): Promise<Outcome>;
  /** Turns a request down. A QR login is claimed first, so that the refusal counts. */
  decline(link: string, denial?: Denial): Promise<Outcome>;
  /** The logins that hold, at every broker on the list. */
  logins(): Promise<readonly Login[]>;
  endLogin(id: string): Promise<void>;
  /** Ends the wallet's sessions with its brokers. */
  close(): Promise<void>;
}

/** What a wallet is opened with; see `WalletContext`. */
export interface WalletParts extends Omit<WalletContext, "brokers"> {
  /** Origins of the brokers it comes with; `addBroker` adds to them. */
  readonly seededBrokers: readonly string[];
}

/** Opens the wallet of one identity. */
export function openWallet({ seededBrokers, ...parts }: WalletParts): Wallet {
  const ctx: WalletContext = {
    ...parts,
    brokers: async () => listBrokers(parts.storage, seededBrokers),
  };
  const sessions = openSessions(ctx);
  return {
    async describe(text) {
      return (await openRequest(ctx, readLink(ctx, text))).description;
    },
    async approve(text, approval = {}) {
      const { code } = approval;
      // Before anything is claimed: a slip of the hand must not cost the login.
      if (code !== undefined && !/^[0-9]{2}$/.test(code))
        throw new WalletRefusal("wrong_code", "the digits of the page are two digits");
      const link = readLink(ctx, text);
      const request = await openRequest(ctx, link);
      const { codeNeeded, concerns, requester } = request.description;
      if (codeNeeded && code === undefined) return { kind: "code-required" };
      if (!codeNeeded && code !== undefined)
        throw new WalletRefusal("wrong_code", "this request takes no digits");
      const open = concerns.filter((concern) => approval.accept?.has(concern) !== true);
      if (open.length > 0) throw new ConcernsRefusal(open, sayRequester(requester));
      return deliver(ctx, link, await request.answer({ code: code ?? "" }));
    },
    async decline(text, { notStarted = false, accept } = {}) {
      const link = readLink(ctx, text);
      const signed = link.identity !== undefined || accept?.has("unknown-requester") === true;
      return deliver(ctx, link, await refuseRequest(ctx, link, { notStarted, signed }));
    },
    logins: async () => listLogins(ctx, sessions),
    endLogin: async (id) => endLogin(ctx, sessions, id),
    close: async () => sessions.close(),
  };
}

async function deliver(
  ctx: WalletContext,
  link: Link,
  result: ResultOf[Action] | SentRefusal,
): Promise<Outcome> {
  const connection = link.action === "data-transfer" ? undefined : link.connection;
  const returnType = returnTypeOf(link);
  const delivery = buildResult(result, {
    returnType,
    ...(connection === undefined ? {} : { connection }),
  });
  switch (delivery.type) {
    case "callback": {
      const { url, body } = delivery;
      const answer = await call(ctx.fetch, { url, body });
      const { claimSecret: _claimSecret, code: _code, ...shown } = body;
      const { status } = answer;
      const delivered = {
        kind: "delivered",
        status,
        result: shown,
        answer: membersOf(answer.text),
      } as const;
      return status < 300
        ? delivered
        : { ...delivered, refusal: refusalOfAnswer(url, answer).message };
    }
    case "app-link":
      if (/^http:/i.test(delivery.url)) requireSecure(delivery.url);
      return { kind: "opened", url: delivery.url };
    case "qr":
    case "text":
      return { kind: "shown", payload: delivery.payload };
    case "p2p":
    case "nfc":
      break;
  }
  throw new WalletRefusal("unsupported", `this wallet cannot answer by ${returnType} yet`);
}
