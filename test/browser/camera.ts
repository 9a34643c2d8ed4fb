import type { Browser, Page } from "playwright-core";
import { decodeQR } from "qr/decode.js";

/** Reads the code on the page from a picture of it, as a camera would. @throws when there is none to read */
export async function readCode(browser: Browser, page: Page): Promise<string> {
  return readPicture(browser, await page.locator("[data-qr]").screenshot());
}

/** One page of each browser reads all pictures: opening a page takes longer than reading a picture. */
const canvases = new WeakMap<Browser, Promise<Page>>();

async function canvasOf(browser: Browser): Promise<Page> {
  const canvas = canvases.get(browser) ?? browser.newPage();
  canvases.set(browser, canvas);
  return canvas;
}

/** Reads the code in a PNG, which may show more than the code. @throws when there is none to read */
export async function readPicture(browser: Browser, png: Buffer): Promise<string> {
  const canvas = await canvasOf(browser);
  const [width, height, bytes] = await canvas.evaluate<[number, number, string]>(`(async () => {
    const image = await createImageBitmap(await (await fetch("data:image/png;base64,${png.toString("base64")}")).blob());
    const painter = new OffscreenCanvas(image.width, image.height).getContext("2d");
    painter.drawImage(image, 0, 0);
    const { data } = painter.getImageData(0, 0, image.width, image.height);
    return [image.width, image.height, new Uint8Array(data.buffer).toBase64()];
  })()`);
  return decodeQR({ width, height, data: new Uint8Array(Buffer.from(bytes, "base64")) });
}
