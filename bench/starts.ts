import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeHome } from "./cluster.ts";
import type { Row } from "./row.ts";
import { portSettings, startService, stopService } from "./service-party.ts";

/** Wall time until the service answers: on an empty machine with its embedded database, then on what that left. */
export async function benchStarts(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), "svc-bench-start-"));
  await chmod(directory, 0o711);
  try {
    const first = await startOnce(directory);
    const second = await startOnce(directory);
    return [
      {
        name: "first start (wall)",
        unit: "s",
        ours: first / 1000,
        peer: null,
        target: { kind: "printed", aim: 5 },
      },
      {
        name: "start on an existing database (wall)",
        unit: "s",
        ours: second / 1000,
        peer: null,
        target: { kind: "printed", aim: 2 },
      },
    ];
  } finally {
    await removeHome(join(directory, "postgres"));
    await rm(directory, { recursive: true, force: true });
  }
}

async function startOnce(directory: string): Promise<number> {
  const { DATABASE_URL: _, ...inherited } = process.env;
  const { child, startMs } = await startService({
    ...inherited,
    DATA_DIR: directory,
    ...(await portSettings()),
    LOG_LEVEL: "warn",
  });
  await stopService(child);
  return startMs;
}
