import { write, writeSync } from "node:fs";

/** Lines are collected for this long and written together: one write per line would cost as much as a small request. */
const gatherMs = 20;
/** The most characters that wait for a slow reader. */
const waitingMax = 4 * 1024 * 1024;
const pauseMs = 20;
/** The time that a reader has at the end of the process to read the rest. */
const lastMs = 1000;

/**
 * Writes log lines to an open file in the background: the work neither waits for them nor fails because of them. Lines
 * that a full disk does not accept are lost, and so are unread lines beyond 4 MiB. At its end the process waits for a
 * reader for one second; a process that is forced to end at once may lose what a slow reader was about to read.
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
