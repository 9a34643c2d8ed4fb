/**
 * Lets this process go on when its output is not taken: what a verb changed stays changed, and a service has more to do
 * than to write. A reader may go, as `head` does; where a result is lost otherwise, as on a full disk, nobody is to
 * take it for written.
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
