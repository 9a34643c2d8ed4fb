import { createNewsFilter } from "../../platform/telemetry/repetition.ts";
import type { LoginContext } from "../login-context.ts";
import * as store from "./attempt-store.ts";

/** Called when an attempt may have changed; `isApproved` saves reading its state. */
type FeedListener = (change: { isApproved: boolean }) => void;

/** The pages of this process that wait for changes of their attempts. */
export interface LoginFeed {
  /** Returns the function that stops listening. */
  follow(loginId: string, listener: FeedListener): () => void;
  close(): void;
}

const channel = "login";

/** Tells the pages that wait for this attempt, whichever processes they wait at, of a change that was committed. */
export function announceLogin(
  { notifications }: Pick<LoginContext, "notifications">,
  loginId: string,
  { isApproved }: { isApproved: boolean },
): void {
  notifications.announce(channel, isApproved ? `${loginId} approved` : loginId);
}

/** How many waiting attempts are looked up a second, in turn, in case a notification was lost. */
const polledPerSecond = 200;

/** Opens the one subscription of this process to changes of logins, made in any process. */
export async function openLoginFeed(
  ctx: Pick<LoginContext, "db" | "notifications" | "log">,
): Promise<LoginFeed> {
  const waiting = new Map<string, Set<FeedListener>>();
  const tell = (loginId: string, isApproved: boolean): void => {
    for (const listener of waiting.get(loginId) ?? []) listener({ isApproved });
  };
  const unsubscribe = await ctx.notifications.subscribe(channel, (payload) => {
    const [loginId = "", word] = payload.split(" ");
    if (loginId !== "") return tell(loginId, word === "approved");
    for (const id of waiting.keys()) tell(id, false);
  });
  let ids: Iterator<string> = waiting.keys();
  const poll = async (): Promise<void> => {
    const some: string[] = [];
    for (let next = ids.next(); some.length < polledPerSecond; next = ids.next()) {
      if (next.done === true) {
        ids = waiting.keys();
        break;
      }
      some.push(next.value);
    }
    if (some.length === 0) return;
    for (const id of await store.listChanged(ctx.db, some)) tell(id, false);
  };
  const isNews = createNewsFilter();
  const timer = setInterval(() => {
    poll().catch((error: unknown) => {
      if (isNews(error))
        ctx.log.warn(
          { err: error },
          "waiting logins could not be read; they are read again each second",
        );
    });
  }, 1000);
  timer.unref();
  return {
    follow(loginId, listener) {
      const listeners = waiting.get(loginId) ?? new Set();
      waiting.set(loginId, listeners.add(listener));
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) waiting.delete(loginId);
      };
    },
    close() {
      clearInterval(timer);
      unsubscribe();
    },
  };
}
