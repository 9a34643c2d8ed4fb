import { write, writeSync } from "node:fs";

/** Lines are gathered for this long and written together: a write for each would cost as much as a small request. */
const gatherMs = 20;
/** Characters that wait for a slow reader. */
const waitingMax = 4 * 1024 * 1024;
const pauseMs = 20;
/** What a reader gets at the end of the process to take the rest. */
const lastMs = 1000;

/**
 * Writes log lines to an open file beside the work, which neither waits for them nor ends because of them: lines that a
 * full disk does not take are lost, and so are those beyond 4 MiB that nobody reads. The end of the process waits for a
 * reader for one second; one that is made to end at once may lose what a slow reader was just taking.
 */
export function openLogOutput(fd: number): { write(line: string): void } {
  let waiting = "";
  let isBusy = false;
  let refused: Uint8Array = new Uint8Array();
  const gather = (): void => {
    isBusy = waiting !== "";
    if (isBusy) setTimeout(sendWaiting, gatherMs).unref();
  };
  const sendWaiting = (): void => {
    const bytes = Buffer.from(waiting);
    waiting = "";
    send(bytes);
  };
  const send = (bytes: Uint8Array): void => {
    refused = new Uint8Array();
    write(fd, bytes, (error, count) => {
      if (error?.code === "EAGAIN") {
        refused = bytes;
        setTimeout(send, pauseMs, bytes).unref();
      } else if (error === null && count < bytes.length) send(bytes.subarray(count));
      else gather();
    });
  };
  process.once("exit", () => writeRest(fd, Buffer.concat([refused, Buffer.from(waiting)])));
  return {
    write(line) {
      if (waiting.length + line.length > waitingMax) return;
      waiting += line;
      if (!isBusy) gather();
    },
  };
}

function writeRest(fd: number, rest: Uint8Array): void {
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  const end = performance.now() + lastMs;
  let at = 0;
  while (at < rest.length) {
    try {
      at += writeSync(fd, rest, at);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "EAGAIN" || performance.now() > end) return;
      Atomics.wait(nothing, 0, 0, pauseMs);
    }
  }
}
