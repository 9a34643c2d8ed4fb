export { openShop, type Shop, type ShopOptions } from "./shop.ts";
