import { randomUUID } from "node:crypto";
import { forgetOldest } from "../../platform/forget-oldest.ts";
import { escapeHtml, href, type Markup } from "./page-markup.ts";
import type { LoginView } from "./login-view.ts";

/** The parts that differ between two waiting pages of one client in one language; everything else is rendered once. */
export interface PageSlots {
  readonly data: Markup;
  /** Null if no code is shown any more. */
  readonly code: Markup | null;
}

/** Renders a whole page around its slots. */
type Render = (view: LoginView, slots: PageSlots) => string;

/** 20 kB each, for the clients that people log in to at the moment, in their languages. */
const skeletonsMax = 500;

/** Marks the slots. Nobody can guess it, so no client's name can contain one. */
const mark = randomUUID().replaceAll("-", "");
const marks = {
  data: `data-${mark}`,
  code: `code-${mark}`,
  loginId: `login-${mark}`,
  sameDevice: `svc:same-${mark}`,
  back: `https:back-${mark}`,
} as const;
const anyMark = new RegExp(`(${Object.values(marks).join("|")})`);

const skeletons = new Map<string, readonly string[]>();

/** The waiting page of a login, made from the skeleton of its client at a twentieth of the cost of rendering it. */
export function renderFromSkeleton(view: LoginView, slots: PageSlots, render: Render): string {
  const values: Readonly<Record<string, string>> = {
    [marks.data]: slots.data.markup,
    [marks.code]: slots.code?.markup ?? "",
    [marks.loginId]: escapeHtml(view.loginId),
    [marks.sameDevice]: escapeHtml(href(view.sameDeviceLink)),
    [marks.back]: escapeHtml(href(view.backUrl)),
  };
  let page = "";
  for (const piece of skeletonOf(view, render)) page += values[piece] ?? piece;
  return page;
}

function skeletonOf(view: LoginView, render: Render): readonly string[] {
  const { locale, clientName, clientDomain, scopes, base, isStatic, isCodeOver } = view;
  const key = JSON.stringify([
    locale,
    clientName,
    clientDomain,
    scopes,
    base,
    isStatic,
    isCodeOver,
    view.isBusiness,
    view.isSameDeviceOnly,
    view.canRestart,
  ]);
  const known = skeletons.get(key);
  if (known !== undefined) return known;
  const marked = {
    ...view,
    loginId: marks.loginId,
    sameDeviceLink: marks.sameDevice,
    backUrl: marks.back,
  };
  const slots = { data: { markup: marks.data }, code: { markup: marks.code } };
  const made = inAscii(render(marked, slots)).split(anyMark);
  skeletons.set(key, made);
  forgetOldest(skeletons, skeletonsMax);
  return made;
}

/**
 * Writes other characters as references. A single one beyond Latin-1 would make the page a string of two bytes per
 * character, which takes three times as long to send. `replaceAll` keeps such a representation whatever it replaces, so
 * the result is copied.
 */
function inAscii(page: string): string {
  const ascii = page.replaceAll(/[^\0-\x7f]/gu, (character) => `&#${character.codePointAt(0)};`);
  return Buffer.from(ascii, "latin1").toString("latin1");
}
