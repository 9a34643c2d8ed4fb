// Draws the state of a request anew whenever it changes. The page works without it, too.
const standing = document.getElementById("standing");
const order = document.getElementById("order");
const path = order.dataset.page;
// The link that draws it where this script does not run.
document.getElementById("anew").remove();

/** Where the request stands, as the shop said last. */
let line = standing.textContent;
/** What the page says. It is remembered because a translator may rewrite the page. */
let said = line;

const unseen = "the page is out of view";
/** Ends the question that is under way. */
let asking = new AbortController();
document.addEventListener("visibilitychange", () => {
  if (document.hidden) asking.abort(unseen);
});

/** A question holds one of the six connections that a browser has for all its tabs, so only a page in view asks. */
async function comeIntoView() {
  const event = "visibilitychange";
  while (document.hidden)
    await new Promise((go) => document.addEventListener(event, go, { once: true }));
}

/** Waits until the server knows more than the page shows, for as long as the page is open. */
async function follow() {
  for (;;) {
    await comeIntoView();
    // Without a version the answer comes at once, and shows that the connection is back.
    const isLost = said !== line;
    const version = isLost ? "" : order.dataset.version;
    const response = await ask(`${path}/changes?version=${version}`);
    if (response.status === 403) {
      // The person that the page is about is no longer logged in.
      location.reload();
      return;
    }
    if (response.status !== 204) throw new Error("a proxy answered");
    if (response.headers.get("x-version") !== order.dataset.version) await redraw();
    else if (isLost) say(line);
    // Nothing new. The answer comes at once if too many pages wait, so this one must not ask again immediately.
    else await pause();
  }
}

/** The shop answers after 25 seconds at most. A request that the network lost would never end by itself. */
const answerTimeoutMs = 40_000;

/** Asks the shop; a busy or starting server, or a proxy in its place, counts as one that did not answer. */
async function ask(url) {
  const own = new AbortController();
  asking = own;
  setTimeout(() => own.abort(), answerTimeoutMs);
  // With its cache, a browser would let two pages that ask the same wait for each other.
  const response = await fetch(url, { signal: own.signal, cache: "no-store" });
  if (response.status >= 400 && response.status !== 403)
    throw new Error("the shop is busy or away");
  return response;
}

async function redraw() {
  const text = await (await ask(path)).text();
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const freshOrder = fresh.getElementById("order");
  // In another tab somebody else logged in: the whole page is about another person or company.
  if (freshOrder?.dataset.of !== order.dataset.of) {
    location.reload();
    return;
  }
  const hadFocus = order.contains(document.activeElement);
  order.replaceChildren(...freshOrder.childNodes);
  // The pressed button is gone. Without this, the keyboard's focus would return to the top of the browser's window.
  if (hadFocus) document.querySelector("h1").focus();
  order.dataset.version = freshOrder.dataset.version;
  line = fresh.getElementById("standing").textContent;
  say(line);
}

/** Writes the one line that screen readers announce, which they do even if it has not changed. */
function say(text) {
  if (text !== said) standing.textContent = text;
  said = text;
}

const pauseMs = 5000;

function pause() {
  return new Promise((done) => setTimeout(done, pauseMs));
}

/** Asks again after a pause if no answer came, and says so: what the page shows may be out of date. */
function keepFollowing() {
  follow().catch(() => {
    if (asking.signal.reason === unseen) return keepFollowing();
    say("No connection. Trying again…");
    return pause().then(keepFollowing);
  });
}

keepFollowing();
