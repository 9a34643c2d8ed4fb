import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { openMerchant } from "@svc/merchant";

import { openClock } from "./clock.ts";
import { openCookies } from "./cookies.ts";
import * as login from "./login.ts";
import { faultPage, homePage, notFoundPage, wrongOriginPage } from "./pages.ts";
import { openSessions } from "./sessions.ts";
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
  /** 256 random bits as text. Default: new ones at each start, so that logins under way begin again. */
  sessionSecret?: string;
  /** Takes the time from this URL's JSON `{ "now": <Unix seconds> }`: a demo's clock can be moved. */
  clockUrl?: string;
  /** Told of everything that went wrong, for the log: MerchantErrors and bugs. Neither holds tokens or identities. */
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
  const merchant = openMerchant({ ...options, redirectUri: `${url}/callback`, now: clock.now });
  const desk = {
    url,
    merchant,
    now: clock.now,
    sessions: openSessions(clock.now),
    cookies: openCookies({ url, secret: options.sessionSecret, now: clock.now }),
    onFault: options.onFault ?? (() => undefined),
  };

  server.on("request", (request, response) => {
    const visit = readVisit(request, url);
    clock
      .refresh()
      .then(() => answer(desk, visit))
      .catch((error: unknown) => {
        desk.onFault(error);
        return page(faultPage(error));
      })
      .then((reply) => send(response, reply, { issuer: options.issuer }))
      .catch(desk.onFault);
  });

  const close = async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  };
  return { url, close };
}

type Handler = (desk: login.Desk, visit: Visit) => Reply | Promise<Reply>;

const routes: Record<string, Handler> = {
  "GET /": (desk, visit) => page(homePage(login.currentLogin(desk, visit))),
  "GET /login": () => redirect("/"),
  "POST /login": login.startLogin,
  "GET /callback": login.finishLogin,
  "POST /refresh": login.refreshLogin,
  "POST /logout": login.logOut,
  "POST /backchannel-logout": login.logOutByBroker,
  "GET /shop.css": () => file("shop.css", "text/css"),
  "GET /favicon.svg": () => file("favicon.svg", "image/svg+xml"),
};

async function answer(desk: login.Desk, visit: Visit): Promise<Reply> {
  const route = `${visit.method} ${visit.url.pathname}`;
  const handler = Object.hasOwn(routes, route) ? routes[route] : undefined;
  if (handler === undefined) return page(notFoundPage());
  // The broker proves itself by the token it posts; everybody else must have pressed a button on our own page.
  const isOurs =
    visit.method !== "POST" || handler === login.logOutByBroker || isFromHere(visit, desk.url);
  return isOurs ? handler(desk, visit) : page(wrongOriginPage());
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
