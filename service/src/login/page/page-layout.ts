import { assetPaths } from "./page-assets.ts";
import { markup, type Markup } from "./page-markup.ts";
import type { Locale } from "../../platform/http/pick-locale.ts";

export interface PageParts {
  readonly locale: Locale;
  readonly title: Markup;
  /** More elements of the head. */
  readonly head?: Markup;
  readonly body: Markup;
}

/** The frame of every page. Nothing in it is inline, because the policy of `pageHeaders` would refuse that. */
export function renderPage({ locale, title, head, body }: PageParts): string {
  return markup`<!doctype html>
    <html lang="${locale}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <title>${title}</title>
        <link rel="icon" type="image/svg+xml" href="${assetPaths.icon}" />
        <link rel="stylesheet" href="${assetPaths.style}" />
        ${head ?? null}
      </head>
      <body>
        ${body}
      </body>
    </html> `.markup;
}

/** A page that says one thing in a narrow card: errors and logout. */
export function renderNotice({ locale, title, body }: PageParts): string {
  return renderPage({
    locale,
    title,
    body: markup`<main class="card narrow">
      <h1>${title}</h1>
      ${body}
    </main>`,
  });
}
