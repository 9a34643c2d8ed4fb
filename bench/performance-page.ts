import { readFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import type { Result } from "./login.ts";
import { cellsOf, columnNames, type Row } from "./row.ts";

export function machineText(postgresVersion: string): string {
  const [first] = cpus();
  const release =
    /^PRETTY_NAME="?([^"\n]+)"?$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "Linux";
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const database = postgresVersion === "" ? "" : `, PostgreSQL ${postgresVersion}`;
  return `${cpus().length} x ${first?.model.trim() ?? "CPU"}, ${memory}, ${release}, Node ${process.versions.node}${database}`;
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

/** The rows as a table of Markdown. */
export function markdownTable(rows: readonly Row[], names: readonly string[]): string {
  return [
    line(names),
    line(["---", "---:", "---:", "---:", "---", "---"]),
    ...rows.map((row) => line(cellsOf(row))),
  ].join("\n");
}

/** The reference page: command, table, machine, and how each figure came about. */
export function performancePage({ rows, postgresVersion }: Result): string {
  return `# Performance

Written by \`npm run bench -- login --write\`; run it to get the figures of your machine.

![CPU per operation of the service and of oidc-provider](performance-login.svg)

${markdownTable(rows, columnNames)}

Machine: ${machineText(postgresVersion)}.

## How it is measured

- The service and oidc-provider 9.13.3 each run as one process, the service as \`npm run svc\` starts it (a young
  generation of 4 MiB a half, two arenas of malloc), oidc-provider with Node's own settings, with databases of their own in
  one PostgreSQL with the service's durable settings, and ten connections each, by the same driver with named prepared
  statements.
- \`ms\` are milliseconds on a CPU per operation, user and system, all threads, as the kernel accounts for the process
  (\`/proc/<pid>/task/*/schedstat\`). The load comes from another process and is not counted. Each figure is the median of
  three rounds; in a round both sides take turns batch by batch, and who begins changes.
- Both answer the same authorization request with PKCE and \`prompt=consent\`, show a page of the same length with a drawn
  QR code, and issue an RS256 id token, an RS256 JWT access token for the asked audience, and a rotating refresh token.
- The load takes no gzip, so neither side packs its page. For a browser the service does, which costs some 0.07 ms more; what
  stands before oidc-provider would have to.
- *Authorize to token* is authorization request, page, release of the code and token request. At the service the wallet's
  part (claim, request object, verification, approval) is measured apart. oidc-provider has no wallet: its page's form
  approves, and that is part of its figure, because without it the library releases no code. *Everything of a login together*
  counts all requests of both sides.
- oidc-provider is set up as in production: clients come from the database and are kept in memory,
  accounts with their claims lie in a table and are found by one statement, login and consent are one answer, the grant is
  written once. With fixed clients and no account table it would make 13 database calls a login instead of 16, and be
  cheaper. Its introspection and userinfo take opaque tokens, because it refuses its own JWTs there.
- Two RS256 signatures of 2048 bits are part of each login and refresh of both sides. They cost both the same, and bound
  the ratio of a refresh; a row of floors has what they cost on this machine.
- A *floor* has no code of ours: a bare \`node:http\` server that answers with the bytes of our JWKS, and the two signatures of a
  refresh, made and nothing else. Half of the peer's figure is near its floor, or below it, in both rows; runs differ by up to
  a third.
- *PostgreSQL* is the CPU of the backends of that database and of the cluster's background processes.
- Rows without a verdict depend on the clock on the wall, and so on whatever else the machine does; their aim is in brackets.
`;
}
