import type { WalletContext } from "./context.ts";
import {
  checkValues,
  keepCredential,
  listHeld,
  readListed,
  type HeldCredential,
  type ListedCredential,
} from "./held-credential.ts";
import { readItems } from "./pages.ts";
import { WalletRefusal } from "./refusal.ts";
import { refusalOfAnswer } from "./transport.ts";

/** The result of asking a broker for credentials. */
export interface Collection {
  /** Collected now: from here on only the wallet has their values. */
  readonly received: readonly HeldCredential[];
  /**
   * Offered with values that their issuer did not commit to, in place of a held one, or beyond what the wallet holds:
   * neither stored nor collected.
   */
  readonly refused: readonly { readonly id: string; readonly broker: string }[];
}

/** Images are large: a broker ends a page at 8 MiB of values, and their proofs come on top. */
const list = { path: "/w/credentials?limit=100", bytesMax: 24 * 1024 * 1024 };

/**
 * Several times what a person's documents take, images included. All that is held is in memory at once when a request
 * is answered, so a broker must not be able to fill it.
 */
const heldLengthMax = 64 * 1024 * 1024;

/** The same time as for the pages of the list; a collection that was not confirmed in it is confirmed the next time. */
const confirmSecondsMax = 60;

/**
 * Collects the identity's credentials from a broker, and updates the status of those collected before. A value is
 * stored before the broker is told to forget it, and only once it is proved to belong to its root.
 *
 * @throws {WalletRefusal} broker_refused, unreachable
 */
export async function receiveCredentials(ctx: WalletContext, broker: string): Promise<Collection> {
  const held = new Map(
    (await listHeld(ctx)).filter((each) => each.broker === broker).map((each) => [each.id, each]),
  );
  let heldLength = [...held.values()].reduce((sum, each) => sum + lengthOf(each), 0);
  const received: HeldCredential[] = [];
  const refused: { id: string; broker: string }[] = [];
  let secondsLeft = confirmSecondsMax;
  const read = (item: unknown): ListedCredential | null => readListed(item, broker);
  for await (const listed of readItems(ctx, broker, { ...list, read })) {
    const known = held.get(listed.id);
    if (listed.collected) {
      if (known !== undefined && known.root === listed.root && known.status !== listed.status)
        await keepCredential(ctx, { ...known, status: listed.status });
      continue;
    }
    // Without values there is nothing to collect: the credential was withdrawn, or not collected in time.
    if (listed.fields.every(({ data }) => data === undefined)) continue;
    const checked =
      known === undefined ? checkValues(ctx.identity.address, listed) : heldStill(known, listed);
    const added = checked === null || known !== undefined ? 0 : lengthOf(checked);
    if (checked === null || (added > 0 && heldLength + added > heldLengthMax)) {
      refused.push({ id: listed.id, broker });
      continue;
    }
    heldLength += added;
    await keepCredential(ctx, checked);
    held.set(checked.id, checked);
    if (secondsLeft < 0)
      throw new WalletRefusal("unreachable", `${broker} takes too long to hand over credentials`);
    const askedAt = await ctx.now();
    await confirmCollected(ctx, broker, listed.id);
    secondsLeft -= (await ctx.now()) - askedAt;
    received.push(checked);
  }
  return { received, refused };
}

const lengthOf = (held: HeldCredential): number => JSON.stringify(held).length;

/** What is held, with its new status. Null for another document under its id, which must not replace the only copy. */
function heldStill(known: HeldCredential, listed: ListedCredential): HeldCredential | null {
  return known.root === listed.root ? { ...known, status: listed.status } : null;
}

async function confirmCollected(ctx: WalletContext, broker: string, id: string): Promise<void> {
  const path = `/w/credentials/${encodeURIComponent(id)}/collected`;
  const answer = await ctx.sessions.call(broker, { path, method: "POST" });
  if (answer.status >= 300) throw refusalOfAnswer(`${broker}${path}`, answer);
}
