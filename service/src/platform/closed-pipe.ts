/**
 * Lets this process go on when whoever reads its output goes, as `head` does: what a verb changed stays changed, and a
 * service has more to do than to write.
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
}
