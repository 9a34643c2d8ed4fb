import { openShop, type Shop } from "@svc/shop";
import { apiAudience, freePort, openWorld, type World } from "../world.ts";

/** The whole product with the demo shop in front of it. */
export interface ShopWorld extends AsyncDisposable {
  readonly world: World;
  readonly shop: Shop;
}

/** Opens a world, registers the shop's client there, as a merchant would, and opens the shop. */
export async function openShopWorld(): Promise<ShopWorld> {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await openWorld());
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const { id, secret = "" } = await world.addClient({
    name: "Corner Coffee",
    redirectUris: [`${url}/callback`],
    postLogoutRedirectUris: [`${url}/`],
    backchannelLogoutUri: `${url}/backchannel-logout`,
  });
  const shop = await openShop({
    port,
    host: "127.0.0.1",
    issuer: world.baseUrl,
    clientId: id,
    clientSecret: secret,
    audience: apiAudience,
    clockUrl: `${world.baseUrl}/health/ready`,
  });
  const opened = stack.move();
  return {
    world,
    shop,
    async [Symbol.asyncDispose]() {
      // The world's jobs may be telling the shop of a logout: it stays open until they have ended.
      await opened.disposeAsync();
      await shop.close();
    },
  };
}
