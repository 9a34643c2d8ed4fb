import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRecord, type Hex } from "@svc/protocol";
import { call, membersOf } from "../transport.ts";

/** What the wallet takes from `DATA_DIR/demo.json`, which a first `npm start` writes. */
export interface DemoWorld {
  readonly baseUrl: string;
  /** Private keys by name. */
  readonly identities: ReadonlyMap<string, { readonly address: string; readonly privateKey: Hex }>;
}

/** Null if there is no demo world. @throws if the file does not describe one */
export function readDemoWorld(dataDirectory: string): DemoWorld | null {
  const path = join(dataDirectory, "demo.json");
  if (!existsSync(path)) return null;
  const { baseUrl, identities } = membersOf(readFileSync(path, "utf8"));
  if (typeof baseUrl !== "string" || !isRecord(identities))
    throw new Error(`${path} is not a demo world`);
  const entries = Object.entries(identities).flatMap(([name, identity]) => {
    const { address, privateKey } = isRecord(identity) ? identity : {};
    if (typeof address !== "string" || typeof privateKey !== "string") return [];
    return [[name, { address, privateKey: privateKey as Hex }] as const];
  });
  return { baseUrl, identities: new Map(entries) };
}

/**
 * The time: that of a demo running on this machine, whose clock can be moved, or else this machine's.
 *
 * @returns a clock of Unix seconds that asks the demo once, when it is first read
 */
export function openClock(demo: DemoWorld | null): () => Promise<number> {
  const isLocal =
    demo !== null && ["localhost", "127.0.0.1", "[::1]"].includes(new URL(demo.baseUrl).hostname);
  if (!isLocal) return async () => machineNow();
  let offset: Promise<number> | null = null;
  const askOffset = async (): Promise<number> => {
    try {
      const { text } = await call(fetch, { url: `${demo.baseUrl}/health/ready` });
      const { now } = membersOf(text);
      return typeof now === "number" && Number.isSafeInteger(now) ? now - machineNow() : 0;
    } catch {
      // A demo that does not run has no time of its own.
      return 0;
    }
  };
  return async () => {
    offset ??= askOffset();
    return machineNow() + (await offset);
  };
}

function machineNow(): number {
  return Math.floor(Date.now() / 1000);
}
