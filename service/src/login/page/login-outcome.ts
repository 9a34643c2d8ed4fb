import type { AttemptFailure } from "../attempt/attempt.ts";
import { backLink, loginForm, walletLink } from "./login-forms.ts";
import type { LoginView } from "./login-view.ts";
import { foreign, markup, say, type Markup } from "./page-markup.ts";
import type { Locale } from "../../platform/http/pick-locale.ts";
import type { TextKey } from "./page-texts.ts";

/** The headings of states that have only one. */
const headings = {
  opened: "confirmTitle",
  gathering: "gatheringTitle",
  approved: "approvedTitle",
  finished: "overTitle",
} as const;

/** The heading of a state, with which the title of its page begins; null while the login waits. */
export function headingOf(state: LoginView["state"]): TextKey | null {
  if (state.kind === "waiting") return null;
  if (state.kind === "claimed") return headingOfClaim(state.digits);
  return state.kind === "failed" ? outcomes[state.failure][0] : headings[state.kind];
}

function headingOfClaim(digits: string | null): TextKey {
  return digits === null ? "confirmTitle" : "numberTitle";
}

/** Hidden until the script fills it in and counts down. */
export function timeLeft(locale: Locale): Markup {
  return markup`<p class="left" role="timer" data-left hidden>
    ${say(locale, "timeLeft", { time: markup`<span data-time></span>` })}
  </p>`;
}

/**
 * Shown after the claim. The person types the `digits` into the wallet (decisions section 2, rule 4); empty ones make
 * the form that the script fills in, which has no `[data-code]` yet.
 */
export function renderClaimed(
  view: LoginView,
  { digits, identity }: { digits: string | null; identity: string },
): Markup {
  const { locale } = view;
  const hasNumber = digits !== null;
  return markup`<h2 tabindex="-1">${say(locale, headingOfClaim(digits))}</h2>
    ${digits === null ? markup`<p class="pulse" aria-hidden="true"></p>` : markup`<p class="number" ${digits === "" ? "data-digits" : "data-code"}>${digits}</p>`}
    <p class="identity">
      ${say(locale, "claimedBy", { identity: markup`<code data-identity>${identity}</code>` })}
    </p>
    <p>${say(locale, hasNumber ? "numberHint" : "confirmHint")}</p>
    ${timeLeft(locale)}
    ${carryOn(view)} ${backLink(view)}`;
}

/** A wallet on the same device has opened the login, so no code of this page counts any more. */
export function renderOpened(view: LoginView): Markup {
  const { locale } = view;
  const again = { action: "restart", label: say(locale, "startAgain"), look: "quiet" } as const;
  return markup`<h2 tabindex="-1">${say(locale, headings.opened)}</h2>
    <p>${say(locale, "openedHint")}</p>
    ${timeLeft(locale)}
    <div class="buttons">
      ${walletLink(view, { isHook: false })} ${view.canRestart ? loginForm(view, again) : null}
    </div>
    ${backLink(view)}`;
}

/** A button for pages where no script notices the approval: the person says when it is given. */
function carryOn(view: LoginView): Markup {
  const label = say(view.locale, "continue");
  const button = markup`<p class="hint">${say(view.locale, "approvedContinue")}</p>
    <div class="buttons">${loginForm(view, { action: "continue", label })}</div>`;
  return view.isStatic ? button : markup`<noscript>${button}</noscript>`;
}

/** Shown while the members of a business decide. Nothing here reveals who they are, how many, or how they vote. */
export function renderGathering(view: LoginView): Markup {
  const { locale, clientName } = view;
  const whenApproved = markup`<p class="hint">${say(locale, "gatheringContinue")}</p>
    <div class="buttons">${loginForm(view, { action: "continue", label: say(locale, "continue") })}</div>`;
  const label = say(locale, "back", { client: foreign(clientName) });
  const hint = say(locale, "gatheringHint");
  return markup`<h2 tabindex="-1">${say(locale, headings.gathering)}</h2>
    <p class="pulse" aria-hidden="true"></p>
    <p>${hint}${view.isStatic ? null : markup` ${say(locale, "gatheringOn")}`}</p>
    ${timeLeft(locale)}
    ${view.isStatic ? whenApproved : markup`<noscript>${whenApproved}</noscript>`}
    <div class="buttons">${loginForm(view, { action: "give-up", label, look: "quiet" })}</div>`;
}

/** The script fetches the code at once; the button is there in case it cannot. */
export function renderApproved(view: LoginView): Markup {
  const { locale, clientName } = view;
  return markup`<h2 tabindex="-1">${say(locale, headings.approved)}</h2>
    <p>${say(locale, "approvedHint", { client: foreign(clientName) })}</p>
    ${loginForm(view, { action: "continue", label: say(locale, "continue") })}`;
}

const outcomes: Readonly<Record<AttemptFailure, readonly [title: TextKey, hint: TextKey]>> = {
  expired: ["expiredTitle", "expiredHint"],
  wrong_number: ["wrongNumberTitle", "wrongNumberHint"],
  declined: ["declinedTitle", "declinedHint"],
  not_started: ["notStartedTitle", "notStartedHint"],
  other_browser: ["otherBrowserTitle", "otherBrowserHint"],
  restarted: ["restartedTitle", "restartedHint"],
};

export function renderFailed(
  view: LoginView,
  { failure, canRestart }: { failure: AttemptFailure; canRestart: boolean },
): Markup {
  const [title, hint] = outcomes[failure];
  const mayRestart = canRestart && failure !== "restarted";
  return ended(view, { title, hint, mayRestart });
}

/** The login continued without this page, so there is nothing to start again. */
export function renderOver(view: LoginView): Markup {
  return ended(view, { title: headings.finished, hint: "overHint", mayRestart: false });
}

/** A browser without the cookie of the login is told nothing about it, so the page leads nowhere. */
export function renderUnheld(view: LoginView): Markup {
  return ended(view, { title: "errorTitle", hint: "noCookieHint", mayRestart: false });
}

function ended(
  view: LoginView,
  { title, hint, mayRestart }: { title: TextKey; hint: TextKey; mayRestart: boolean },
): Markup {
  const { locale } = view;
  return markup`<h2 tabindex="-1">${say(locale, title)}</h2>
    <p>${say(locale, hint)}</p>
    ${mayRestart ? loginForm(view, { action: "restart", label: say(locale, "startAgain") }) : null}
    ${backLink(view, mayRestart ? "text" : "button")}`;
}
