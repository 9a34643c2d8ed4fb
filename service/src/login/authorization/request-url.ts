import type { Form } from "../../platform/http/http-input.ts";

/** Whether the request says who the person is: then its address must not be shown. */
export function isPersonal(form: Form): boolean {
  return "id_token_hint" in form || "login_hint" in form;
}

/** Browsers and proxies take addresses of this length. */
const urlLengthMax = 4096;

/** The URL of the same authorization request by GET; null if it would be too long. */
export function urlOf(form: Form): string | null {
  const pairs = Object.entries(form).flatMap(([name, values]) =>
    [values].flat().map((value): [string, string] => [name, value]),
  );
  const url = `/oauth2/auth?${new URLSearchParams(pairs).toString()}`;
  return url.length > urlLengthMax ? null : url;
}
