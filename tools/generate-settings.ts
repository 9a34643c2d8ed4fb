// Writes docs/reference/settings.md and errors.md from the code: node --conditions=source tools/generate-settings.ts
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { settings } from "../service/src/platform/config/config.ts";
import { listProblems } from "../service/src/platform/http/problems.ts";
import { code, page, table } from "./markdown.ts";
import { remedies } from "./remedies.ts";

const reference = join(import.meta.dirname, "../docs/reference");

/** The generated pages: path and content. */
export const settingsPages: readonly { path: string; write: () => string }[] = [
  { path: join(reference, "settings.md"), write: writeSettingsReference },
  { path: join(reference, "errors.md"), write: writeErrorsReference },
];

function shownFallback(fallback: string | null): string {
  if (fallback === null) return "";
  return fallback === "" ? "empty" : code(fallback);
}

function writeSettingsReference(): string {
  const rows = Object.values(settings).map((each) => {
    const mark = "secret" in each ? " Secret: never logged or printed." : "";
    return [code(each.env), shownFallback(each.fallback), each.unit, `${each.description}${mark}`];
  });
  return page([
    "# Settings",
    "",
    "Generated from `service/src/platform/config/config.ts` by `tools/generate-settings.ts`; a test compares.",
    "",
    "Settings are environment variables, read once at the start. A value that cannot be used stops the start with a line",
    "that names the variable. An empty variable counts as unset.",
    "",
    ...table(["Variable", "Default", "Unit", "Meaning"], rows),
  ]);
}

function writeErrorsReference(): string {
  const rows = listProblems()
    .toSorted((a, b) => a.status - b.status)
    .map((each) => [String(each.status), code(each.reason), each.message, remedies[each.reason]]);
  return page([
    "# Errors",
    "",
    "Generated from `service/src/platform/http/problems.ts` by `tools/generate-settings.ts`; a test compares.",
    "",
    "A refused call answers this envelope. Branch on `reason`, which never changes; `message` is for people and may say",
    "more than here. Quote `requestId` when you ask about a call; it is also in the header `X-Request-Id`.",
    'A 401 has `WWW-Authenticate`: `ApiKey realm="svc"` where the route takes a key, which stands in `Authorization` as it is, and',
    '`Bearer realm="svc"` where it takes a wallet session.',
    "",
    "```json",
    JSON.stringify(
      {
        success: false,
        error: {
          code: 404,
          reason: "login_not_found",
          message: "no such login",
          requestId: "req_..",
        },
      },
      null,
      2,
    ),
    "```",
    "",
    ...table(["Status", "Reason", "Message", "What to do"], rows),
    "",
    "`body_too_large`: a body has at most 64 KiB; for documents to sign and their offers 160 KiB, for `valid` of businesses 256 KiB, for the mailbox",
    "257 KiB, for `/w/chain` 512 KiB, for records of businesses 4 MiB, and for credentials, `/api/v1/blockchain/valid`, the relay and answers to",
    "orders 8 MiB.",
    "",
    "`too_many`: an organization has at most 100 client domains, 100 live API keys and 200 members; a client domain 100 packages, and 100",
    "clients that are not disabled; an issuer 20 live keys; a user 20 boxes in the mailbox and 20 foundings that wait for signatures; a business 20",
    "open proposals, 5 of one member, whose first is always taken, and one announced move. Domains and packages cannot be removed.",
    "",
    "Answers to an API key say in `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10) how many calls may come at once",
    "(`q`) and how many are left (`r`). What is under way at once is counted per process: a network has at most 16 bodies of more than 64 KiB; a",
    "client domain at most 4 lists of events and attestations, a network at most 4 lists of a wallet and 4 calls of `/w/chain`, and more of these",
    "wait up to ten seconds. What goes beyond is answered 429.",
    "",
    'OAuth endpoints and `/userinfo` answer `{ "error": .., "error_description": .. }` instead, with the codes of RFC 6749,',
    "6750, 8707, 9126 and 9449 and of OpenID Connect Core; 429 and 503 are `temporarily_unavailable` there. 429 carries `Retry-After`, and so do",
    "`unavailable` and `chain_unavailable`. Scripts read them, with `Retry-After` and `X-Request-Id`, from the origins of the client's own redirect URIs at the token, revocation",
    "and userinfo endpoints; that a call names no client or an unknown one, or cannot be read, from those of any client.",
  ]);
}

if (import.meta.main) {
  for (const { path, write } of settingsPages) writeFileSync(path, write());
}
