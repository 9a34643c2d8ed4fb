import { renderNotice } from "./page-layout.ts";
import { href, markup, say } from "./page-markup.ts";
import type { Locale } from "../../platform/http/pick-locale.ts";
import type { TextKey } from "./page-texts.ts";

/** A failed call that is answered with a page because no redirect URI can be trusted (RFC 6749 section 4.1.2.1). */
export interface ErrorView {
  readonly locale: Locale;
  readonly status: number;
  /** For developers, in English; shown as text. */
  readonly code: string;
  readonly message: string;
  readonly requestId: string;
  readonly retryUrl?: string;
  readonly retryAfterSeconds?: number;
  /** For a logout that failed: where the person can log out directly. */
  readonly logoutUrl?: string;
}

/** First says what the person can do, and then what the site's developers need to know. */
export function renderErrorPage(view: ErrorView): string {
  const { locale, retryAfterSeconds, retryUrl, logoutUrl } = view;
  return renderNotice({
    locale,
    title: say(locale, titleOf(view)),
    body: markup`<p>
        ${retryAfterSeconds === undefined || retryUrl === undefined ? say(locale, hintOf(view)) : null}
        ${hintOf(view) === "overHint" && retryUrl === undefined ? say(locale, "errorHint") : null}
        ${retryAfterSeconds === undefined ? null : say(locale, "errorWait", { seconds: String(retryAfterSeconds) })}
      </p>
      ${retryUrl === undefined ? null : markup`<p><a class="button" href="${href(retryUrl)}">${say(locale, "tryAgain")}</a></p>`}
      ${logoutUrl === undefined ? null : markup`<p><a class="button" href="${href(logoutUrl)}">${say(locale, "logOut")}</a></p>`}
      <details>
        <summary>${say(locale, "errorDetails")}</summary>
        <dl>
          <dt>${say(locale, "errorCode")}</dt>
          <dd><code>${view.status} ${view.code}</code></dd>
          <dt>${say(locale, "errorMessage")}</dt>
          <dd lang="en">${view.message}</dd>
          <dt>${say(locale, "errorRequest")}</dt>
          <dd><code>${view.requestId}</code></dd>
        </dl>
      </details>`,
  });
}

/** Texts that a person can understand and act on, by the code of the problem. */
const hints: ReadonlyMap<string, TextKey> = new Map([
  ["identity_refused", "errorIdentity"],
  ["login_not_found", "noCookieHint"],
  ["login_over", "overHint"],
  ["other_browser", "otherBrowserHint"],
]);

function hintOf({ code, retryUrl, logoutUrl }: ErrorView): TextKey {
  if (logoutUrl !== undefined) return "logoutFailedHint";
  return hints.get(code) ?? (retryUrl === undefined ? "errorHint" : "errorRetry");
}

function titleOf({ status, logoutUrl }: ErrorView): TextKey {
  if (status === 429) return "errorTooMany";
  if (status >= 500) return "errorHere";
  return logoutUrl === undefined ? "errorTitle" : "logoutFailedTitle";
}
