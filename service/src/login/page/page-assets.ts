import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { sha256 } from "../../platform/cryptography/sha256.ts";

/** A file of the pages. Its path holds a hash of its content, so it may be cached for ever. */
export interface PageAsset {
  readonly body: Buffer;
  readonly gzip: Buffer;
  readonly contentType: string;
}

/** Every path of {@link pageAssets} is this prefix and a name. */
export const assetPrefix = "/oauth2/assets/";
const own = new URL("assets/", import.meta.url);

/**
 * The files of the pages by absolute path, and these paths as pages name them; read and compressed once, when the
 * service starts.
 */
export const { assets: pageAssets, paths: assetPaths } = readAssets();

const hashPattern = /\.[\w-]{16}\./;

/**
 * This version's file for a path that a page of another version names; null if there is none. During an upgrade, a page
 * and its files come from processes of different versions, and without its script a code would not be renewed.
 */
export function findNamesake(path: string): PageAsset | null {
  const name = path.replace(hashPattern, ".");
  const found = [...pageAssets].find(([each]) => each.replace(hashPattern, ".") === name);
  return found?.[1] ?? null;
}

function readAssets() {
  const assets = new Map<string, PageAsset>();
  const add = (name: string, contentType: string, text: string): string => {
    const body = Buffer.from(text);
    const hash = sha256(text).toString("base64url").slice(0, 16);
    const path = `${assetPrefix}${name.replace(".", `.${hash}.`)}`;
    assets.set(path, { body, gzip: gzipSync(body, { level: 9 }), contentType });
    return path;
  };
  const script = "text/javascript; charset=utf-8";
  const style = "text/css; charset=utf-8";
  const encoder = add("qr.js", script, stripComments(readPackage("qr")));
  const paths = {
    encoder,
    script: add("login.js", script, linkEncoder(stripComments(readOwn("login.js")), encoder)),
    style: add("page.css", style, stripComments(readOwn("page.css"))),
    noScriptStyle: add("no-script.css", style, stripComments(readOwn("no-script.css"))),
    icon: add("icon.svg", "image/svg+xml", readOwn("icon.svg")),
  };
  return { assets, paths };
}

function readOwn(name: string): string {
  return readFileSync(new URL(name, own), "utf8");
}

/** The library's own module as it was installed: its one file has no imports, so a browser can run it. */
function readPackage(name: string): string {
  return readFileSync(fileURLToPath(import.meta.resolve(name)), "utf8");
}

/** In the sources the script imports the package by its name, which the type checker knows; a browser needs the path. */
function linkEncoder(script: string, encoder: string): string {
  const linked = script.replace('from "qr"', `from "${encoder}"`);
  if (linked === script) throw new Error("login.js no longer imports qr");
  return linked;
}

/**
 * A third of the sources is comments. Only whole lines are removed, and licence notices (`/*!`) stay; a test runs the
 * result.
 */
function stripComments(source: string): string {
  return source
    .replaceAll(/^[ \t]*\/\*(?!!)(?:(?!\*\/)[^])*\*\/[ \t]*\n/gm, "")
    .replaceAll(/^[ \t]*\/\/.*\n/gm, "")
    .replaceAll(/^[ \t]+/gm, "");
}
