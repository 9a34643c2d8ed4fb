/**
 * Lets this process continue when nobody reads its output: what a verb has changed stays changed, and a service has
 * more to do than to write. A reader may close the pipe, as `head` does. But if a result is lost in another way, as on
 * a full disk, or cannot be shown again, the exit status says so.
 *
 * @param isToldOnce whether what is being written cannot be shown again
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
