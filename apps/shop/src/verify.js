// Draws the state of a request anew whenever it changes. The page works without it, too.
const standing = document.getElementById("standing");
const order = document.getElementById("order");
const path = order.dataset.page;

/** Waits until the server knows more than the page shows, for as long as the page is open. */
async function follow() {
  for (;;) {
    const response = await ask(`${path}/changes?version=${order.dataset.version}`);
    // Whom the page is about is not logged in here any more.
    if (response.status === 403) location.reload();
    if (response.status !== 204) return;
    if (response.headers.get("x-version") !== order.dataset.version) await redraw();
    // Nothing new: where too many pages wait, the answer came at once.
    else await pause();
  }
}

/** The shop answers a question after 25 s; one that a network swallowed never ends by itself. */
const answerTimeoutMs = 40_000;

/** A server that has too much to do, or is just starting, is one that did not answer. */
async function ask(url) {
  const asking = new AbortController();
  setTimeout(() => asking.abort(), answerTimeoutMs);
  const response = await fetch(url, { signal: asking.signal });
  if (response.status === 429 || response.status >= 500) throw new Error("the shop is busy");
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
  // Whoever had pressed something that is gone begins at the top of this page, not of the browser's window.
  if (hadFocus) document.querySelector("h1").focus();
  order.dataset.version = freshOrder.dataset.version;
  // The one line that screen readers announce.
  const line = fresh.getElementById("standing").textContent;
  if (standing.textContent !== line) standing.textContent = line;
}

const pauseMs = 5000;

function pause() {
  return new Promise((done) => setTimeout(done, pauseMs));
}

/** Where no answer came, it asks again. */
function keepFollowing() {
  follow().catch(() => pause().then(keepFollowing));
}

keepFollowing();
