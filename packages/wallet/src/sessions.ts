import { isShowable, sessionDigest } from "@svc/protocol";
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import { call, membersOf, refusalOfAnswer, type Call, type CallAnswer } from "./transport.ts";

/** A challenge is for immediate use; a broker that asks for a signature that is valid longer than this gets none. */
const challengeSecondsMax = 3600;

type SessionContext = Pick<WalletContext, "identity" | "fetch" | "now">;

/** A call to a path at a broker; if it has a `body`, it is a POST. */
interface SessionCall extends Pick<Call, "bytesMax"> {
  readonly path: string;
  readonly method?: "POST" | "DELETE";
  readonly body?: Readonly<Record<string, unknown>>;
}

/** Sessions of the wallet's identity with brokers: opened when first needed, kept only in memory. */
export interface WalletSessions {
  /** Calls a path below the broker in a session. @throws {WalletRefusal} */
  call(broker: string, request: SessionCall): Promise<CallAnswer>;
  /** The same for a call that any other status refuses: 200 unless others are named. @throws {WalletRefusal} */
  ask(broker: string, request: SessionCall, statuses?: readonly number[]): Promise<CallAnswer>;
  /** Ends every session at its broker. */
  close(): Promise<void>;
}

/** Keeps one session for each broker. A session that the broker has forgotten is opened again, once. */
export function openSessions(ctx: SessionContext): WalletSessions {
  const tokens = new Map<string, Promise<string>>();
  const forget = (broker: string, opened: Promise<string>): void => {
    if (tokens.get(broker) === opened) tokens.delete(broker);
  };
  /**
   * Calls that come while a session is being opened share it. A session that cannot be opened, or is refused, is
   * forgotten.
   */
  const send = async (broker: string, request: Omit<Call, "url"> & { path: string }) => {
    const opening = tokens.get(broker) ?? openSession(ctx, broker);
    tokens.set(broker, opening);
    const token = await opening.catch((error: unknown) => {
      forget(broker, opening);
      throw error;
    });
    const { path, ...others } = request;
    const headers = { authorization: `Bearer ${token}` };
    const answer = await call(ctx.fetch, { ...others, url: `${broker}${path}`, headers });
    if (answer.status === 401) forget(broker, opening);
    return answer;
  };
  const endSession = async (broker: string): Promise<void> => {
    try {
      await send(broker, { path: "/w/session", method: "DELETE" });
    } catch (error) {
      // If the broker is away, the session expires by itself; the result of the work is not affected.
      if (!(error instanceof WalletRefusal)) throw error;
    }
  };
  const callInSession: WalletSessions["call"] = async (broker, { method, ...others }) => {
    const request = { ...(method === undefined ? {} : { method, body: {} }), ...others };
    const answer = await send(broker, request);
    return answer.status === 401 ? send(broker, request) : answer;
  };
  return {
    call: callInSession,
    async ask(broker, request, statuses = [200]) {
      const answer = await callInSession(broker, request);
      if (!statuses.includes(answer.status))
        throw refusalOfAnswer(`${broker}${request.path}`, answer);
      return answer;
    },
    async close() {
      const open = [...tokens.keys()];
      await Promise.all(open.map(async (broker) => endSession(broker)));
      tokens.clear();
    },
  };
}

/**
 * Proves the identity to a broker by a signed `Session` (decisions, section 3). A challenge opens only one session. If
 * the network delivered the signature twice, the wallet may get the refusal of the second copy (422): then it asks for
 * another challenge.
 */
async function openSession(ctx: SessionContext, broker: string): Promise<string> {
  const first = await tryOpenSession(ctx, broker);
  const opened = first.status === 422 ? await tryOpenSession(ctx, broker) : first;
  const { token } = membersOf(opened.text);
  if (opened.status !== 200 || typeof token !== "string" || !/^[\w.~+/=-]{1,500}$/.test(token))
    throw refusalOfAnswer(`${broker}/w/session`, opened);
  return token;
}

async function tryOpenSession(ctx: SessionContext, broker: string): Promise<CallAnswer> {
  const challengeUrl = `${broker}/w/session/challenge`;
  const asked = await call(ctx.fetch, { url: challengeUrl, body: {} });
  if (asked.status !== 200) throw refusalOfAnswer(challengeUrl, asked);
  const { challenge, deadline, origin } = membersOf(asked.text);
  const isFit =
    typeof challenge === "string" &&
    challenge.length <= 200 &&
    isShowable(challenge) &&
    // It is signed as a whole number.
    typeof deadline === "number" &&
    Number.isSafeInteger(deadline) &&
    deadline >= 0 &&
    deadline <= (await ctx.now()) + challengeSecondsMax &&
    // The signature names the broker that was called, so a challenge that was passed on from another broker opens no
    // session there.
    origin === broker;
  if (!isFit) throw new WalletRefusal("broker_refused", `${broker} sent an invalid challenge`);
  const signature = await ctx.identity.sign(sessionDigest({ origin: broker, challenge, deadline }));
  const url = `${broker}/w/session`;
  const body = { svcID: ctx.identity.address, challenge, deadline, signature };
  return call(ctx.fetch, { url, body });
}
