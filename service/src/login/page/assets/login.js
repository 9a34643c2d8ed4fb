// @ts-check
/**
 * The login page in the browser: draws each step's code, follows the login, and goes on with its outcome.
 * Every text it shows is in the page already, in templates, so it knows no language. Without it the page works by forms.
 */
import { encodeQR } from "qr";

/**
 * As the service names it; `lapsed` where nobody has said yet how it ended.
 *
 * @typedef {"waiting" | "opened" | "claimed" | "gathering" | "lapsed" | "approved" | "finished" | "failed"} Kind
 */
/**
 * What the service tells about the login. No authorization code travels here.
 *
 * @typedef {{ kind: Kind, digits?: string | null, identity?: string, failure?: string, contested?: boolean,
 *   canRestart?: boolean, location?: string }} Status
 */
/**
 * @typedef {{ loginId: string, conn: string, nowMs: number, expiresAt: number, isStatic: boolean, firstStep: number,
 *   kind: Kind }} Page
 */

const stepMs = 4000;
const quietZone = 4;
/** The service answers a long poll after 25 s. */
const answerTimeoutMs = 40_000;
/** It answers any other question at once; a slow network takes seconds. */
const promptTimeoutMs = 10_000;
/** So long after its time a login that was approved in time can still be finished. */
const graceMs = 120_000;
const retryMsMax = 10_000;
/** A stream says the state at once, and then every 15 s that it lives. One that a proxy holds back fails in silence. */
const firstWordMs = 3000;
const silenceMsMax = 20_000;
/** A wall clock that goes so far from ours was set, or ours stood still while the machine slept. */
const clocksApartMsMax = 1000;
const order = [
  "waiting",
  "opened",
  "claimed",
  "gathering",
  "lapsed",
  "approved",
  "finished",
  "failed",
];

const root = find(document, "[data-login]");
/** @type {Page} */
const page = JSON.parse(root.dataset["login"] ?? "");
const macs = (root.dataset["macs"] ?? "").split(" ");
const path = `/oauth2/login/${page.loginId}`;
/** What the service's clock is ahead of the time since this page began, which nobody sets. */
let serverAheadMs = page.nowMs - arrivedMs();
let wallAheadMs = Date.now() - performance.now();
let isAsking = false;
/** What the title ends with in every state. */
const titleEnd =
  page.kind === "waiting"
    ? document.title
    : document.title.slice(`${find(root, "h2").textContent} – `.length);

/** @type {Kind} */
let kind = page.kind;
let shownStep = -1;
/** @type {EventSource | null} */
let stream = null;
let streamFaults = 0;
let silence = 0;
/** Whether the service has told of the login: then the browser held its cookie, and loses it when the login is over. */
let isHeld = false;
/** Of the poll whose answers count: one that nobody needs any more would keep a connection for as long as it waits. */
let polling = new AbortController();

// The style sheet takes a code away that no script renews.
root.querySelector(".late")?.remove();
for (const renewed of root.querySelectorAll(".live")) renewed.classList.remove("live");
if (kind === "approved") void finish();
else {
  follow();
  tick();
}
document.addEventListener("visibilitychange", () => (document.hidden ? unfollow() : wake()));
addEventListener("online", () => document.hidden || wake());
addEventListener("pagehide", unfollow);
addEventListener("pageshow", (event) => {
  if (event.persisted) wake();
});

// The time, and the code that belongs to it.

/** When the first byte of the page came: that is as near to `nowMs` as this machine can say. */
function arrivedMs() {
  const [navigation] = performance.getEntriesByType("navigation");
  const isTimed = navigation instanceof PerformanceNavigationTiming && navigation.responseStart > 0;
  return isTimed ? navigation.responseStart : performance.now();
}

function serverNowMs() {
  return performance.now() + serverAheadMs;
}

/**
 * News may come late, after this machine slept, and never early: what leads to a later time is right.
 *
 * @param {number} nowMs of the service; no number for a word without it
 */
function noteTime(nowMs) {
  if (nowMs > 0) serverAheadMs = Math.max(serverAheadMs, nowMs - performance.now());
}

function leftMs() {
  return page.expiresAt * 1000 - serverNowMs();
}

/** Once a second while the login is open: the time left, and the next code when its step comes. */
function tick() {
  if (isEnded() || kind === "lapsed") return;
  void compareClocks();
  showTimeLeft();
  if (kind === "waiting" && !page.isStatic) drawStep(Math.floor(serverNowMs() / stepMs));
  if (leftMs() <= 0) void expire();
  else setTimeout(tick, 1000 - (serverNowMs() % 1000));
}

/** Only the service can tell whether this machine slept or its clock was set, and its answer brings the time along. */
async function compareClocks() {
  const aheadMs = Date.now() - performance.now();
  if (isAsking || Math.abs(aheadMs - wallAheadMs) <= clocksApartMsMax) return;
  isAsking = true;
  const status = await ask("").catch(() => null);
  isAsking = false;
  if (status === null) return;
  wallAheadMs = aheadMs;
  apply(status);
}

function showTimeLeft() {
  const element = root.querySelector("[data-left]");
  if (!(element instanceof HTMLElement)) return;
  const seconds = Math.max(0, Math.ceil(leftMs() / 1000));
  find(element, "[data-time]").textContent =
    `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  element.hidden = false;
}

/** @param {number} step */
function drawStep(step) {
  const mac = macs[step - page.firstStep];
  if (step === shownStep || mac === undefined) return;
  shownStep = step;
  const session = encodeURIComponent(`${page.loginId}.${step}.${mac}`);
  const text = `svc:login?sess=${session}&conn=${encodeURIComponent(page.conn)}&type=callback`;
  const code = find(root, "[data-qr]");
  const matrix = encodeQR(text, "raw", { ecc: "low", border: quietZone });
  code.dataset["qr"] = text;
  find(code, "svg").setAttribute("viewBox", `0 0 ${matrix.length} ${matrix.length}`);
  find(code, "path").setAttribute("d", pathOf(matrix));
}

/**
 * The path that `qrSvg` of the service draws.
 *
 * @param {boolean[][]} matrix
 */
function pathOf(matrix) {
  let drawn = "";
  for (const [y, modules] of matrix.entries()) {
    let end = -1;
    for (let x = 0; x < modules.length; x++) {
      if (!modules[x]) continue;
      const start = x;
      while (modules[x + 1]) x++;
      drawn += end < 0 ? `M${start} ${y}.5` : `m${start - end} 0`;
      end = x + 1;
      drawn += `h${end - start}`;
    }
  }
  return drawn;
}

/** The time is up by our clock; what the service says counts, because it may have been approved in the last moment. */
async function expire() {
  const status = await ask("", { withinMs: firstWordMs }).catch(() => null);
  if (status !== null) apply(status);
  else if (!isEnded()) lapse();
  setTimeout(tick, 1000);
}

/** Nobody can use the code any more. How the login ended is asked for on. */
function lapse() {
  kind = "lapsed";
  find(root, "[data-contested]").hidden = true;
  showFailed({ failure: "expired" });
  pollInstead();
}

// What happens to the login.

/** A stream holds a connection, of which a browser has six for all its tabs: only a page in view keeps one. */
function follow() {
  if (stream !== null || isEnded() || document.hidden) return;
  if (streamFaults >= 2) {
    void poll();
    return;
  }
  stream = new EventSource(`${path}/events`);
  expectWord(firstWordMs);
  stream.addEventListener("alive", (event) => {
    noteTime(Number(event.data));
    expectWord(silenceMsMax);
  });
  stream.addEventListener("message", (event) => {
    streamFaults = 0;
    isHeld = true;
    showOffline(false);
    expectWord(silenceMsMax);
    apply(JSON.parse(event.data));
  });
  stream.addEventListener("error", () => {
    streamFaults++;
    if (streamFaults >= 2 || stream?.readyState === EventSource.CLOSED) pollInstead();
  });
}

/** @param {number} withinMs */
function expectWord(withinMs) {
  clearTimeout(silence);
  silence = setTimeout(pollInstead, withinMs);
}

function pollInstead() {
  streamFaults = 2;
  unfollow();
  follow();
}

function unfollow() {
  clearTimeout(silence);
  stream?.close();
  stream = null;
  polling.abort();
}

/** The page is in view again, perhaps after a visit to the wallet, or the machine has a network again. */
function wake() {
  unfollow();
  if (isEnded()) return;
  if (kind === "waiting" && !page.isStatic) drawStep(Math.floor(serverNowMs() / stepMs));
  // A poll begins with that question.
  if (streamFaults < 2) void ask("").then(apply, () => {});
  follow();
}

async function poll() {
  polling.abort();
  const round = (polling = new AbortController());
  let retryMs = 500;
  // Whoever waits for news learns late that there is no connection, or that it is back.
  let isLost = true;
  while (!round.signal.aborted && !isEnded()) {
    try {
      const status = await ask(isLost ? "" : `?after=${known()}`, { isOver: round.signal });
      isLost = false;
      retryMs = 500;
      apply(status);
    } catch {
      if (round.signal.aborted) return;
      if (leftMs() < -graceMs) return apply({ kind: "failed", failure: "expired" });
      isLost = true;
      showOffline(true);
      await pause(retryMs);
      retryMs = Math.min(2 * retryMs, retryMsMax);
    }
  }
}

/** What is shown, as the service names it: a second wallet's try is news of its own. */
function known() {
  const isContested = kind === "claimed" && !find(root, "[data-contested]").hidden;
  return isContested ? "contested" : kind;
}

/**
 * @param {string} query empty for an answer at once
 * @param {{ isOver?: AbortSignal, withinMs?: number }} [options] `isOver` when nobody waits for the answer any more
 * @returns {Promise<Status>}
 */
async function ask(query, { isOver, withinMs } = {}) {
  const asking = endingWithin(withinMs ?? (query === "" ? promptTimeoutMs : answerTimeoutMs));
  isOver?.addEventListener("abort", () => asking.abort());
  const response = await fetch(`${path}/status${query}`, {
    headers: { accept: "application/json" },
    cache: "no-store",
    signal: asking.signal,
  });
  if (!response.ok) {
    const reason = await reasonOf(response);
    if (reason === "login_over") return { kind: "failed", failure: "over" };
    // The cookie of a login stays for minutes after its time: while that runs, a browser that never held it did not keep it.
    if (reason === "login_not_found")
      return { kind: "failed", failure: isHeld || leftMs() <= 0 ? "over" : "no_cookie" };
    throw new Error(`status ${response.status}`);
  }
  const nowMs = Number(response.headers.get("svc-now-ms"));
  if (nowMs > 0) serverAheadMs = nowMs - performance.now();
  const status = await response.json();
  isHeld = true;
  showOffline(false);
  return status;
}

/**
 * The service's own reason for a refusal. A proxy has other words while the service is away, whatever its status.
 *
 * @param {Response} response
 * @returns {Promise<string>} empty for words of somebody else
 */
async function reasonOf(response) {
  const body = await response.json().catch(() => null);
  return body?.error?.reason ?? "";
}

/** @param {Status} status */
function apply(status) {
  if (isEnded()) return;
  if (order.indexOf(status.kind) < order.indexOf(kind)) {
    // It is open after all, and that is what its page shows.
    if (kind === "lapsed") location.replace(path);
    return;
  }
  if (status.contested) find(root, "[data-contested]").hidden = false;
  if (status.kind === kind) return;
  kind = status.kind;
  if (kind !== "claimed") find(root, "[data-contested]").hidden = true;
  if (isEnded()) unfollow();
  if (kind === "claimed") showClaimed(status);
  else if (kind === "opened" || kind === "gathering") show(templateOf(kind));
  else if (kind === "approved") void finish();
  else if (status.location !== undefined) location.replace(status.location);
  else showFailed(status);
}

function isEnded() {
  return order.indexOf(kind) >= order.indexOf("approved");
}

/** @param {Status} status */
function showClaimed({ digits, identity }) {
  const hasNumber = typeof digits === "string";
  const panel = templateOf(hasNumber ? "claimed-number" : "claimed");
  find(panel, "[data-identity]").textContent = identity ?? "";
  if (hasNumber) {
    const number = find(panel, "[data-digits]");
    number.removeAttribute("data-digits");
    number.setAttribute("data-code", "");
    number.textContent = digits;
  }
  show(panel);
}

/** @param {Partial<Status>} status */
function showFailed({ failure = "over", canRestart = true }) {
  const panel = templateOf(failure);
  if (!canRestart) {
    panel.querySelector("[data-form=restart]")?.remove();
    find(panel, ".back a").className = "button";
  }
  show(panel);
}

/** The code comes in this answer alone, to the browser that holds the cookie. */
async function finish() {
  show(templateOf("approved"));
  for (let retryMs = 1000; ; retryMs = Math.min(2 * retryMs, retryMsMax)) {
    const response = await fetch(`${path}/finish`, {
      method: "POST",
      headers: { accept: "application/json" },
      // Late is better than never: the code comes once.
      signal: endingWithin(answerTimeoutMs).signal,
    }).catch(() => null);
    // One that breaks off is asked for again: the next says where the person can go.
    const answer = response?.ok ? await response.json().catch(() => null) : null;
    if (answer !== null) return location.replace(answer.location);
    if (response !== null && response.status < 500 && (await reasonOf(response)) !== "")
      return giveUp();
    if (leftMs() < -graceMs) return showFailed({});
    showOffline(true);
    await pause(retryMs);
  }
}

async function giveUp() {
  const status = await ask("").catch(() => null);
  if (status?.location !== undefined) location.replace(status.location);
  else showFailed(status?.kind === "failed" ? status : {});
}

// The page.

/**
 * @param {string} name
 * @returns {DocumentFragment}
 */
function templateOf(name) {
  const template =
    document.querySelector(`template[data-for="${name}"]`) ??
    document.querySelector("template[data-for=over]");
  if (!(template instanceof HTMLTemplateElement)) throw new Error(`no template ${name}`);
  return document.importNode(template.content, true);
}

/** @param {DocumentFragment} panel */
function show(panel) {
  const place = find(root, "[data-state]");
  const hadFocus = place.contains(document.activeElement);
  showOffline(false);
  // What was taken for sure is not told again when the service says it.
  if (place.textContent === panel.textContent) return;
  place.replaceChildren(panel);
  showTimeLeft();
  const heading = find(place, "h2");
  document.title = `${heading.textContent} – ${titleEnd}`;
  // The focus on the heading says it already.
  const said = "h2 ~ p:not(.hint, .back, .left, .pulse)";
  const spoken = [...(hadFocus ? [] : [heading]), ...place.querySelectorAll(said)];
  find(document, "[data-status]").textContent = spoken
    .map((element) => element.textContent)
    .join(" ");
  if (hadFocus) heading.focus();
  // At a high zoom the new state may lie elsewhere than the one before it.
  for (const seen of [heading, place.querySelector("[data-code]")])
    seen?.scrollIntoView({ block: "nearest" });
}

/**
 * Seen and heard, once each time that it changes (WCAG 2.2, 4.1.3).
 *
 * @param {boolean} isOffline
 */
function showOffline(isOffline) {
  const notice = find(root, "[data-offline]");
  if (notice.hidden !== isOffline || (isOffline && kind === "lapsed")) return;
  notice.hidden = !isOffline;
  find(document, "[data-status]").textContent = isOffline ? notice.textContent : "";
}

/**
 * @param {ParentNode} parent
 * @param {string} selector
 * @returns {HTMLElement}
 */
function find(parent, selector) {
  const element = parent.querySelector(selector);
  if (element === null) throw new Error(`no ${selector}`);
  return /** @type {HTMLElement} */ (element);
}

/** @param {number} ms after which a question is given up */
function endingWithin(ms) {
  const asking = new AbortController();
  setTimeout(() => asking.abort(), ms);
  return asking;
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
