// In which order a run begins its test files. Pure.

/** Files that take long: they open whole worlds, and wait for browsers and for processes that they start and kill. */
const longest = /^(?:contracts|test|tools)\//;

/** Files with similar names wait for the same things: multiples of the golden ratio keep neighbours apart. */
function scatter(all: readonly string[]): string[] {
  return all
    .map((file, at) => ({ file, place: (at * 0.618_034) % 1 }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ file }) => file);
}

/**
 * The order in which files are begun: the long ones spread over the first two thirds. At once they would leave the
 * processors idle, and begun last they would run when the other processes are done.
 */
export function spread(all: readonly string[]): string[] {
  const long = scatter(all.filter((file) => longest.test(file)));
  const short = scatter(all.filter((file) => !longest.test(file)));
  const step = Math.floor((short.length * 2) / 3 / Math.max(long.length, 1));
  const mixed = long.flatMap((file, at) => [file, ...short.slice(at * step, (at + 1) * step)]);
  return [...mixed, ...short.slice(long.length * step)];
}
