import type { Shop } from "../src/index.ts";

export const locationOf = (response: Response): string => response.headers.get("location") ?? "";

/** A browser with its own cookies, which follows no redirect by itself. */
export function openShopBrowser(shop: Shop) {
  const jar = new Map<string, string>();
  const visit = async (url: string, init: { method?: string; origin?: string } = {}) => {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const { method = "GET", origin } = init;
    const headers = { cookie, ...(origin !== undefined && { origin }) };
    const response = await fetch(new URL(url, shop.url), { redirect: "manual", method, headers });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      jar.set(name, value);
    }
    return response;
  };
  return {
    visit,
    /** Presses a button of the shop's page, or of a page elsewhere. */
    press: async (action: string, origin = shop.url) => visit(action, { method: "POST", origin }),
  };
}

/** A browser in which this button has led to a login; `arrived` is where that ended. */
export async function logInto(shop: Shop, button: string) {
  const { visit, press } = openShopBrowser(shop);
  const start = new URL(locationOf(await press(button)));
  const arrived = await visit(locationOf(await fetch(start, { redirect: "manual" })));
  return {
    visit,
    press,
    arrived,
    scope: start.searchParams.get("scope"),
    page: async () => (await visit("/company")).text(),
  };
}
