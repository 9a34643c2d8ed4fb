// Draws the state of a request anew whenever it changes. The page works without it, too.
const standing = document.getElementById("standing");
const order = document.getElementById("order");
const path = order.dataset.page;

/** Waits until the server knows more than the page shows, for as long as the page is open. */
async function follow() {
  for (;;) {
    const response = await ask(`${path}/changes?version=${order.dataset.version}`);
    // The person that the page is about is no longer logged in.
    if (response.status === 403) location.reload();
    if (response.status !== 204) return;
    if (response.headers.get("x-version") !== order.dataset.version) await redraw();
    // Nothing new. The answer comes at once if too many pages wait, so this one must not ask again immediately.
    else await pause();
  }
}

/** The shop answers after 25 seconds at most. A request that the network lost would never end by itself. */
const answerTimeoutMs = 40_000;

/** Asks the shop; a busy or starting server counts as one that did not answer. */
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
  // The pressed button is gone. Without this, the keyboard's focus would return to the top of the browser's window.
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

/** Asks again after a pause if no answer came. */
function keepFollowing() {
  follow().catch(() => pause().then(keepFollowing));
}

keepFollowing();
