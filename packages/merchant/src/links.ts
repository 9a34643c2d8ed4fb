import type { Members } from "./members.ts";

type Fault = (member: string) => Error;

/** `link` of an answer: `svc:..`. It becomes the target of a button: no other scheme may. */
export function readLink(members: Members, fault: Fault): string {
  const link = members.text("link");
  if (!link.startsWith("svc:")) throw fault("link");
  return link;
}

/** `universalLink` of an answer, another such target: a page of the wallet, and never a script. */
export function readUniversalLink(members: Members, fault: Fault): string {
  const link = members.text("universalLink");
  if (!URL.canParse(link) || !/^https?:$/.test(new URL(link).protocol))
    throw fault("universalLink");
  return link;
}
