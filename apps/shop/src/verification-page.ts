import { standingInfos, type OrderState, type ReceiptFact, type Status } from "@svc/merchant";

import { html, type Html } from "./html.ts";
import { button, layout, timeOf, type Page } from "./pages.ts";
import type { Notes } from "./verification.ts";

interface View {
  user: string;
  version: number;
  order: OrderState | null;
  notes: Notes;
  /** Unix seconds. */
  now: number;
}

/**
 * The state of the request, and what the person shared. The script redraws the page at every change; where it does not
 * run, a link does.
 */
export function verificationPage(view: View): Page {
  const { user, version, order, notes } = view;
  const content = html`
    <h1 tabindex="-1">Your age and e-mail</h1>
    <p role="status" id="standing">${sayStanding(view)}</p>
    <div id="order" data-version="${String(version)}" data-page="/verify" data-of="${user}">
      ${[...requestSection(view), ...historySection(order), ...sharedSection(view)]}
      ${[...validitySection(notes), ...receiptSection(notes)]}
    </div>
    <p class="actions">
      <a href="/">Back to the shop</a> <a id="anew" href="/verify">Show the present state</a>
    </p>
    <script src="/verify.js" defer></script>
  `;
  return layout({ status: 200, title: "Your age and e-mail - Corner Coffee", content });
}

/** For somebody whom the shop does not know: it was restarted, or this is not the browser that logged in. */
export function strangerPage(): Page {
  const content = html`
    <h1>Your age and e-mail</h1>
    <p class="lead">Log in again to see where your request stands.</p>
    <div class="actions">${button("/login", "Log in")} <a href="/">Back to the shop</a></div>
  `;
  return layout({ status: 200, title: "Your age and e-mail - Corner Coffee", content });
}

/** The wallet holds no verified value for these yet. */
export function unverifiedPage(user: string, fields: readonly string[]): Page {
  const content = html`
    <h1>Something is still missing</h1>
    <p class="lead">Your wallet does not hold these yet, verified by anybody:</p>
    <ul>
      ${fields.map((field) => html`<li>${labelOf(field)}</li>`)}
    </ul>
    <p>Have them verified in your wallet, then come back.</p>
    <div class="actions">
      ${button(`/verify?for=${user}`, "Try again")} <a href="/">Back to the shop</a>
    </div>
  `;
  return layout({ status: 200, title: "Something is still missing - Corner Coffee", content });
}

const standings: Record<Status, string> = {
  PENDING: "Waiting for your wallet.",
  INITIATING: "You approved. Your consent is being recorded.",
  INITIATED: "Your consent is recorded.",
  CONFIRMING: "Your data is here. The handover is being recorded.",
  CONFIRMED: "Done: everything is recorded.",
  FAILED: "This came to nothing.",
};

const failures: Record<string, string> = {
  USER_DECLINED: "You declined. We learned nothing new.",
  EXPIRED: "The time was over. You can ask for a new code.",
  CANCELLED: "The request was taken back.",
  FIELD_REVOKED: "One of the values is no longer valid.",
};

/** The status to show; PENDING also while the service has not yet reported that a new attempt began. */
function statusOf({ order, notes }: View): Status {
  const current = order?.current ?? null;
  if (current === null || current.sequence === notes.request?.afterSequence) return "PENDING";
  return current.status;
}

/** The code to scan, as long as it is of use. */
function openRequest(view: View): Notes["request"] {
  const { request } = view.notes;
  const isOpen = request !== undefined && view.now < request.expiration;
  return isOpen && statusOf(view) === "PENDING" ? request : undefined;
}

function sayStanding(view: View): string {
  const status = statusOf(view);
  if (status === "PENDING") return sayPending(view);
  const reason = view.order?.current?.failureReason ?? "";
  return failures[reason] ?? standings[status];
}

function sayPending(view: View): string {
  if (openRequest(view) !== undefined) return standings.PENDING;
  // The shop forgets a code when it closes; the wallet may have it, and may have answered already.
  return view.order?.current?.status === "PENDING"
    ? "An earlier request may still be open. You can ask for its code again."
    : "There is no open request.";
}

const underWay = new Set<Status>(["INITIATING", "INITIATED", "CONFIRMING"]);

function requestSection(view: View): Html[] {
  if (underWay.has(statusOf(view))) return [];
  const request = openRequest(view);
  const label = view.order === null ? "Ask for a code" : "Ask again";
  if (request === undefined)
    return [html`<div class="actions">${button(`/verify?for=${view.user}`, label)}</div>`];
  return [
    html`<section>
      <h2>Approve in your wallet</h2>
      <p>We ask for your date of birth and e-mail address. Your city is up to you.</p>
      <img
        class="qr"
        src="data:image/png;base64,${request.qrcode}"
        alt="QR code of this request: scan it with your wallet"
      />
      <p><a class="button" href="${request.link}">Open my wallet on this device</a></p>
      <p class="note">Good until ${timeOf(request.expiration)}.</p>
    </section>`,
  ];
}

function historySection(order: OrderState | null): Html[] {
  const attempt = order?.current?.attempt;
  const entries = order?.history.filter((entry) => entry.attempt === attempt) ?? [];
  if (entries.length === 0) return [];
  return [
    html`<section>
      <h2>What happened</h2>
      <ol class="history">
        ${entries.map(
          ({ status, createdAt, failureReason }) =>
            html`<li data-status="${status}">
              <strong>${failureReason ?? status}</strong> ${timeOf(createdAt)}
            </li>`,
        )}
      </ol>
    </section>`,
  ];
}

function sharedSection({ user, order, now }: View): Html[] {
  if (order === null || order.infos.length === 0) return [];
  const standing = new Set(standingInfos(order));
  return [
    html`<section>
      <table>
        <caption>
          What you shared with us
        </caption>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Value</th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          ${order.infos.map(
            (info) =>
              html`<tr data-field="${info.field}">
                <th scope="row">${labelOf(info.field)}</th>
                <td>${info.data}${sayAge(info, now)}</td>
                <td>${standing.has(info) ? "as received" : "called invalid since"}</td>
              </tr>`,
          )}
        </tbody>
      </table>
      <div class="actions">
        ${button(`/verify/check?for=${user}`, "Check again", "quiet")}
        ${button(`/verify/receipt?for=${user}`, "Verify the receipt against the chain", "quiet")}
      </div>
    </section>`,
  ];
}

function validitySection({ validity }: Notes): Html[] {
  if (validity === undefined) return [];
  const { valid, invalid, reasons, at } = validity;
  return [
    html`<section id="validity">
      <h2>Checked again, ${timeOf(at)}</h2>
      <ul>
        ${valid.map((field) => html`<li>${labelOf(field)}: still holds</li>`)}
        ${invalid.map((field) => html`<li>${labelOf(field)}: no longer (${reasons[field] ?? ""})</li>`)}
      </ul>
    </section>`,
  ];
}

function receiptSection({ receipt }: Notes): Html[] {
  if (receipt === undefined) return [];
  return [
    html`<section id="receipt">
      <h2>The receipt, ${timeOf(receipt.at)}</h2>
      <p>A node of the chain and what we know ourselves show, without asking the service:</p>
      <ul>
        ${receipt.proved.map((fact) => html`<li data-fact="${fact.fact}">${sayFact(fact)}</li>`)}
      </ul>
    </section>`,
  ];
}

function sayFact(fact: ReceiptFact): string | Html {
  switch (fact.fact) {
    case "consent":
      return `You agreed to share ${fact.fields.map(labelOf).join(", ")}.`;
    case "statement_signed":
      return "What you were shown was signed by the service.";
    case "values":
      return `The values we keep are those you agreed to: ${fact.fields.map(labelOf).join(", ")}.`;
    case "attested":
      return html`${labelOf(fact.field)}: verified by an issuer we trust, recorded
      ${timeOf(fact.at)}.`;
    case "live":
      return `${labelOf(fact.field)}: still counts.`;
    case "initiated":
      return html`Your agreement was recorded ${timeOf(fact.at)} in
        <code>${fact.transactionHash}</code>.`;
    case "confirmed":
      return html`The handover was recorded ${timeOf(fact.at)} in
        <code>${fact.transactionHash}</code>.`;
    default:
      return "";
  }
}

const labels: Record<string, string> = {
  IDCARD_DOB: "Date of birth",
  EMAIL: "E-mail address",
  ADDRESS_CITY: "City",
};

function labelOf(field: string): string {
  return labels[field] ?? field;
}

/** The legal age for what the shop sells. */
const ageMin = 18;

function sayAge({ field, data }: { field: string; data: string }, now: number): string {
  if (field !== "IDCARD_DOB") return "";
  const age = ageOf(data, now);
  return age >= ageMin ? ` (${age}: old enough)` : ` (${age}: too young for our liqueurs)`;
}

/** Whole years since a date `YYYY-MM-DD`. */
function ageOf(date: string, now: number): number {
  const today = new Date(now * 1000).toISOString().slice(0, 10);
  const years = Number(today.slice(0, 4)) - Number(date.slice(0, 4));
  return today.slice(5) < date.slice(5, 10) ? years - 1 : years;
}
