import { invalid } from "./api-answer.ts";
import type { Members } from "./members.ts";

/** `link` of an answer: `svc:..`. It becomes the target of a button, so no other scheme is accepted. */
export function readLink(members: Members): string {
  const link = members.text("link");
  if (!link.startsWith("svc:")) throw invalid("link");
  return link;
}

/** `universalLink` of an answer: a page of the wallet. Also the target of a button, so it must not be `javascript:`. */
export function readUniversalLink(members: Members): string {
  const link = members.text("universalLink");
  if (!URL.canParse(link) || !/^https?:$/.test(new URL(link).protocol))
    throw invalid("universalLink");
  return link;
}
