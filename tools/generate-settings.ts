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
    "Generated from `service/src/platform/config/config.ts` by `tools/generate-settings.ts`; a test keeps it current.",
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
    "Generated from `service/src/platform/http/problems.ts` by `tools/generate-settings.ts`; a test keeps it current.",
    "",
    "A refused call answers this envelope:",
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
    "- Branch on `reason`, which never changes; `message` is for people and may say more than here.",
    "- Quote `requestId` when you ask about a call; it is also in the header `X-Request-Id`.",
    "- OAuth endpoints and `/userinfo` answer [another form](#oauth-endpoints).",
    "",
    ...table(["Status", "Reason", "Message", "What to do"], rows),
    "",
    ...limitLines(),
    "",
    ...headerLines(),
  ]);
}

/** What a caller may send and have at most. */
function limitLines(): string[] {
  return [
    "## Sizes of bodies",
    "",
    "A body that is longer is refused as `body_too_large`:",
    "",
    ...table(
      ["Body", "At most"],
      [
        ["any not named here", "64 KiB"],
        ["documents to sign and their offers", "160 KiB"],
        ["`valid` of businesses", "256 KiB"],
        ["the mailbox", "257 KiB"],
        ["`/w/chain`", "512 KiB"],
        ["records of businesses", "4 MiB"],
        ["credentials, `/api/v1/blockchain/valid`, the relay and answers to orders", "8 MiB"],
      ],
    ),
    "",
    "## Numbers of things",
    "",
    "One more than these is refused as `too_many`:",
    "",
    ...table(
      ["Owner", "At most"],
      [
        ["an organization", "100 client domains, 100 live API keys, 200 members"],
        ["a client domain", "100 packages, 100 clients that are not disabled"],
        ["an issuer", "20 live keys"],
        ["a user", "20 boxes in the mailbox, 20 foundings that wait for signatures"],
        [
          "a business",
          "20 open proposals, 5 of one member, whose first is always taken; one announced move",
        ],
      ],
    ),
    "",
    "Domains and packages cannot be removed.",
    "",
    "## Rates",
    "",
    "Beyond a rate, a call is answered 429 with `Retry-After`. Answers to an API key say in `RateLimit-Policy` and `RateLimit`",
    "(draft-ietf-httpapi-ratelimit-headers-10) how many calls may come at once (`q`) and how many are left (`r`).",
    "",
    "Each process also counts what is under way at once, and answers 429 beyond:",
    "",
    ...table(
      ["Caller", "At most under way"],
      [
        ["a network", "16 bodies of more than 64 KiB"],
        [
          "a client domain",
          "4 lists of events and attestations; more of these wait up to ten seconds",
        ],
        [
          "a network",
          "4 lists of a wallet, and 4 calls of `/w/chain`; more of these wait up to ten seconds",
        ],
      ],
    ),
  ];
}

/** What refusals say beside the envelope, and OAuth endpoints in its place. */
function headerLines(): string[] {
  return [
    "## Headers of refusals",
    "",
    '- **401** has `WWW-Authenticate`: `ApiKey realm="svc"` where the route takes a key, which stands in `Authorization` as it is, and',
    '  `Bearer realm="svc"` where it takes a wallet session.',
    "- **429**, `unavailable` and `chain_unavailable` carry `Retry-After`.",
    "",
    "## OAuth endpoints",
    "",
    'OAuth endpoints and `/userinfo` answer `{ "error": .., "error_description": .. }` instead, with the codes of RFC 6749, 6750, 8707,',
    "9126 and 9449 and of OpenID Connect Core. 429 and 503 are `temporarily_unavailable` there.",
    "",
    "At the token, revocation and userinfo endpoints, scripts of the client's own redirect URIs' origins can read an error, with",
    "`Retry-After` and `X-Request-Id`. Where a call names no client or an unknown one, or cannot be read, scripts of any client's origins can.",
  ];
}

if (import.meta.main) {
  for (const { path, write } of settingsPages) writeFileSync(path, write());
}
