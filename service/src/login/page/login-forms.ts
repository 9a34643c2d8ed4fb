import { pagePathOf } from "../attempt/attempt.ts";
import type { LoginView } from "./login-view.ts";
import { foreign, href, markup, say, type Markup } from "./page-markup.ts";

/** A button that works without a script. */
export function loginForm(
  view: LoginView,
  {
    action,
    label,
    look,
  }: { action: "show-code" | "continue" | "restart" | "give-up"; label: Markup; look?: "quiet" },
): Markup {
  return markup`<form
    method="post"
    action="${pagePathOf(view.loginId)}/${action}"
    data-form="${action}"
  >
    <button class="button${look === undefined ? null : markup` ${look}`}">${label}</button>
  </form>`;
}

/** The link to a wallet on the same device. `isHook` adds the attribute by which tools find it during the wait. */
export function walletLink(
  { locale, sameDeviceLink }: LoginView,
  { isHook }: { isHook: boolean },
): Markup {
  const hook = isHook ? markup` data-same-device` : null;
  return markup`<a class="button"${hook} href="${href(sameDeviceLink)}"
    >${say(locale, "sameDevice")}</a
  >`;
}

/** The link that every state has: it leads back to the client with `access_denied`. */
export function backLink(view: LoginView, look: "text" | "button" = "text"): Markup {
  const label = say(view.locale, "back", { client: foreign(view.clientName) });
  return markup`<p class="back"><a${look === "button" ? markup` class="button"` : null} href="${href(view.backUrl)}">${label}</a></p>`;
}
