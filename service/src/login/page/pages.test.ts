import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { isStringOneByteRepresentation } from "node:v8";
import { gunzipSync, gzipSync } from "node:zlib";
import { decodeQR } from "qr/decode.js";
import { encodeQR } from "qr";
import { renderErrorPage } from "./error-page.ts";
import { renderLoginPage } from "./login-page.ts";
import type { LoginView } from "./login-view.ts";
import { renderLoggedOutPage, renderLogoutPage, renderStayedPage } from "./logout-page.ts";
import { pageAssets } from "./page-assets.ts";
import { pageHeaders } from "./page-headers.ts";
import { locales } from "../../platform/http/pick-locale.ts";
import { type AttemptFailure, attemptFailures } from "../attempt/attempt.ts";

const loginId = "V1StGXR8_Z5jdHi6B-myTA";
const startMs = 1_790_000_001_500;
const firstStep = Math.floor(startMs / 4000);
const macs = Array.from(
  { length: 31 },
  (_, index) => `${String(index).padStart(2, "0")}${"m".repeat(20)}`,
);
const identity = "0x52ab…19fe";

const waiting: LoginView = {
  loginId,
  clientName: "Alpine Books",
  clientDomain: "books.example.com",
  scopes: ["openid", "offline", "offline_access"],
  locale: "en",
  nowMs: startMs,
  expiresAt: Math.floor(startMs / 1000) + 120,
  base: "https://login.example.com",
  isStatic: false,
  isCodeOver: false,
  firstStep,
  macs,
  sameDeviceLink: `svc:login?sess=${loginId}&conn=https%3A%2F%2Flogin.example.com%2Fw%2Fb%2F${loginId}&type=app-link`,
  state: { kind: "waiting" },
  backUrl:
    "https://books.example.com/callback?error=access_denied&state=1&iss=https%3A%2F%2Flogin.example.com",
  isBusiness: false,
  isSameDeviceOnly: false,
  canRestart: true,
};
const fixed: LoginView = {
  ...waiting,
  isStatic: true,
  firstStep: 0,
  macs: ["abcdefghijklmnopqrstuv"],
};
const claimed: LoginView = {
  ...waiting,
  state: { kind: "claimed", digits: "07", identity, contested: false },
};
const plain: LoginView = {
  ...waiting,
  state: { kind: "claimed", digits: null, identity, contested: false },
};
const failedAs = (failure: AttemptFailure, canRestart = true): LoginView => ({
  ...waiting,
  state: { kind: "failed", failure, canRestart },
});
const opened: LoginView = { ...waiting, state: { kind: "opened" } };
const gathering: LoginView = { ...waiting, isBusiness: true, state: { kind: "gathering" } };
const views: LoginView[] = [
  waiting,
  fixed,
  { ...fixed, isBusiness: true, isCodeOver: true },
  claimed,
  { ...fixed, state: claimed.state },
  plain,
  {
    ...waiting,
    isBusiness: true,
    clientDomain: null,
    scopes: ["openid", "business"],
  },
  opened,
  { ...opened, isStatic: true, canRestart: false },
  gathering,
  { ...gathering, isStatic: true },
  { ...waiting, state: { kind: "approved" } },
  { ...waiting, state: { kind: "finished" } },
  ...attemptFailures.map((failure) => failedAs(failure)),
];
const error = {
  locale: "en",
  status: 400,
  code: "invalid_request",
  message: "redirect_uri is unknown",
  requestId: "req_1",
} as const;
const logout = {
  locale: "en",
  action: "/oauth2/sessions/logout",
  hidden: { challenge: "c1" },
  clientName: "Alpine Books",
  identity,
} as const;

function everyPage(): string[] {
  return locales.flatMap((locale) => [
    ...views.map((view) => renderLoginPage({ ...view, locale })),
    renderErrorPage({ ...error, locale }),
    renderErrorPage({
      ...error,
      locale,
      status: 429,
      retryUrl: "/oauth2/auth?a=1&b=2",
      retryAfterSeconds: 7,
    }),
    renderErrorPage({ ...error, locale, status: 500 }),
    renderErrorPage({ ...error, locale, logoutUrl: logout.action }),
    renderLogoutPage({ ...logout, locale }),
    renderLogoutPage({ ...logout, locale, clientName: null }),
    renderLoggedOutPage({ locale }),
    renderStayedPage({ locale }),
  ]);
}

/** The page without the parts that a browser does not show. */
function shown(page: string): string {
  return page.replaceAll(/<template[^]*?<\/template>/g, "");
}

function attributeOf(page: string, pattern: RegExp): string {
  const value = pattern.exec(page)?.[1] ?? assert.fail(`nothing like ${pattern}`);
  return value.replaceAll("&amp;", "&").replaceAll("&quot;", '"');
}

const count = (page: string, pattern: RegExp): number => page.match(pattern)?.length ?? 0;

test("no page holds an inline script, style or event handler, or anything of another site", () => {
  for (const page of everyPage()) {
    assert.doesNotMatch(page, /<style|\sstyle=|\son\w+=|javascript:/i);
    for (const [tag] of page.matchAll(/<script[^>]*>/g))
      assert.match(tag, /^<script type="module" src="\/oauth2\/assets\//);
    for (const [, target = ""] of page.matchAll(/<(?:link|script)[^>]*(?:href|src)="([^"]*)"/g))
      assert.ok(pageAssets.has(target), target);
    assert.equal(count(page, /<img|<iframe|<object|@import/g), 0);
  }
});

test("every page is in the language it says and leaves no placeholder", () => {
  for (const page of everyPage()) {
    assert.match(page, /^<!doctype html>\n<html lang="(en|de|fr|it|es)">/);
    assert.doesNotMatch(
      shown(page).replaceAll(/data-login="[^"]*"/g, ""),
      /\{\w+\}|undefined|\[object/,
    );
  }
});

test("the title of a page begins with the heading of its state", () => {
  for (const view of views) {
    const page = renderLoginPage(view);
    const heading =
      view.state.kind === "waiting" ? "" : `${attributeOf(page, /<h2[^>]*>([^<]*)</)} – `;
    assert.ok(page.includes(`<title>${heading}Log in to Alpine Books</title>`), heading);
  }
});

/** In the characters of a waiting page. */
const inCodes = (text: string): string =>
  text.replaceAll(/[^ -~]/gu, (each) => `&#${each.codePointAt(0)};`);

test("a title sets a name from right to left apart from its own words, and leaves others as they are", () => {
  for (const [clientName, shownName] of [
    ["מוסך (Garage)", "\u2068מוסך (Garage)\u2069"],
    ["Łódź Książki", "Łódź Książki"],
  ] as const)
    assert.ok(
      renderLoginPage({ ...waiting, clientName }).includes(
        `<title>Log in to ${inCodes(shownName)}</title>`,
      ),
    );
});

test("every state has a way on that works without a script", () => {
  for (const view of views) {
    const page = renderLoginPage(view);
    if (view.state.kind === "approved") assert.match(shown(page), /data-form="continue"/);
    else if (view.state.kind === "gathering")
      assert.match(shown(page), /data-form="continue"[^]*data-form="give-up"/);
    else
      assert.equal(
        attributeOf(shown(page), /<p class="back">\s*<a[^>]*href="([^"]*)"/),
        waiting.backUrl,
      );
    for (const [, action = ""] of page.matchAll(/<form[^>]*action="([^"]*)"/g))
      assert.match(
        action,
        new RegExp(`^/oauth2/login/${loginId}/(show-code|continue|restart|give-up)$`),
      );
  }
});

test("a waiting page shows the code of its own step, and shows it once", () => {
  for (const step of [0, 1, 30]) {
    const page = renderLoginPage({ ...waiting, nowMs: (firstStep + step) * 4000 });
    assert.equal(count(page, /data-qr/g), 1);
    const text = attributeOf(page, /data-qr="([^"]*)"/);
    assert.equal(
      text,
      `svc:login?sess=${loginId}.${firstStep + step}.${macs[step]}&conn=https%3A%2F%2Flogin.example.com%2Fw%2Fl%2F${loginId}&type=callback`,
    );
    assert.equal(decodeQR(paint(attributeOf(page, /<path[^>]* d="([^"]*)"/))), text);
  }
});

const codeAt = (nowMs: number): string =>
  attributeOf(renderLoginPage({ ...waiting, nowMs }), /data-qr="([^"]*)"/);

test("a waiting page takes one byte per character, in every language and whatever the name of the client", () => {
  for (const locale of locales)
    for (const clientName of ["Alpine Books", "Łódź Książki", "書店"]) {
      const page = renderLoginPage({ ...waiting, locale, clientName });
      assert.ok(isStringOneByteRepresentation(page), `${locale} ${clientName}`);
    }
});

test("a page that is shown late or early shows the nearest code it has", () => {
  assert.match(codeAt(startMs - 60_000), new RegExp(`\\.${firstStep}\\.`));
  assert.match(codeAt(startMs + 600_000), new RegExp(`\\.${firstStep + 30}\\.`));
});

test("the link for the same device is there while the login waits, and only then", () => {
  for (const view of [waiting, fixed])
    assert.equal(
      attributeOf(renderLoginPage(view), /<a[^>]*data-same-device[^>]*href="([^"]*)"/),
      waiting.sameDeviceLink,
    );
  assert.doesNotMatch(renderLoginPage(claimed), /data-same-device|data-qr/);
});

test("the digits exist only after the claim, and nothing else in the element", () => {
  for (const view of views.filter(({ state }) => state.kind !== "claimed"))
    assert.doesNotMatch(renderLoginPage(view), /data-code/);
  const page = renderLoginPage(claimed);
  assert.equal(attributeOf(page, /<p class="number" data-code>([^<]*)<\/p>/), "07");
  assert.equal(count(page, /data-code/g), 1);
  assert.match(shown(page), new RegExp(identity));
  assert.doesNotMatch(renderLoginPage(plain), /data-code/);
});

test("a page that was claimed no longer holds the macs of its codes", () => {
  assert.match(renderLoginPage(waiting), new RegExp(macs[30] ?? ""));
  for (const view of views.filter(({ state }) => state.kind !== "waiting"))
    assert.doesNotMatch(renderLoginPage(view), /mmmm/);
});

test("without JavaScript a rotating page offers one button, for a code that stays", () => {
  const page = renderLoginPage(waiting);
  const blocks = [...page.matchAll(/<noscript>([^]*?)<\/noscript>/g)].map(
    (match) => match[1] ?? "",
  );
  assert.equal(
    blocks.filter((block) => block.includes("<form")).length,
    3,
    "here and in the two templates of a claim",
  );
  const [style = "", form = ""] = blocks;
  assert.match(style, /<link rel="stylesheet"/);
  assert.equal(count(form, /<button/g), 1);
  assert.match(form, new RegExp(`action="/oauth2/login/${loginId}/show-code"`));
});

test("a page with a code that stays has its buttons outside noscript and never refreshes by itself", () => {
  const page = shown(renderLoginPage(fixed)).replaceAll(/<noscript>[^]*?<\/noscript>/g, "");
  assert.deepEqual(
    [...page.matchAll(/data-form="([^"]*)"/g)].map((match) => match[1]),
    ["continue", "restart"],
  );
  assert.doesNotMatch(renderLoginPage(fixed), /show-code|http-equiv/);
  assert.match(attributeOf(page, /data-qr="([^"]*)"/), /\.0\.abcdefghijklmnopqrstuv&/);
});

test("a page with a code that stays offers a new one only while the login may start again", () => {
  const [first, last] = [renderLoginPage(fixed), renderLoginPage({ ...fixed, canRestart: false })];
  assert.match(shown(first), /data-form="restart"/);
  assert.doesNotMatch(shown(last), /data-form="restart"/);
});

test("a page whose login is open in a wallet on the same device has no code, and leads there again or starts again", () => {
  const page = renderLoginPage(opened);
  assert.doesNotMatch(page, /data-qr|data-same-device/);
  assert.match(page, /data-macs=""/);
  const link = attributeOf(shown(page), /<a class="button" href="(svc:[^"]*)"/);
  assert.equal(link, waiting.sameDeviceLink);
  assert.match(shown(page), /data-form="restart"/);
  assert.doesNotMatch(
    shown(renderLoginPage({ ...opened, canRestart: false })),
    /data-form="restart"/,
  );
});

test("a claimed page without JavaScript goes on by a button", () => {
  assert.match(
    shown(renderLoginPage(claimed)),
    /<noscript>[^]*data-form="continue"[^]*<\/noscript>/,
  );
  assert.doesNotMatch(shown(renderLoginPage({ ...fixed, state: claimed.state })), /<noscript>/);
});

test("a failed page starts again only while that is allowed, and runs no script", () => {
  for (const failure of attemptFailures) {
    const page = renderLoginPage(failedAs(failure));
    assert.equal(page.includes("/restart"), failure !== "restarted");
    assert.doesNotMatch(page, /<script|<template|data-login/);
    assert.doesNotMatch(renderLoginPage(failedAs(failure, false)), /\/restart/);
  }
});

test("the page names its own host, and says in words whether the site was verified", () => {
  assert.match(renderLoginPage(waiting), /<strong translate="no">login\.example\.com<\/strong>/);
  assert.match(
    renderLoginPage(waiting),
    /Verified site: <strong><bdi translate="no">books\.example\.com<\/bdi>/,
  );
  assert.match(
    renderLoginPage({ ...waiting, clientDomain: null }),
    /Unverified: nobody has checked/,
  );
});

test("both the person and the screen reader are told of a second wallet", () => {
  const banner = /role="alert" data-contested( hidden)?>/;
  assert.equal(banner.exec(renderLoginPage(waiting))?.[1], " hidden");
  assert.equal(banner.exec(renderLoginPage(claimed))?.[1], " hidden");
  const state = { kind: "claimed", digits: "07", identity, contested: true } as const;
  assert.equal(banner.exec(renderLoginPage({ ...waiting, state }))?.[1], undefined);
});

test("a page that shows no identity any more does not speak of the one shown", () => {
  const state = { kind: "failed", failure: "wrong_number", canRestart: true } as const;
  assert.match(renderLoginPage({ ...waiting, state }), /role="alert" data-contested hidden>/);
});

test("a browser without the cookie of its login is told to allow cookies, with and without a script", () => {
  const told = /allow them for this page/;
  assert.match(renderErrorPage({ ...error, status: 404, code: "login_not_found" }), told);
  const [, template] =
    /data-for="no_cookie">([^]*?)<\/template>/.exec(renderLoginPage(waiting)) ?? [];
  assert.match(template ?? "", told);
  assert.doesNotMatch(template ?? "", /data-form/);
});

test("no browser that translates the page translates the domain, the name or the host to compare", () => {
  const page = renderLoginPage(waiting);
  const kept = [...page.matchAll(/ translate="no">([^<]*)</g)].map(([, text]) => text);
  const { clientDomain, clientName, base } = waiting;
  assert.deepEqual(new Set(kept), new Set([clientName, clientDomain, new URL(base).host]));
});

test("a hostile name stays text", () => {
  const clientName = `"><script>alert(1)</script><img src=x onerror='x'>&\u202Egro.live\u2066\u0007`;
  const page = renderLoginPage({
    ...waiting,
    clientName,
    clientDomain: clientName,
    scopes: [clientName],
  });
  assert.doesNotMatch(page, /<script>|<img|\sonerror='|\p{Bidi_Control}/u);
  assert.match(
    page,
    /<bdi translate="no">&quot;&gt;&lt;script&gt;alert\(1\)&lt;\/script&gt;&lt;img src=x onerror=&#39;x&#39;&gt;&amp;&#65533;gro\.live&#65533;&#65533;<\/bdi>/,
  );
  const others = [
    renderErrorPage({
      ...error,
      code: clientName,
      message: clientName,
      requestId: clientName,
      status: 400,
    }),
    renderLogoutPage({
      ...logout,
      clientName,
      identity: clientName,
      action: `/x"${clientName}`,
      hidden: { [clientName]: clientName },
    }),
  ];
  for (const other of others) assert.doesNotMatch(other, /<script>|<img|\u202e/);
});

test("an address that would run in the page is refused", () => {
  for (const backUrl of [
    "javascript:alert(1)",
    " JavaScript:alert(1)",
    "java\tscript:alert(1)",
    "\u0001javascript:alert(1)",
    "data:text/html,x",
  ])
    assert.throws(() => renderLoginPage({ ...waiting, backUrl }), /executable/, backUrl);
  assert.match(
    renderLoginPage({ ...waiting, backUrl: "com.example.app:/callback?error=access_denied" }),
    /href="com\.example\.app:\/callback/,
  );
});

test("the logout page sends what it was given, with the person's decision", () => {
  const page = renderLogoutPage(logout);
  assert.match(page, /<form[^>]*method="post"[^>]*action="\/oauth2\/sessions\/logout"/);
  assert.match(page, /<input type="hidden" name="challenge" value="c1"/);
  assert.deepEqual(
    [...page.matchAll(/name="decision" value="([^"]*)"/g)].map((match) => match[1]),
    ["logout", "stay"],
  );
});

const policyOf = (leadsTo?: string): string | undefined =>
  pageHeaders({ leadsTo })["content-security-policy"];
const policyWith = (formAction: string): string =>
  `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action ${formAction}; frame-ancestors 'none'; base-uri 'none'`;

test("the policy allows this origin alone, and forms to go on to the client and wherever it redirects", () => {
  assert.equal(policyOf(), policyWith("'self'"));
  assert.equal(policyOf("https://books.example.com/callback?a=1;b"), policyWith("'self' https:"));
  assert.equal(policyOf("com.example.app:/cb"), policyWith("'self' https: com.example.app:"));
  assert.equal(policyOf("http://[::1]:3000/cb"), policyWith("'self' https: http:"));
  const headers = pageHeaders();
  assert.equal(headers["x-frame-options"], "DENY");
  assert.equal(headers["referrer-policy"], "same-origin");
  assert.equal(headers["cache-control"], "no-store");
});

test("no page uses camera, microphone, place, payment or devices, whatever runs in it", () => {
  for (const leadsTo of [undefined, "https://books.example.com/callback"]) {
    const policy = pageHeaders({ leadsTo })["permissions-policy"] ?? "";
    assert.equal(policy, "camera=(), microphone=(), geolocation=(), payment=(), usb=()");
  }
});

test("a page of a client stays with the page that opened it, any other parts from it", () => {
  const ofClient = pageHeaders({ leadsTo: "https://books.example.com/callback" });
  assert.equal(ofClient["cross-origin-opener-policy"], undefined);
  assert.equal(pageHeaders()["cross-origin-opener-policy"], "same-origin");
});

test("page and files together take at most 25 kB, in every language and for the longest login", () => {
  const files = [...pageAssets.values()].reduce((sum, { gzip }) => sum + gzip.length, 0);
  const random = Array.from({ length: 226 }, () =>
    Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("base64url"),
  );
  for (const locale of locales) {
    const page = gzipSync(
      renderLoginPage({ ...waiting, locale, isBusiness: true, macs: random }),
    ).length;
    assert.ok(page + files <= 25_000, `${locale}: ${page} + ${files}`);
  }
});

test("files are named after their content and packed without loss", () => {
  for (const [path, { body, gzip }] of pageAssets) {
    const hash = createHash("sha256").update(body).digest("base64url").slice(0, 16);
    assert.match(path, new RegExp(`^/oauth2/assets/[a-z-]+\\.${hash}\\.(?:js|css|svg)$`));
    assert.deepEqual(gunzipSync(gzip), body);
  }
});

test("the encoder that is served draws what the installed one draws, and keeps its licence", async () => {
  const served = [...pageAssets].find(([path]) => path.includes("/qr."))?.[1].body.toString() ?? "";
  assert.match(served, /SPDX-License-Identifier/);
  const module = (await import(`data:text/javascript,${encodeURIComponent(served)}`)) as {
    encodeQR: typeof encodeQR;
  };
  for (const text of ["1", "HELLO 1", "svc:login?sess=a", "ü€𐍈", "x".repeat(700)])
    for (const ecc of ["low", "high"] as const)
      assert.deepEqual(module.encodeQR(text, "raw", { ecc }), encodeQR(text, "raw", { ecc }));
});

/** Paints the strokes of the code's path, 3 pixels a module, on white. */
function paint(path: string): { width: number; height: number; data: Uint8Array } {
  const strokes = [...path.matchAll(/M(\d+) (\d+)\.5|m(\d+) 0|h(\d+)/g)];
  const side = Math.max(...strokes.map((match) => Number(match[2] ?? 0))) + 5;
  const width = side * 3;
  const data = new Uint8Array(width * width * 4).fill(255);
  let [x, y] = [0, 0];
  for (const [, startX, startY, gap, run] of strokes) {
    if (startX !== undefined) [x, y] = [Number(startX), Number(startY)];
    x += Number(gap ?? 0);
    for (let row = 3 * y; row < 3 * y + 3; row++)
      data.fill(0, 4 * (row * width + 3 * x), 4 * (row * width + 3 * (x + Number(run ?? 0))));
    x += Number(run ?? 0);
  }
  for (let alpha = 3; alpha < data.length; alpha += 4) data[alpha] = 255;
  return { width, height: width, data };
}
