import { Client } from "pg";
import { socketPort } from "./embedded-postgres-files.ts";

/** A connection to the server, for `pg`: `host` is the directory of its Unix socket. The user is a superuser. */
export interface Connection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Explicit: otherwise the driver would read `PGSSLMODE` and the like, which are meant for another server. */
  readonly ssl: false;
  readonly sslnegotiation: "postgres";
  /** An empty text would count as not given. */
  readonly options: string;
}

export const user = "svc";
/** Pause between two looks at something that another process is about to do. */
export const retryEveryMs = 50;

export function connectionTo(host: string, password: string): Connection {
  const place = { host, port: socketPort, user, password, database: "postgres" };
  return { ...place, ssl: false, sslnegotiation: "postgres", options: "-c timezone=UTC" };
}

const absentCodes = new Set(["ENOENT", "ENOTDIR", "ECONNREFUSED"]);

/** cannot_connect_now, admin_shutdown, and connections that a stopping server drops. */
const busyCodes = new Set(["57P03", "57P01", "ECONNRESET", "EPIPE"]);

/** `busy`: it is about to start or stop. @throws Error when it answers and refuses for another reason. */
export async function tryConnection(connection: Connection): Promise<"ready" | "busy" | "absent"> {
  const client = new Client({ ...connection, connectionTimeoutMillis: 10_000 });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.end();
    return "ready";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "none";
    if (absentCodes.has(code)) return "absent";
    if (
      busyCodes.has(code) ||
      (error instanceof Error && error.message.startsWith("Connection terminated"))
    )
      return "busy";
    throw error;
  }
}
