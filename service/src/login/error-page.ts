import { renderNotice } from "./page-layout.ts";
import { href, markup, say } from "./page-markup.ts";
import type { Locale, TextKey } from "./page-texts.ts";

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
}

/** Says what a person can do first, and what the site's developers need to know after it. */
export function renderErrorPage(view: ErrorView): string {
  const { locale, retryAfterSeconds, retryUrl } = view;
  return renderNotice({
    locale,
    title: say(locale, titleOf(view.status)),
    body: markup`<p>
        ${retryUrl === undefined ? say(locale, "errorHint") : null}
        ${retryAfterSeconds === undefined ? null : say(locale, "errorWait", { seconds: String(retryAfterSeconds) })}
      </p>
      ${retryUrl === undefined ? null : markup`<p><a class="button" href="${href(retryUrl)}">${say(locale, "tryAgain")}</a></p>`}
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

function titleOf(status: number): TextKey {
  if (status === 429) return "errorTooMany";
  return status >= 500 ? "errorHere" : "errorTitle";
}
