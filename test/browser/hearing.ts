// Waiting until a page itself has read something, which is later than when its browser received it.
import type { Page } from "playwright-core";
import type { LoginStub } from "./login-stub.ts";

/** Resolves when the page has read all that was sent on its stream. */
export async function hearStream(page: Page, stub: LoginStub): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const heard = new Promise((resolve) =>
    session.once("Network.eventSourceMessageReceived", resolve),
  );
  stub.keepAlive();
  await heard;
  await session.detach();
}

/** @returns a function that resolves when the page has read the answer to a request that it sends from now on */
export async function listenForAnswer(page: Page): Promise<() => Promise<void>> {
  await page.evaluate(`{
    const send = fetch;
    window.fetch = async (...given) => {
      const answer = await send(...given);
      document.documentElement.dataset.answered = "";
      return answer;
    };
  }`);
  return async () => page.locator("html[data-answered]").waitFor();
}
