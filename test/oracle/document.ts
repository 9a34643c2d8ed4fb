// Writes docs/internals/oracle.md from the table: node --conditions=source test/oracle/document.ts
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Row, Section, Target } from "./row.ts";
import { table } from "./table.ts";

export const oraclePage = join(import.meta.dirname, "../../docs/internals/oracle.md");

const goodRequests: Record<Target, string> = {
  authorize:
    "Each row changes the document's authorization request: `response_type=code`, `scope=openid offline offline_access`, `prompt=consent`, state, PKCE with S256.",
  push: "Each row changes the document's authorization request, pushed to `/oauth2/par`.",
  code: "Each row changes the exchange of a fresh code at `/oauth2/token`.",
  refresh: "Each row changes the exchange of a fresh refresh token at `/oauth2/token`.",
  machine: "Each row changes a `client_credentials` request at `/oauth2/token`.",
  userinfo: "Each row changes a call of `/userinfo` with a fresh access token.",
  introspect: "Each row changes a call of `/oauth2/introspect` with a fresh access token.",
  revoke: "Each row changes a call of `/oauth2/revoke` with a fresh access token.",
};

/** The page about the differential test. */
export function writeOraclePage(): string {
  const rows = table.flatMap((section) => section.rows);
  const differing = rows.filter(({ ours }) => ours !== undefined);
  return [
    "# The oracle",
    "",
    "Generated from the table itself by `test/oracle/document.ts`; a test compares, and sends every request to both",
    "servers: `node --conditions=source --test test/oracle/oracle.test.ts`.",
    "",
    `The login engine is our own, so the same requests are sent to another one: oidc-provider 9.13.3, with the same kinds of clients,`,
    `PKCE for all, DPoP, pushed requests and resource indicators. Of ${rows.length} requests, good and bad, both put`,
    `${rows.length - differing.length} into the same class. The other ${differing.length} differ on purpose, with the reason beside them; the sections named there`,
    "are those of the service's decisions.",
    "",
    "A class is what a client can rely on: a page that asks the user to log in, an error page, a redirect with its code or",
    "error (which must carry `state` and `iss`), the kinds of tokens, or an error's status and code. `no challenge` marks a",
    "401 without `WWW-Authenticate`.",
    ...table.flatMap(writeSection),
    "",
  ].join("\n");
}

function writeSection({ title, to, rows }: Section): string[] {
  return [
    "",
    `## ${title}`,
    "",
    goodRequests[to],
    "",
    "| Request | oidc-provider | svc | Why they differ |",
    "|---|---|---|---|",
    ...rows.map(writeRow),
  ];
}

function writeRow({ name, theirs, ours, reason }: Row): string {
  const cells = [name, theirs, ours ?? "the same", reason ?? ""];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

if (import.meta.main) writeFileSync(oraclePage, writeOraclePage());
