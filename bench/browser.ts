import { type HttpAnswer, type HttpCall, sendExpecting } from "./http-client.ts";

/** A browser reduced to its cookies, each with the path it belongs to. */
export interface Browser {
  call(status: number, url: string, call?: HttpCall): Promise<HttpAnswer>;
  /** The header `Cookie` for this address; empty when it has none. */
  cookieFor(url: string): string;
}

interface Cookie {
  readonly value: string;
  readonly path: string;
}

export function openBrowser(): Browser {
  const cookies = new Map<string, Cookie>();
  const cookieFor = (url: string): string => {
    const { pathname } = new URL(url);
    const sent = [...cookies].filter(([, { path }]) => pathname.startsWith(path));
    return sent.map(([name, { value }]) => `${name}=${value}`).join("; ");
  };
  return {
    cookieFor,
    async call(status, url, call = {}) {
      const cookie = cookieFor(url);
      const headers = {
        accept: "text/html",
        "accept-language": "en",
        ...call.headers,
        ...(cookie === "" ? {} : { cookie }),
      };
      const answer = await sendExpecting(status, url, { ...call, headers });
      for (const line of answer.headers["set-cookie"] ?? []) keep(cookies, line);
      return answer;
    },
  };
}

function keep(cookies: Map<string, Cookie>, line: string): void {
  const [pair = "", ...attributes] = line.split(";").map((part) => part.trim());
  const at = pair.indexOf("=");
  const find = (name: string): string | undefined =>
    attributes.find((each) => each.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1);
  const expires = find("expires");
  const isEnded =
    find("max-age") === "0" || (expires !== undefined && Date.parse(expires) <= Date.now());
  if (isEnded) cookies.delete(pair.slice(0, at));
  else cookies.set(pair.slice(0, at), { value: pair.slice(at + 1), path: find("path") ?? "/" });
}
