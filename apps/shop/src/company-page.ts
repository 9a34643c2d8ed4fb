import type { Business, ReleasedField } from "@svc/merchant";

import type { Company, CompanyRequest } from "./companies.ts";
import { html, type Html } from "./html.ts";
import { button, layout, timeOf, type Page } from "./pages.ts";

/** For a person who does not act for a company yet. */
export function guestPage(): Page {
  const content = html`
    <h1>Coffee for your company</h1>
    <p class="lead">
      Log in for your company: pick it in your wallet. Its other members agree in theirs.
    </p>
    <div class="actions">
      ${button("/company/login", "Log in for my company")} <a href="/">Back to the shop</a>
    </div>
  `;
  return layout({ status: 200, title: "Coffee for your company - Corner Coffee", content });
}

/**
 * What the shop knows about the company, and what it would like to know. The script redraws the page at every change;
 * where it does not run, a link does.
 */
export function companyPage(view: {
  business: Business;
  company: Company | null;
  moved: Company[];
  terms: string;
  version: number;
}): Page {
  const { business, company, moved, terms, version } = view;
  const content = html`
    <h1 tabindex="-1">${business.name}</h1>
    <p>
      You act for
      <code>${business.id}</code>${business.verified ? ", whose record is verified" : ""}.
    </p>
    <p role="status" id="standing">${sayStanding(company)}</p>
    <div id="order" data-version="${String(version)}" data-page="/company" data-of="${business.id}">
      ${company?.fields === undefined ? moved.map(moveSection) : ""}
      ${registrationSection(business, company)} ${termsSection(business, { company, terms })}
    </div>
    <p class="actions">
      <a href="/">Back to the shop</a> <a id="anew" href="/company">Show the present state</a>
    </p>
    <script src="/verify.js" defer></script>
  `;
  // A browser's history keeps titles, so this one names no company.
  return layout({ status: 200, title: "Your company - Corner Coffee", content });
}

const standings: Record<string, string> = {
  pending_approval: "Waiting for the members of your company.",
  released: "Your company is registered.",
  signed: "Your company signed.",
  refused: "Your company declined.",
  expired: "The time was over.",
  cancelled: "The request was taken back.",
  failed: "This came to nothing.",
};

function sayStanding(company: Company | null): string {
  // If both happened in the same second, the terms come after the registration.
  const newest = [company?.terms, company?.registration]
    .filter((request) => request !== undefined)
    .toSorted((one, other) => other.at - one.at)[0];
  return newest === undefined ? "We know nothing of your company yet." : sayRequest(newest);
}

function sayRequest({ status, reason }: CompanyRequest): string {
  // A request for data that ran out of time counts as refused; nobody has declined.
  return standings[status === "refused" && reason === "expired" ? reason : status] ?? status;
}

const isOpen = (request: CompanyRequest | undefined): boolean =>
  request?.status === "pending_approval";

/** Any company that moves may name this wallet, so only somebody who acts for this wallet can confirm it. */
function moveSection({ id, fields = [] }: Company): Html {
  const name = fields.find((field) => field.name === "BUSINESS_LEGAL_NAME")?.value ?? "A company";
  return html`<section data-moved="${id}">
    <h2>Did your company move?</h2>
    <p><bdi>${name}</bdi> says that it moved from <code>${id}</code> to your wallet.</p>
    <div class="actions">
      ${button(`/company/continue?from=${id}`, "This is our company", "quiet")}
    </div>
  </section>`;
}

function registrationSection({ id }: Business, company: Company | null): Html {
  const request = company?.registration;
  const action = `/company/register?for=${id}`;
  const ask =
    company?.fields === undefined
      ? button(action, "Register your company")
      : button(action, "Ask for the present values", "quiet");
  return html`<section id="registration" data-status="${request?.status ?? "none"}">
    <h2>Your company</h2>
    ${company?.fields === undefined ? "" : fieldTable(company.fields)}
    ${
      isOpen(request)
        ? html`<p>
            We asked for its legal name, its number and its directors. Members vote in their
            wallets.
          </p>`
        : html`<div class="actions">${ask}</div>`
    }
  </section>`;
}

function fieldTable(fields: readonly ReleasedField[]): Html {
  return html`<table>
    <caption>
      What your company released to us, verified
    </caption>
    <thead>
      <tr>
        <th scope="col">Field</th>
        <th scope="col">Value</th>
        <th scope="col">Verified by</th>
      </tr>
    </thead>
    <tbody>
      ${fields.map(
        ({ name, value, provenance }) =>
          html`<tr data-field="${name}">
            <th scope="row">${labels[name] ?? name}</th>
            <td>${value}</td>
            <td>${provenance}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}

const labels: Record<string, string> = {
  BUSINESS_LEGAL_NAME: "Legal name",
  BUSINESS_REGISTRATION_NUMBER: "Registration number",
  BUSINESS_DIRECTOR_NAME: "Director",
};

function termsSection(
  { id }: Business,
  { company, terms }: { company: Company | null; terms: string },
): Html {
  const request = company?.terms;
  return html`<section id="terms" data-status="${request?.status ?? "none"}">
    <h2>Our terms</h2>
    <blockquote>${terms.split("\n").map((line) => html`<p>${line}</p>`)}</blockquote>
    ${stateOfTerms(id, request)}
  </section>`;
}

function stateOfTerms(id: string, request: Company["terms"]): Html {
  if (request?.signature !== undefined)
    return html`<p>
      Signed ${timeOf(request.at)}; the chain says so:
      <code>${request.transactionHash ?? ""}</code>
    </p>`;
  if (isOpen(request)) return html`<p>Members vote in their wallets.</p>`;
  return html`<div class="actions">${button(`/company/terms?for=${id}`, "Sign our terms")}</div>`;
}
