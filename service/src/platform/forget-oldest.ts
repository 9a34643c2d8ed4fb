/** Bounds what a process remembers: a map that has grown beyond `most` entries loses the one that was set first. */
export function forgetOldest(entries: Map<unknown, unknown>, most: number): void {
  const [oldest] = entries.keys();
  if (entries.size > most) entries.delete(oldest);
}
