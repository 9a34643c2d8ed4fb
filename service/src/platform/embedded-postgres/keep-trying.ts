import { setTimeout as delay } from "node:timers/promises";
import { FailureStreak } from "../telemetry/repetition.ts";

type Say = (line: string) => void;

/** The log of a try that lasts longer is passed on at once: it may recover for hours. */
const heldBackMs = 60_000;

/**
 * Starts the server again until it runs. Tries that fail in the same way, as while the disk is full, are logged once a
 * minute, with what the server said.
 *
 * @returns null if it was given up before
 */
export async function keepTrying<Server>(
  start: (say: Say) => Promise<Server>,
  { log, over, everyMs }: { log: Say; over: AbortSignal; everyMs: number },
): Promise<Server | null> {
  const failures = new FailureStreak();
  while (!over.aborted) {
    const said = failures.count === 0 ? null : heldBack(log);
    try {
      const server = await start(said?.say ?? log);
      said?.letGo();
      return server;
    } catch (error) {
      if (over.aborted) return null;
      const reason = String(error);
      // The process id differs with each try, and must not make the same reason look new.
      if (failures.add(reason.replaceAll(/\bPID \d+/g, "")))
        log(`the embedded PostgreSQL does not start again${timesOf(failures)}: ${reason}`);
      await delay(everyMs, undefined, { ref: false });
    }
  }
  return null;
}

const timesOf = ({ count }: FailureStreak): string => (count > 1 ? `, ${count} times` : "");

/** Keeps lines back until it is clear that the server runs: the message of a failed try has them anyway. */
function heldBack(log: Say): { readonly say: Say; letGo(): void } {
  const startedMs = performance.now();
  const lines: string[] = [];
  const letGo = (): void => lines.splice(0).forEach((line) => log(line));
  let isRunning = false;
  return {
    say(line) {
      lines.push(line);
      if (isRunning || performance.now() - startedMs > heldBackMs) letGo();
    },
    letGo() {
      isRunning = true;
      letGo();
    },
  };
}
