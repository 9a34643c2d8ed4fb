/** What the routes need of the pages. */
export { renderErrorPage } from "./error-page.ts";
export { renderLoginPage } from "./login-page.ts";
export { renderLoggedOutPage, renderLogoutPage, renderStayedPage } from "./logout-page.ts";
export { assetPrefix, findNamesake, loadPageAssets } from "./page-assets.ts";
export { pageHeaders } from "./page-headers.ts";
export { type Locale, pickLocale } from "./page-texts.ts";
export type { LoginView } from "./page-view.ts";
