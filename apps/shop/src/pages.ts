import { MerchantError, type Login, type MerchantErrorCode } from "@svc/merchant";

import { html, type Html } from "./html.ts";

/** A page, ready to send. */
export interface Page {
  status: number;
  markup: string;
}

/** Which optional parts the shop has. */
interface ShopParts {
  asksForFields: boolean;
  takesCompanies: boolean;
}

/** The home page: a button for guests, and everything that the id token says for a person who has logged in. */
export function homePage(login: Login | null, shop: ShopParts): Page {
  return layout({
    status: 200,
    title: "Corner Coffee",
    content: login === null ? welcome(shop) : greeting(login, shop),
  });
}

function welcome({ takesCompanies }: ShopParts): Html {
  return html`
    <h1>Good coffee, and no password</h1>
    <p class="lead">
      Log in with your wallet: scan a code, compare two digits, done. We learn one address and
      nothing else.
    </p>
    <div class="actions">
      ${button("/login", "Log in")}
      ${takesCompanies ? html`<a href="/company">For companies</a>` : ""}
    </div>
    <h2>Today’s roasts</h2>
    <ul class="roasts">
      <li>
        <strong>Yirgacheffe</strong> <span>jasmine, lemon</span>
        <span class="price">CHF 14.50</span>
      </li>
      <li>
        <strong>Huila</strong> <span>caramel, red apple</span> <span class="price">CHF 13.00</span>
      </li>
      <li>
        <strong>Mantiqueira</strong> <span>hazelnut, cocoa</span>
        <span class="price">CHF 11.50</span>
      </li>
    </ul>
  `;
}

function greeting(login: Login, { asksForFields, takesCompanies }: ShopParts): Html {
  const { user, business, claims, refreshToken, expiresAt } = login;
  return html`
    <h1>Hello ${user.slice(0, 6)}…${user.slice(-4)}</h1>
    ${business === undefined ? "" : html`<p class="lead">Welcome, ${business.name}.</p>`}
    <p class="lead">You are <code>${user}</code></p>
    <div class="actions">
      ${takesCompanies && business !== undefined ? html`<a class="button" href="/company">Your company</a>` : ""}
      ${asksForFields ? button(`/verify?for=${user}`, "Verify my age and e-mail") : ""}
      ${refreshToken === undefined ? "" : button("/refresh", "Refresh", "quiet")}
      ${button("/logout", "Log out", "quiet")}
    </div>
    <table>
      <caption>
        What your verified id token says
      </caption>
      <thead>
        <tr>
          <th scope="col">Claim</th>
          <th scope="col">Value</th>
        </tr>
      </thead>
      <tbody>
        ${Object.entries(claims).map(([name, value]) => claimRow(name, value))}
      </tbody>
    </table>
    <p class="note">Your access token ends at ${timeOf(expiresAt)}.</p>
  `;
}

const times = new Set(["exp", "iat", "nbf", "auth_time"]);

function claimRow(name: string, value: unknown): Html {
  const isTime = times.has(name) && typeof value === "number";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return html`<tr>
    <th scope="row">${name}</th>
    <td>${isTime ? timeOf(value) : text}</td>
  </tr>`;
}

export function timeOf(seconds: number): Html {
  const iso = new Date(seconds * 1000).toISOString().slice(0, 19);
  return html`<time datetime="${iso}Z">${iso.replace("T", " ")} UTC</time>`;
}

/** Where "Try again" leads, as a link or as a button. */
export interface Again {
  method: "GET" | "POST";
  path: string;
}

/** What went wrong, in words for the person, and what to do next. */
export function faultPage(error: unknown, again: Again): Page {
  const table = again.path.startsWith("/company") ? { ...faults, ...companyFaults } : faults;
  const fault = (error instanceof MerchantError ? table[error.code] : undefined) ?? unexpected;
  return problemPage(fault, again);
}

interface Fault {
  status: number;
  title: string;
  text: string;
}

const unexpected: Fault = {
  status: 500,
  title: "That did not work",
  text: "Something went wrong on our side. Nothing was lost; please try again.",
};

const faults: Partial<Record<MerchantErrorCode, Fault>> = {
  access_denied: {
    status: 403,
    title: "You declined the login",
    text: "We learned nothing about you. If that was a slip, just try again.",
  },
  state_mismatch: {
    status: 400,
    title: "This login was not started in this browser",
    text: "It may belong to another browser, be finished, or be too old, or this browser keeps no cookies. Please start it again here.",
  },
  issuer_mismatch: {
    status: 400,
    title: "This answer is not from our login service",
    text: "You are not logged in. Please start again from here.",
  },
  callback_invalid: {
    status: 400,
    title: "This link is not complete",
    text: "You are not logged in. Please start again from here.",
  },
  login_required: {
    status: 403,
    title: "Please confirm in your wallet",
    text: "This login needs your wallet once more.",
  },
  grant_refused: {
    status: 403,
    title: "This login has ended",
    text: "It was used already, ended in your wallet, or is too old. Please log in again.",
  },
  issuer_unreachable: {
    status: 503,
    title: "The login service does not answer",
    text: "Please try again in a moment.",
  },
  call_refused: {
    status: 502,
    title: "We could not ask for this",
    text: "The service refused our request. Nothing was shared; please try again later.",
  },
  rate_limited: {
    status: 503,
    title: "Too many people at once",
    text: "Please try again in a moment.",
  },
  chain_unreachable: {
    status: 503,
    title: "The chain does not answer",
    text: "The receipt could not be verified now. Please try again in a moment.",
  },
  receipt_refused: {
    status: 502,
    title: "The receipt proves nothing",
    text: "The chain does not confirm what the service told us. We will look into it.",
  },
};

/** Faults that need other words if the members of a company decide together. */
const companyFaults: Partial<Record<MerchantErrorCode, Fault>> = {
  access_denied: {
    status: 403,
    title: "Your company did not log in",
    text: "You declined, or not enough of its members agreed in time. We learned nothing.",
  },
  grant_refused: {
    status: 403,
    title: "This login has ended",
    text: "It was used already, or you do not act for the company any more. Please log in again.",
  },
};

export function notFoundPage(): Page {
  return problemPage({
    status: 404,
    title: "There is nothing here",
    text: "The page you are looking for does not exist.",
  });
}

export function wrongOriginPage(): Page {
  return problemPage({
    status: 403,
    title: "Please press the button here",
    text: "Another site tried to press one of our buttons for you. Nothing happened.",
  });
}

function problemPage(
  { status, title, text }: Fault,
  again: Again = { method: "POST", path: "/login" },
): Page {
  const content = html`
    <h1>${title}</h1>
    <p class="lead">${text}</p>
    <div class="actions">
      ${status === 404 ? "" : tryAgain(again)}
      <a href="/">Back to the shop</a>
    </div>
  `;
  return layout({ status, title: `${title} - Corner Coffee`, content });
}

function tryAgain({ method, path }: Again): Html {
  if (method === "POST") return button(path, "Try again");
  return html`<a class="button" href="${path}">Try again</a>`;
}

export function button(action: string, label: string, style = "loud"): Html {
  return html`<form method="post" action="${action}">
    <button class="${style}">${label}</button>
  </form>`;
}

export function layout({
  status,
  title,
  content,
}: {
  status: number;
  title: string;
  content: Html;
}): Page {
  const { markup } = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        <link rel="icon" href="/favicon.svg" />
        <link rel="stylesheet" href="/shop.css" />
      </head>
      <body>
        <header><a href="/">Corner Coffee</a></header>
        <main>${content}</main>
        <footer>A demo shop: its code is the guide to adding a login to yours.</footer>
      </body>
    </html> `;
  return { status, markup };
}
