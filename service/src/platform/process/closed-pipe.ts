/**
 * Lets this process go on when nobody takes its output: what a verb changed stays changed, and a service has more to do
 * than to write. A reader may leave, as `head` does; where a result is lost in another way, as on a full disk, the exit
 * status says so.
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", ({ code }: NodeJS.ErrnoException) => {
      if (code === "EPIPE") return;
      process.once("exit", () => (process.exitCode = 1));
      if (stream === process.stdout)
        process.stderr.write(
          `svc: what was done stands, but its result cannot be written (${code})\n`,
        );
    });
  }
}
