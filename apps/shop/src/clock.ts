/** How long a page waits for the demo's clock before it continues with what it knows. */
const timeoutMs = 2000;

/** The time in Unix seconds: this machine's, shifted by as much as the broker's clock was moved. */
export interface Clock {
  now: () => number;
  /** Asks the broker for its time. Without `clockUrl`, as in any real shop, it does nothing. */
  refresh: () => Promise<void>;
}

export function openClock(clockUrl?: string): Clock {
  let movedSeconds = 0;
  return {
    now: () => machineNow() + movedSeconds,
    refresh: async () => {
      if (clockUrl === undefined) return;
      const brokerNow = await fetchNow(clockUrl);
      if (brokerNow !== null) movedSeconds = brokerNow - machineNow();
    },
  };
}

function machineNow(): number {
  return Math.floor(Date.now() / 1000);
}

async function fetchNow(url: string): Promise<number | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
    const { now } = (await response.json()) as { now?: unknown };
    return Number.isSafeInteger(now) ? (now as number) : null;
  } catch {
    return null;
  }
}
