import { isRecord } from "@svc/protocol";
import { askEach, askForList } from "./asking-brokers.ts";
import type { WalletContext } from "./context.ts";
import { readItems } from "./pages.ts";
import { WalletRefusal } from "./refusal.ts";
import { shownText } from "./shown-text.ts";
import { refusalOfAnswer } from "./transport.ts";

/** A login that is still live. */
export interface Login {
  readonly id: string;
  /** Origin of the broker that has it. */
  readonly broker: string;
  readonly clientName: string;
  /** Verified domain of the client. */
  readonly domain?: string;
  /** Unix seconds. */
  readonly at: number;
  /** How sure the broker was that wallet and browser belonged together. */
  readonly acr: string;
}

/** The identity's logins at every broker on the list, newest first for each. @throws {WalletRefusal} */
export async function listLogins(ctx: WalletContext): Promise<readonly Login[]> {
  const path = "/w/logins?limit=100";
  const { answers } = await askForList(ctx, async (broker) =>
    Array.fromAsync(readItems(ctx, broker, { path, read: (item) => loginOf(item, broker) })),
  );
  return answers.flat();
}

/**
 * Ends a login with its browser session and tokens, at every broker that says it has it.
 *
 * @param id as `listLogins` returns it
 * @throws {WalletRefusal} not_found, broker_refused, unreachable
 */
export async function endLogin(ctx: WalletContext, id: string): Promise<void> {
  // Every broker is told, since one that claims to have had the login may not be the one that really has it.
  const { answers, missing } = await askEach(ctx, async (broker) => {
    const path = `/w/logins/${encodeURIComponent(id)}/end`;
    const answer = await ctx.sessions.call(broker, { path, method: "POST" });
    if (answer.status === 200) return true;
    // A broker whose login ids have another form answers 400: it does not have this login.
    if (answer.status === 404 || answer.status === 400) return false;
    throw refusalOfAnswer(`${broker}${path}`, answer);
  });
  const [refusal] = missing.values();
  if (!answers.includes(true))
    throw refusal ?? new WalletRefusal("not_found", `there is no login ${id} of this identity`);
  for (const { message } of missing.values())
    ctx.tell?.(`${message}; if that broker has the login ${id}, it goes on`);
}

function loginOf(item: unknown, broker: string): Login | null {
  if (!isRecord(item)) return null;
  const { id, clientName, domain, at, acr } = item;
  if (typeof id !== "string" || typeof clientName !== "string" || typeof at !== "number")
    return null;
  // The id becomes part of a URL.
  if (!id.isWellFormed()) return null;
  return {
    id,
    broker,
    clientName: shownText(clientName),
    ...(typeof domain === "string" ? { domain: shownText(domain) } : {}),
    at,
    acr: typeof acr === "string" ? acr : "",
  };
}
