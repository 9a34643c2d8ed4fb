import { qrSvg } from "../../platform/qr/qr-svg.ts";
import { attemptFailures, connectionOf, pagePathOf, qrLink } from "../attempt/attempt.ts";
import { stepAt } from "../attempt/rotating-code.ts";
import {
  headingOf,
  renderApproved,
  renderClaimed,
  renderFailed,
  renderOver,
  renderUnheld,
  renderGathering,
  renderOpened,
  timeLeft,
} from "./login-outcome.ts";
import { backLink, loginForm, walletLink } from "./login-forms.ts";
import { type PageSlots, renderFromSkeleton } from "./page-skeleton.ts";
import type { LoginView } from "./login-view.ts";
import { assetPaths } from "./page-assets.ts";
import { renderPage } from "./page-layout.ts";
import { drawn, foreign, foreignPlain, markup, say, type Markup } from "./page-markup.ts";

/**
 * The QR page of decisions section 2. It works without its script; with the script the code rotates and the outcome
 * appears by itself. Hooks for tools: `[data-qr]` (one element while waiting), `a[data-same-device]`, `[data-code]`
 * after the claim.
 *
 * @throws {Error} when `backUrl` or `sameDeviceLink` could run in the page
 */
export function renderLoginPage(view: LoginView): string {
  if (view.state.kind !== "waiting") return renderWhole(view, { data: pageData(view), code: null });
  return renderFromSkeleton(view, { data: pageData(view), code: renderCode(view) }, renderWhole);
}

function renderWhole(view: LoginView, slots: PageSlots): string {
  const { state } = view;
  const isOver = state.kind === "failed" || state.kind === "finished";
  const isContested = state.kind === "claimed" && state.contested;
  return renderPage({
    locale: view.locale,
    title: titleOf(view),
    head: isOver ? markup`` : scripts(view),
    body: markup`<main class="card login" ${isOver ? null : slots.data}>
        <header>
          <h1>${say(view.locale, "title", { client: foreign(view.clientName) })}</h1>
          ${requester(view)}
        </header>
        <section class="panel" data-panel>
          <p class="notice" role="alert" data-contested${isContested ? null : markup` hidden`}>
            ${say(view.locale, "contested")}
          </p>
          <div data-state>${statePanel(view, slots.code)}</div>
          <p class="notice" data-offline hidden>${say(view.locale, "offline")}</p>
        </section>
        <footer>
          <p>
            ${say(view.locale, "host", { host: markup`<strong translate="no">${new URL(view.base).host}</strong>` })}
          </p>
        </footer>
      </main>
      <p class="unseen" role="status" data-status></p>
      ${isOver ? null : templates(view)}`,
  });
}

/** The state comes first: tabs and histories show only the beginning, and a screen reader starts with it. */
function titleOf({ locale, clientName, state }: LoginView): Markup {
  const heading = headingOf(state);
  const title = say(locale, "title", { client: foreignPlain(clientName) });
  return heading === null ? title : markup`${say(locale, heading)} – ${title}`;
}

/** Who asks, and for what. Only the domain of the requester has been verified. */
function requester(view: LoginView): Markup {
  const { locale, clientDomain } = view;
  const badge =
    clientDomain === null
      ? markup`<p class="badge unverified"><span>${say(locale, "unverified")}</span></p>`
      : markup`<p class="badge verified">
          <span>${say(locale, "verified", { domain: markup`<strong>${foreign(clientDomain)}</strong>` })}</span>
        </p>`;
  return markup`${badge}
    <div class="receives">
      <p>${say(locale, "receives", { client: foreign(view.clientName) })}</p>
      <ul>
        ${receivedThings(view).map((thing) => markup`<li>${thing}</li>`)}
      </ul>
    </div>`;
}

function receivedThings({ locale, scopes, isBusiness }: LoginView): Markup[] {
  const known = new Set(["openid", "offline", "offline_access", "business"]);
  return [
    say(locale, "receivesIdentity"),
    ...(isBusiness ? [say(locale, "receivesBusiness")] : []),
    ...(scopes.some((scope) => scope.startsWith("offline")) ? [say(locale, "receivesStay")] : []),
    ...scopes.filter((scope) => !known.has(scope)).map((scope) => markup`<code>${scope}</code>`),
  ];
}

function statePanel(view: LoginView, code: Markup | null): Markup {
  const { state } = view;
  if (state.kind === "waiting") return renderWaiting(view, code);
  if (state.kind === "opened") return renderOpened(view);
  if (state.kind === "claimed") return renderClaimed(view, state);
  if (state.kind === "gathering") return renderGathering(view);
  if (state.kind === "finished") return renderOver(view);
  return state.kind === "approved" ? renderApproved(view) : renderFailed(view, state);
}

function renderWaiting(view: LoginView, code: Markup | null): Markup {
  const { locale, isSameDeviceOnly } = view;
  const hint = say(locale, isSameDeviceOnly ? "sameDeviceOnly" : "sameDeviceHint");
  return markup`<div class="ways">
      ${isSameDeviceOnly ? null : scanWay(view, code)}
      <div class="way same">
        ${walletLink(view, { isHook: true })}
        <p class="hint">${hint}</p>
      </div>
    </div>
    ${backLink(view)}`;
}

function scanWay(view: LoginView, code: Markup | null): Markup {
  const { locale } = view;
  return markup`<div class="way scan">
      <h2 tabindex="-1">${say(locale, "scanTitle")}</h2>
      ${view.isStatic ? null : reloadHint(view)} ${code} ${timeLeft(locale)}
      ${view.isStatic ? staticButtons(view) : showCode(view)}
    </div>
    <p class="or"><span>${say(locale, "or")}</span></p>`;
}

/** The style sheet shows it in place of a code that is out of date because no script came to renew it. */
function reloadHint({ locale, loginId }: LoginView): Markup {
  return markup`<p class="late">
    ${say(locale, "incomplete")}
    <a href="${pagePathOf(loginId)}">${say(locale, "tryAgain")}</a>
  </p>`;
}

/** The current code is in the HTML, so it is there before the script runs, and also if none does. */
function renderCode(view: LoginView): Markup | null {
  if (view.isSameDeviceOnly) return null;
  if (view.isCodeOver) return markup`<p class="hint">${say(view.locale, "expiredTitle")}</p>`;
  const text = codeText(view);
  return markup`<div
      class="qr${view.isStatic ? "" : " live"}"
      role="img"
      aria-label="${say(view.locale, "qrLabel")}"
      data-qr="${text}"
    >
      ${drawn(qrSvg(text))}
    </div>
    <p class="hint${view.isStatic ? "" : " live"}">
      ${say(view.locale, view.isStatic ? "staticHint" : "scanHint")}
    </p>`;
}

function codeText(view: LoginView): string {
  const step = view.isStatic ? view.firstStep : stepAt(view.nowMs / 1000);
  const index = Math.min(Math.max(step - view.firstStep, 0), view.macs.length - 1);
  const mac = view.macs[index] ?? "";
  return qrLink(view.base, { loginId: view.loginId, step: view.firstStep + index, mac });
}

function showCode(view: LoginView): Markup {
  return markup`<noscript>
    <p>${say(view.locale, "noScript")}</p>
    ${loginForm(view, { action: "show-code", label: say(view.locale, "showCode") })}
  </noscript>`;
}

function staticButtons(view: LoginView): Markup {
  const newCode = say(view.locale, "newCode");
  const goOn = { action: "continue", label: say(view.locale, "continue") } as const;
  return markup`<div class="buttons">
    ${view.isCodeOver ? null : loginForm(view, goOn)}
    ${view.canRestart ? loginForm(view, { action: "restart", label: newCode, look: "quiet" }) : null}
  </div>`;
}

/**
 * The code must not look current if no script renews it: without a script, this style hides everything that needs one.
 */
function scripts(view: LoginView): Markup {
  const { script, encoder, noScriptStyle } = assetPaths;
  const stale = view.state.kind === "waiting" && !view.isStatic;
  return markup`<link rel="modulepreload" href="${encoder}" />
    <script type="module" src="${script}"></script>
    ${stale ? markup`<noscript><link rel="stylesheet" href="${noScriptStyle}" /></noscript>` : null}`;
}

/** The data for the script, in an attribute because the policy allows nothing inline. */
function pageData(view: LoginView): Markup {
  const { loginId, nowMs, expiresAt, isStatic, firstStep, macs, state } = view;
  const data = {
    loginId,
    conn: connectionOf(view.base, "qr", loginId),
    nowMs,
    expiresAt,
    isStatic: isStatic || view.isSameDeviceOnly,
    firstStep,
    kind: state.kind,
  };
  // A separate list, since nothing in it needs escaping.
  const shown = state.kind === "waiting" ? macs.join(" ") : "";
  return markup` data-login="${JSON.stringify(data)}" data-macs="${shown}"`;
}

/** The other states of the page in its language, for the script to show. They hold no secret and no `[data-code]`. */
function templates(view: LoginView): Markup {
  const states: [string, Markup][] = [
    ["opened", renderOpened(view)],
    ["claimed", renderClaimed(view, { digits: null, identity: "" })],
    ["claimed-number", renderClaimed(view, { digits: "", identity: "" })],
    ...(view.isBusiness ? [["gathering", renderGathering(view)] as [string, Markup]] : []),
    ["approved", renderApproved(view)],
    ["over", renderOver(view)],
    ["no_cookie", renderUnheld(view)],
    ...attemptFailures.map((failure): [string, Markup] => [
      failure,
      renderFailed(view, { failure, canRestart: true }),
    ]),
  ];
  return markup`${states.map(([name, panel]) => markup`<template data-for="${name}">${panel}</template>`)}`;
}
