// A browser without a screen: keeps cookies for one origin at a time and never follows a redirect by itself.
export interface Jar {
  readonly cookies: Map<string, string>;
  fetch(url: string, init?: RequestInit): Promise<Response>;
  /** A second browser tab or a copied cookie store starts from here. */
  copy(): Jar;
}

export function openJar(cookies = new Map<string, string>()): Jar {
  return {
    cookies,
    async fetch(url, init = {}) {
      const headers = new Headers(init.headers);
      if (cookies.size > 0)
        headers.set("cookie", [...cookies].map(([name, value]) => `${name}=${value}`).join("; "));
      const response = await fetch(url, { redirect: "manual", ...init, headers });
      for (const line of response.headers.getSetCookie()) keep(cookies, line);
      return response;
    },
    copy: () => openJar(new Map(cookies)),
  };
}

function keep(cookies: Map<string, string>, line: string): void {
  const [pair = "", ...attributes] = line.split(";").map((part) => part.trim());
  const at = pair.indexOf("=");
  const isEnded = attributes.some((attribute) => attribute.toLowerCase() === "max-age=0");
  if (isEnded) cookies.delete(pair.slice(0, at));
  else cookies.set(pair.slice(0, at), pair.slice(at + 1));
}
