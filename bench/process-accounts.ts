// CPU time and memory of other processes, as the kernel accounts for them (Linux).
import { readdirSync, readFileSync } from "node:fs";

/** The processes of a PostgreSQL cluster, by what they work for. */
export interface ClusterProcesses {
  /** Backends of one database. */
  readonly backends: readonly number[];
  /** Postmaster, checkpointer, WAL writer and the like: they work for whoever is being measured. */
  readonly background: readonly number[];
}

/** Nanoseconds on a CPU by process, user and system, all threads together. */
export type CpuAccounts = ReadonlyMap<number, bigint>;

/** Reads the accounts of these processes; one that is gone is left out. */
export function readCpu(pids: readonly number[]): CpuAccounts {
  return new Map(
    pids
      .map((pid) => [pid, cpuOf(pid)] as const)
      .filter((entry): entry is [number, bigint] => entry[1] !== null),
  );
}

/** Milliseconds between two readings. A process that began in between counts whole, one that ended not at all. */
export function cpuMsBetween(before: CpuAccounts, after: CpuAccounts): number {
  let nanoseconds = 0n;
  for (const [pid, spent] of after) nanoseconds += spent - (before.get(pid) ?? 0n);
  return Number(nanoseconds) / 1e6;
}

/** The first figure of `schedstat` is the time on a CPU in nanoseconds; `stat` knows the same in ticks of 10 ms. */
function cpuOf(pid: number): bigint | null {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.reduce(
      (sum, thread) =>
        sum +
        BigInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0] ?? "0"),
      0n,
    );
  } catch {
    return null;
  }
}

/** Resident memory in bytes (`VmRSS`). */
export function residentBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kib === undefined) throw new Error(`process ${pid} has no VmRSS`);
  return Number(kib) * 1024;
}

/** Process id of the parent. */
export function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
}

/** The processes whose parent is this one. */
export function childrenOf(pid: number): number[] {
  const pids = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  return pids.filter((each) => {
    try {
      return parentOf(each) === pid;
    } catch {
      return false;
    }
  });
}
