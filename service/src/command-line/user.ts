import { type Address, parseAddress } from "@svc/protocol";
import { forgetAcquaintances, forgetMemberships } from "../accounts/index.ts";
import { forgetUser } from "../credentials/index.ts";
import { cancelBallot, forgetClaims } from "../kyb/index.ts";
import { forgetOrders } from "../kyc/index.ts";
import { deleteUser, listLoggedIn, logOutUser } from "../login/index.ts";
import type { Ctx } from "../platform/context.ts";
import { type Queryable, rehearse } from "../platform/database/db.ts";
import {
  deleteBoxesOf,
  deletePushOf,
  endSessionsOf,
  forgetSessionsOf,
  listSessionUsers,
} from "../wallets/index.ts";
import { reportUser } from "./user-report.ts";
import { actor, dryRun, type Input, type Shell, UsageError, type Verb } from "./verb.ts";

const identity = { name: "identity", description: "The user's address." };

function userOf(input: Input): Address {
  const user = parseAddress(input.text("identity"));
  if (user === null) throw new UsageError("<identity> must be an address of 20 bytes in hex");
  return user;
}

export const userVerbs: readonly Verb[] = [
  {
    name: "user show",
    summary: "Show what is stored about a user, for example when the user asks for it.",
    notes:
      "The result lists logins and sessions, logouts that clients were told of, wallets and the hints sent to them, credentials, the API keys that asked about the user, orders, the organizations that know the user, roles, and seats in businesses: names and times, never values. Each list ends after 1000 entries; `cutOff` names the lists that have more. A login whose `isOwn` is false only hints at the user: anybody may have answered it. The result does not include votes and entries of the audit trail; for the latter use `svc audit list --about`. The values of fields are known to the user's wallet and to the merchants who received them.",
    parameters: [identity],
    example: "user show 0x7a22f5c1e0b9d8a7c6b5a493827160f5e4d31c13",
    run: async (shell, input) => {
      const user = userOf(input);
      return shell.withContext(async (ctx) => reportUser(ctx, user));
    },
  },
  {
    name: "user logout",
    summary: "Log a user out everywhere, for example after a phone or laptop was lost.",
    notes:
      "This ends at once: browser and wallet sessions, all tokens, logins that were approved but have no code yet, and a login for a business that waits for other members. The clients of a session are told by back-channel logout; anyone who checks only the signature of an access token accepts it until it expires. The user can log in again with the wallet, and so can anyone who has its key. Logins for a business end only if this user logged in; to end those of all members, run svc business suspend and then svc business reinstate.",
    parameters: [identity],
    options: { "dry-run": dryRun },
    example: "user logout 0x7a22f5c1e0b9d8a7c6b5a493827160f5e4d31c13",
    run: async (shell, input) => {
      const user = userOf(input);
      return shell.withContext(async (ctx) => {
        const run = async (tx: Queryable) => logOutKnown(ctx, tx, user);
        if (!input.flag("dry-run")) return { loggedOut: user, ...(await ctx.db.transaction(run)) };
        return { wouldLogOut: user, ...(await rehearse(ctx.db, run)) };
      });
    },
  },
  {
    name: "user logout-all",
    summary: "Log everybody out everywhere, for example after the database was restored.",
    notes:
      "Each user is logged out as by `user logout`, in a separate transaction, so you can stop the verb and run it again. Users who log in meanwhile may stay logged in.",
    options: { "dry-run": dryRun },
    example: "user logout-all --dry-run",
    run: async (shell, input) =>
      shell.withContext(async (ctx) => {
        const isDry = input.flag("dry-run");
        const ended = await logOutAll(ctx, shell, isDry);
        return { [isDry ? "wouldLogOut" : "loggedOut"]: "everybody", ...ended };
      }),
  },
  {
    name: "user delete",
    summary:
      "Delete a user and everything stored about them, except the audit trail and their seats in businesses.",
    notes:
      "Sessions and tokens end at once, and so does a login for a business that waits for other members; clients are told by back-channel logout. A running service revokes the credentials on chain. Data that was not handed over yet never is, and merchants who received fields are told that they are no longer valid. The deletion is refused while an order of the user is being settled; settlement ends within minutes. Roles in organizations are deleted too, even the last owner's. Businesses keep what belongs to them: the member's seat on the roster, which is on chain, the name that the other members gave, and votes and proposals until 30 days after they ended.",
    parameters: [identity],
    options: { "dry-run": dryRun },
    example: "user delete 0x7a22f5c1e0b9d8a7c6b5a493827160f5e4d31c13",
    run: async (shell, input) => {
      const user = userOf(input);
      return shell.withContext(async (ctx) => {
        const run = async (tx: Queryable) => deleteEverywhere(ctx, tx, user);
        if (!input.flag("dry-run")) return { deleted: user, ...(await ctx.db.transaction(run)) };
        return { wouldDelete: user, ...(await rehearse(ctx.db, run)) };
      });
    },
  },
];

const endOf = (ctx: Ctx, tx: Queryable) => ({
  now: ctx.clock.now(),
  withdraw: async (loginId: string) => cancelBallot(ctx, tx, loginId),
});

/** How many sessions and logins were ended. */
interface LoggedOut {
  readonly sessions: number;
  readonly offline: number;
  readonly unfinished: number;
  readonly walletSessions: number;
}

/** @returns null for a user who never logged in and has no wallet session */
async function logOutEverywhere(ctx: Ctx, tx: Queryable, user: Address): Promise<LoggedOut | null> {
  const ended = await logOutUser(tx, user, endOf(ctx, tx));
  const walletSessions = await endSessionsOf(tx, user, ctx.clock.now());
  // A user who never logged in may still have wallet sessions.
  if (ended === null && walletSessions === 0) return null;
  await ctx.audit.record(tx, { actor, action: "user.logout", subject: user });
  return { sessions: 0, offline: 0, unfinished: 0, ...ended, walletSessions };
}

async function logOutKnown(ctx: Ctx, tx: Queryable, user: Address): Promise<LoggedOut> {
  const ended = await logOutEverywhere(ctx, tx, user);
  if (ended === null) throw new Error("no such user");
  return ended;
}

const pageUsers = 100;

/** @yields every user who is logged in anywhere, once */
async function* everybody(ctx: Ctx): AsyncGenerator<Address> {
  const seen = new Set<Address>();
  for (const list of [listLoggedIn, listSessionUsers]) {
    let after: string | undefined = "";
    while (after !== undefined) {
      const page: Address[] = await list(ctx.db, { after, limit: pageUsers, now: ctx.clock.now() });
      yield* page.filter((user) => !seen.has(user));
      for (const user of page) seen.add(user);
      after = page.at(-1);
    }
  }
}

async function logOutAll(
  ctx: Ctx,
  shell: Shell,
  isDry: boolean,
): Promise<LoggedOut & { readonly users: number }> {
  const all = { users: 0, sessions: 0, offline: 0, unfinished: 0, walletSessions: 0 };
  for await (const user of everybody(ctx)) {
    const run = async (tx: Queryable) => logOutEverywhere(ctx, tx, user);
    const ended = await (isDry ? rehearse(ctx.db, run) : ctx.db.transaction(run));
    // Logged out or deleted since the page was read.
    if (ended === null) continue;
    all.users += 1;
    all.sessions += ended.sessions;
    all.offline += ended.offline;
    all.unfinished += ended.unfinished;
    all.walletSessions += ended.walletSessions;
    shell.progress(`${all.users} users are ${isDry ? "looked at" : "logged out"}`);
  }
  return all;
}

/** What a deleted user had. */
interface Deleted {
  readonly credentials: number;
  readonly orders: number;
}

async function deleteEverywhere(ctx: Ctx, tx: Queryable, user: Address): Promise<Deleted> {
  // First, so that a process that redeems a code of the user at the same time either waits for the session's row, or
  // has committed already what is deleted below.
  const isKnown = await deleteUser(tx, user, endOf(ctx, tx));
  const ofWallet =
    (await forgetSessionsOf(tx, user, ctx.clock.now())) +
    (await deleteBoxesOf(tx, user)) +
    (await deletePushOf(tx, user));
  await forgetClaims(tx, user);
  const { credentials, leaves } = await forgetUser(tx, user, ctx.clock.now());
  const orders = await forgetOrders(ctx, tx, { user, leaves });
  await forgetAcquaintances(tx, user);
  const roles = await forgetMemberships(tx, user);
  // Somebody who never logged in may have wallet sessions, credentials and roles, and orders can be made for anybody.
  if (!isKnown && ofWallet + credentials + orders + roles === 0) throw new Error("no such user");
  await ctx.audit.record(tx, { actor, action: "user.delete", subject: user });
  return { credentials, orders };
}
