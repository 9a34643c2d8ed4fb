/**
 * Lets this process go on when nobody takes its output: what a verb changed stays changed, and a service has more to do
 * than to write. A reader may leave, as `head` does; where a result is lost in another way, as on a full disk, or is told
 * once, the exit status says so.
 *
 * @param isToldOnce whether what is being written cannot be asked for again
 */
export function outliveReaders(isToldOnce: () => boolean = () => false): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", ({ code }: NodeJS.ErrnoException) => {
      if (code === "EPIPE" && !isToldOnce()) return;
      process.once("exit", () => (process.exitCode = 1));
      if (stream === process.stdout)
        process.stderr.write(
          `svc: what was done stands, but its result cannot be written (${code})\n`,
        );
    });
  }
}
