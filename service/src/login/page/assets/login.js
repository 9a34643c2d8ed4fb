// @ts-check
/**
 * The login page in the browser: draws each step's code, follows the login, and goes on with its outcome.
 * Every text it shows is in the page already, in templates, so it knows no language. Without it the page works by forms.
 */
import { encodeQR } from "qr";

/**
 * The kinds of the service's states, and `lapsed`: the time is up, and the service has not said yet how the login ended.
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
/** A login that was approved in time can be finished for this long after its end. */
const graceMs = 120_000;
const retryMsMax = 10_000;
/** A stream sends the state at once, and then something every 15 s. One that a proxy buffers fails silently. */
const firstWordMs = 3000;
const silenceMsMax = 20_000;
/**
 * If the wall clock departs this far from the monotonic one, it was set, or the machine slept, during which the latter
 * stands still.
 */
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
/** How far the service's clock is ahead of this page's monotonic clock, which nobody can set. */
let serverAheadMs = page.nowMs - arrivedMs();
let wallAheadMs = Date.now() - performance.now();
let isAsking = false;
/** The end of the title, the same in every state. */
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
/**
 * Whether the service has answered about this login: then the browser held its cookie, which goes when the login is
 * over.
 */
let isHeld = false;
/** Of the poll whose answers count. Any other is aborted, since it would keep a connection for as long as it waits. */
let polling = new AbortController();

// The style sheet hides a code that no script renews; this script does renew it.
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

/** When the first byte of the page came: the closest to `nowMs` that this machine can tell. */
function arrivedMs() {
  const [navigation] = performance.getEntriesByType("navigation");
  const isTimed = navigation instanceof PerformanceNavigationTiming && navigation.responseStart > 0;
  return isTimed ? navigation.responseStart : performance.now();
}

function serverNowMs() {
  return performance.now() + serverAheadMs;
}

/**
 * An event may arrive late, after this machine slept, but never early. So only one that moves the time forward is
 * right.
 *
 * @param {number} nowMs of the service; NaN if the event has none
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

/** Only the service can tell whether this machine slept or its clock was set; its answer carries the time. */
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

/** The time is up by our clock. The service decides, because the login may have been approved at the last moment. */
async function expire() {
  const status = await ask("", { withinMs: firstWordMs }).catch(() => null);
  if (status !== null) apply(status);
  else if (!isEnded()) lapse();
  setTimeout(tick, 1000);
}

/** Nobody can use the code any more. The page keeps asking how the login ended. */
function lapse() {
  kind = "lapsed";
  find(root, "[data-contested]").hidden = true;
  showFailed({ failure: "expired" });
  pollInstead();
}

// What happens to the login.

/** A stream holds one of the six connections that a browser has for all its tabs, so only a page in view keeps one. */
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
  // A poll starts with this request itself.
  if (streamFaults < 2) void ask("").then(apply, () => {});
  follow();
}

async function poll() {
  polling.abort();
  const round = (polling = new AbortController());
  let retryMs = 500;
  // While the connection is lost, ask for an answer at once: a long poll would notice late that it is lost, or back.
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

/** What is shown, as the service names it; a second wallet's attempt has a name of its own. */
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
    // The cookie outlives the login's time by minutes: if it is missing before that, this browser did not keep it.
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
 * The service's own reason for a refusal. A proxy in front of a service that is down answers something else, with any
 * status.
 *
 * @param {Response} response
 * @returns {Promise<string>} empty for an answer that is not the service's
 */
async function reasonOf(response) {
  const body = await response.json().catch(() => null);
  return body?.error?.reason ?? "";
}

/** @param {Status} status */
function apply(status) {
  if (isEnded()) return;
  if (order.indexOf(status.kind) < order.indexOf(kind)) {
    // The login is open after all; its page shows that.
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

/** The authorization code comes only in this answer, to the browser that holds the cookie. */
async function finish() {
  show(templateOf("approved"));
  for (let retryMs = 1000; ; retryMs = Math.min(2 * retryMs, retryMsMax)) {
    const response = await fetch(`${path}/finish`, {
      method: "POST",
      headers: { accept: "application/json" },
      // Waits long: the code comes only once.
      signal: endingWithin(answerTimeoutMs).signal,
    }).catch(() => null);
    // If the answer breaks off, the next one says where the person can go.
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
  // The page has shown this state already, before the service confirmed it.
  if (place.textContent === panel.textContent) return;
  place.replaceChildren(panel);
  showTimeLeft();
  const heading = find(place, "h2");
  document.title = `${heading.textContent} – ${titleEnd}`;
  // A screen reader reads the heading out when it gets the focus.
  const said = "h2 ~ p:not(.hint, .back, .left, .pulse)";
  const spoken = [...(hadFocus ? [] : [heading]), ...place.querySelectorAll(said)];
  find(document, "[data-status]").textContent = spoken
    .map((element) => element.textContent)
    .join(" ");
  if (hadFocus) heading.focus();
  // At a high zoom the new state may be out of view.
  for (const seen of [heading, place.querySelector("[data-code]")])
    seen?.scrollIntoView({ block: "nearest" });
}

/**
 * Shows and announces it, once for each change (WCAG 2.2, 4.1.3).
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
