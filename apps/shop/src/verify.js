// Draws the state of a request anew whenever it changes. The page works without it, too.
const standing = document.getElementById("standing");
const order = document.getElementById("order");
const path = order.dataset.page;

/** Waits until the server knows more than the page shows, for as long as the page is open. */
async function follow() {
  for (;;) {
    const response = await fetch(`${path}/changes?version=${order.dataset.version}`);
    if (response.status !== 204) return;
    if (response.headers.get("x-version") !== order.dataset.version) await redraw();
    // Nothing new: where too many pages wait, the answer came at once.
    else await pause();
  }
}

async function redraw() {
  const text = await (await fetch(path)).text();
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const freshOrder = fresh.getElementById("order");
  if (freshOrder === null) {
    location.reload();
    return;
  }
  order.replaceChildren(...freshOrder.childNodes);
  order.dataset.version = freshOrder.dataset.version;
  // The one line that screen readers announce.
  const line = fresh.getElementById("standing").textContent;
  if (standing.textContent !== line) standing.textContent = line;
}

const pauseMs = 5000;

function pause() {
  return new Promise((done) => setTimeout(done, pauseMs));
}

/** A connection that broke is taken up again. */
function keepFollowing() {
  follow().catch(() => pause().then(keepFollowing));
}

keepFollowing();
