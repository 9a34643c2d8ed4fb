import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { MerchantError, openMerchant } from "@svc/merchant";

import { openClock } from "./clock.ts";
import * as company from "./company.ts";
import type { KybOptions } from "./company.ts";
import { openCookies } from "./cookies.ts";
import * as login from "./login.ts";
import { faultPage, homePage, notFoundPage, wrongOriginPage, type Again } from "./pages.ts";
import { openSessions } from "./sessions.ts";
import * as verification from "./verification.ts";
import type { KycOptions } from "./verification.ts";
import { isFromHere, page, readVisit, redirect, send, type Reply, type Visit } from "./web.ts";

export interface ShopOptions {
  /** 0 takes any free port. */
  port: number;
  host: string;
  /** Where people reach the shop, without a slash at its end. Default `http://localhost:<port>`. */
  url?: string;
  /** The broker, and the shop's OAuth client there; its redirect URI is `<url>/callback`. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  audience?: string;
  /** 256 random bits as text. Default: new ones at each start, so that logins under way have to begin again. */
  sessionSecret?: string;
  /** Takes the time from this URL's JSON `{ "now": <Unix seconds> }`: a demo's clock can be moved. */
  clockUrl?: string;
  /** Lets people show their age and e-mail address. Default: the shop does not ask. */
  kyc?: KycOptions;
  /** Lets companies register and sign. Default: the shop deals only with persons. */
  kyb?: KybOptions;
  /**
   * Called with everything that went wrong, for the log: MerchantErrors and bugs. Neither contain tokens or identities.
   */
  onFault?: (error: unknown) => void;
}

/** A shop that is open. */
export interface Shop {
  url: string;
  close: () => Promise<void>;
}

/** Opens a small shop in which people log in with their wallet: everything a merchant needs, and nothing else. */
export async function openShop(options: ShopOptions): Promise<Shop> {
  const server = await listen(options);
  const url = options.url ?? `http://localhost:${(server.address() as AddressInfo).port}`;
  const clock = openClock(options.clockUrl);
  const opening = openDesk(options, { url, now: clock.now });
  const close = async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  };

  // Requests that arrive before the shop is open wait for it.
  server.on("request", (request, response) => {
    const visit = readVisit(request, url);
    opening
      .then((desk) =>
        clock
          .refresh()
          .then(() => answer(desk, visit))
          .catch((error: unknown) => {
            desk.onFault(error);
            return page(faultPage(error, againOf(desk, visit, error)));
          })
          .then((reply) => send(response, reply, { issuer: options.issuer }))
          .catch(desk.onFault),
      )
      .catch(() => response.destroy());
  });

  try {
    await opening;
  } catch (error) {
    await close();
    throw error;
  }
  return { url, close };
}

async function openDesk(
  options: ShopOptions,
  { url, now }: { url: string; now: () => number },
): Promise<ShopDesk> {
  const { issuer, kyc, kyb } = options;
  const merchant = openMerchant({ ...options, redirectUri: `${url}/callback`, now });
  return {
    url,
    merchant,
    now,
    sessions: openSessions(now),
    cookies: openCookies({ url, secret: options.sessionSecret, now }),
    verification: kyc && (await verification.openVerification(issuer, kyc)),
    register: kyb && (await company.openRegister(kyb, { issuer, url })),
    onFault: options.onFault ?? (() => undefined),
  };
}

/** What the shop works with. `verification` and `register` are undefined where the options lack `kyc` or `kyb`. */
type ShopDesk = login.Desk & {
  verification: verification.Verification | undefined;
  register: company.CompanyRegister | undefined;
};
type Handler = (desk: ShopDesk, visit: Visit) => Reply | Promise<Reply>;

const routes: Record<string, Handler> = {
  "GET /": (desk, visit) =>
    page(
      homePage(login.currentLogin(desk, visit), {
        asksForFields: desk.verification !== undefined,
        takesCompanies: desk.register !== undefined,
      }),
    ),
  "GET /login": () => redirect("/"),
  "POST /login": login.startLogin,
  "GET /callback": login.finishLogin,
  "POST /refresh": login.refreshLogin,
  "POST /logout": login.logOut,
  "POST /backchannel-logout": login.logOutByBroker,
  "POST /verify": asking(verification.startVerification),
  "GET /verify": asking(verification.showVerification),
  "GET /verify/changes": asking(verification.awaitChange),
  "POST /verify/check": asking(verification.checkAgain),
  "POST /verify/receipt": asking(verification.checkReceipt),
  "POST /webhooks/kyc": asking(verification.takeWebhook),
  "GET /company": forCompanies(company.showCompany),
  "GET /company/changes": forCompanies(company.awaitCompanyChange),
  "POST /company/login": forCompanies(company.startCompanyLogin),
  "POST /company/register": forCompanies(company.registerCompany),
  "POST /company/terms": forCompanies(company.askForSignature),
  "POST /company/continue": forCompanies(company.continueCompany),
  "POST /webhooks/kyb": forCompanies(company.takeKybWebhook),
  "GET /verify.js": () => file("verify.js", "text/javascript"),
  "GET /shop.css": () => file("shop.css", "text/css"),
  "GET /favicon.svg": () => file("favicon.svg", "image/svg+xml"),
};

/** A post to these routes is authenticated by its content; any other must come from a button on our own page. */
const signedRoutes = new Set([
  "POST /backchannel-logout",
  "POST /webhooks/kyc",
  "POST /webhooks/kyb",
]);

async function answer(desk: ShopDesk, visit: Visit): Promise<Reply> {
  const route = `${visit.method} ${visit.url.pathname}`;
  const handler = Object.hasOwn(routes, route) ? routes[route] : undefined;
  if (handler === undefined) return page(notFoundPage());
  const isOurs = visit.method !== "POST" || signedRoutes.has(route) || isFromHere(visit, desk.url);
  return isOurs ? handler(desk, visit) : page(wrongOriginPage());
}

/** What "Try again" does after a fault: repeats the request, or starts the login again. */
function againOf(
  { cookies }: ShopDesk,
  { method, url, cookies: jar }: Visit,
  error: unknown,
): Again {
  const { pathname, search, searchParams } = url;
  // The wallet has approved, for a company several have: for a minute the code may still be good.
  if (isUnanswered(error) && method === "GET" && pathname === "/callback")
    return { method, path: pathname + search };
  if (isUnanswered(error) && method === "POST" && pathname === "/refresh")
    return { method, path: pathname };
  if (method === "POST" && /^\/(?:verify|company\/)/.test(pathname))
    return { method, path: pathname + search };
  // Not "/login": that would log a company's member in as a person.
  if (method === "GET" && pathname === "/company") return { method, path: pathname };
  const begun =
    pathname === "/callback" ? cookies.recallLogin(jar, searchParams.get("state")) : null;
  return { method: "POST", path: begun?.isForCompany === true ? "/company/login" : "/login" };
}

/** Whether the broker gave no answer: asked once more, it may give one. */
function isUnanswered(error: unknown): boolean {
  const codes = ["issuer_unreachable", "rate_limited"];
  return error instanceof MerchantError && codes.includes(error.code);
}

/** A page that exists only if the shop asks for fields. */
function asking(
  handler: (desk: verification.KycDesk, visit: Visit) => Reply | Promise<Reply>,
): Handler {
  return (desk, visit) =>
    desk.verification === undefined
      ? page(notFoundPage())
      : handler({ ...desk, verification: desk.verification }, visit);
}

/** A page that exists only if the shop deals with companies. */
function forCompanies(
  handler: (desk: company.CompanyDesk, visit: Visit) => Reply | Promise<Reply>,
): Handler {
  return (desk, visit) =>
    desk.register === undefined
      ? page(notFoundPage())
      : handler({ ...desk, register: desk.register }, visit);
}

async function file(name: string, type: string): Promise<Reply> {
  const body = await readFile(new URL(name, import.meta.url), "utf8");
  return { status: 200, headers: { "content-type": `${type}; charset=utf-8` }, body };
}

async function listen({ port, host }: { port: number; host: string }): Promise<Server> {
  const server = createServer();
  await new Promise<void>((done, failed) => {
    server.once("error", failed).listen(port, host, done);
  });
  return server;
}
