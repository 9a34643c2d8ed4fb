// What a page has heard itself: what has come to its browser it may not have read yet.
import type { Page } from "playwright-core";
import type { LoginStub } from "./login-stub.ts";

/** Until the page has heard all that was said on its stream. */
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

/** @returns resolves when the page reads the answer to something that it asks from now on */
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
