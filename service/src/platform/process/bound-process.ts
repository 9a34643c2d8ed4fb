import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** An unprivileged user of this machine, by number; absent where this process runs everything as itself. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** A child that ends together with this process, whatever ends this process (even `kill -9`). */
export interface BoundProcess {
  /** Settles when the child and everything that holds its output are gone; the exit status, 128 + n after signal n. */
  readonly exited: Promise<number>;
  /** SIGINT, after 10 s SIGQUIT, each once a second, after 20 s SIGKILL; settles with {@link exited}. */
  stop(): Promise<number>;
  /** Lets this process end while the child runs; the child is then stopped by the closing pipe. */
  unref(): void;
}

const killAfterMs = 20_000;
const commandPath = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/**
 * Stands between this process and the child. Only this process holds the write end of fd 3, so the kernel closes it
 * whenever this process ends, and the reader wakes up. `trap` keeps the signals of a terminal or a service manager from
 * ending the shell before the child. A background command reads /dev/null, hence the detour over fd 3. It also begins
 * with SIGINT and SIGQUIT ignored: a signal that comes before the child handles them is lost, so each is sent again every
 * second, and SIGKILL is the last resort.
 */
const watch = `
trap '' HUP INT TERM
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
{
  while read -r _; do :; done <&3
  for signal in INT QUIT KILL; do
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      kill "-$signal" "$child" || exit
      sleep 1 3<&-
    done
  done
} >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$child"
status=$?
kill -KILL "$watcher"
wait "$watcher" 2>/dev/null
exit "$status"
`;

/**
 * Starts `command` (an absolute path and its arguments) below a shell that stops it when this process ends.
 *
 * The child's environment holds only a locale, a path and what is given, so that no secret of this process reaches the
 * child.
 *
 * @param options.account whom it runs as; `null` for the user of this process
 * @param options.log receives each line of its output
 */
export function startBoundProcess(
  command: readonly string[],
  options: {
    account: Account | null;
    log: (line: string) => void;
    environment?: Record<string, string>;
  },
): BoundProcess {
  const child = spawn("/bin/sh", ["-c", watch, "sh", ...command], {
    cwd: "/",
    // Its own session: Ctrl-C in a terminal must reach this process only, which then stops the child in good order.
    detached: true,
    env: { LC_ALL: "C", PATH: commandPath, ...options.environment },
    stdio: ["pipe", "pipe", "pipe"],
    ...options.account,
  });
  const { promise: exited, resolve, reject } = Promise.withResolvers<number>();
  // A failure is reported to code that awaits `exited`, but nobody has to.
  exited.catch(() => undefined);
  child.on("error", reject);
  child.on("close", (code) => resolve(code ?? 137));
  // They are undefined, whatever the types say, if no file descriptor was left for them; then only `error` is emitted.
  const { stdin, stdout, stderr }: Partial<typeof child> = child;
  for (const output of [stdout, stderr])
    if (output !== undefined) createInterface(output).on("line", options.log);
  // The pipe breaks when the shell goes first; `exited` reports that.
  stdin?.on("error", () => undefined);
  const handles = [child, stdout, stderr, stdin].filter(
    (each) => each !== undefined,
  ) as unknown as {
    ref(): void;
    unref(): void;
  }[];
  return {
    exited,
    async stop() {
      for (const handle of handles) handle.ref();
      stdin?.destroy();
      const timer = setTimeout(() => killGroup(child.pid), killAfterMs);
      try {
        return await exited;
      } finally {
        clearTimeout(timer);
      }
    },
    unref() {
      for (const handle of handles) handle.unref();
    },
  };
}

function killGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, "SIGKILL");
  } catch {
    // Already gone.
  }
}
