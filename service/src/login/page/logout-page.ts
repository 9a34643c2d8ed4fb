import { renderNotice } from "./page-layout.ts";
import { foreign, markup, say } from "./page-markup.ts";
import type { Locale } from "../../platform/http/pick-locale.ts";
import type { TextKey } from "./page-texts.ts";

/**
 * A logout for which the client has given no proof, so the person decides (OpenID Connect RP-Initiated Logout section
 * 2).
 */
export interface LogoutView {
  readonly locale: Locale;
  /** Target of the form, which sends `hidden` and `decision` = `logout` | `stay`. */
  readonly action: string;
  readonly hidden: Readonly<Record<string, string>>;
  readonly clientName: string | null;
  /** In its short form. */
  readonly identity: string;
}

export function renderLogoutPage(view: LogoutView): string {
  const { locale, clientName, identity } = view;
  const asks =
    clientName === null
      ? say(locale, "logoutAskUnknown")
      : say(locale, "logoutAsk", { client: foreign(clientName) });
  const hidden = Object.entries(view.hidden).map(
    ([name, value]) => markup`<input type="hidden" name="${name}" value="${value}" />`,
  );
  return renderNotice({
    locale,
    title: say(locale, "logoutTitle"),
    body: markup`<p>${asks}</p>
      <p class="identity">${say(locale, "logoutIdentity", { identity: markup`<code>${identity}</code>` })}</p>
      <form class="buttons" method="post" action="${view.action}">
        ${hidden}
        <button class="button" name="decision" value="logout">${say(locale, "logOut")}</button>
        <button class="button quiet" name="decision" value="stay">${say(locale, "stay")}</button>
      </form>`,
  });
}

export function renderLoggedOutPage(view: { readonly locale: Locale }): string {
  return renderDone(view.locale, "loggedOutTitle");
}

/** The answer to `decision=stay`. */
export function renderStayedPage(view: { readonly locale: Locale }): string {
  return renderDone(view.locale, "stayedTitle");
}

function renderDone(locale: Locale, title: TextKey): string {
  return renderNotice({
    locale,
    title: say(locale, title),
    body: markup`<p>${say(locale, "closePage")}</p>`,
  });
}
