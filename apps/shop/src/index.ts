export { openShop, type Shop, type ShopOptions } from "./shop.ts";
export type { KycOptions } from "./verification.ts";
