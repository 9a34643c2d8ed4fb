import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { patienceMs } from "../../../../test/patience.ts";
import {
  answering,
  fakeInternet,
  get,
  open,
  openReceiver,
  publicAddress,
} from "./test-receivers.ts";

/** Sends twice: while the process has no descriptor left, and when it has some again. */
const script = `
  const { closeSync, openSync } = await import("node:fs");
  const { createOutbound } = await import(${JSON.stringify(import.meta.resolve("./outbound.ts"))});
  const outbound = createOutbound({ profile: "dev", ownHosts: [] });
  const request = { method: "GET", url: "https://127.0.0.1/", timeoutMs: 60_000, responseBytesMax: 0 };
  const send = async () => outbound.send(request).then(({ reason }) => reason, () => "threw");
  const taken = [];
  try {
    for (;;) taken.push(openSync("/dev/null"));
  } catch {}
  const first = await send();
  for (const descriptor of taken) closeSync(descriptor);
  process.stdout.write(first + " " + (await send()));
`;

test("a request that could not be made for want of descriptors keeps none from being made later", async () => {
  const limited = 'ulimit -n 100 && exec "$0" --conditions=source --input-type=module --eval "$1"';
  const args = ["-c", limited, process.execPath, script];
  const { stdout } = await promisify(execFile)("/bin/sh", args, { timeout: patienceMs });
  assert.equal(stdout, "threw blocked");
});

function standStill(): void {
  const end = performance.now() + 300;
  while (performance.now() < end);
}

/** A name with a second address where nobody listens. */
function addressOf(address: string): string {
  if (address !== publicAddress) return "::1";
  // Once the connection is on its way.
  setImmediate(standStill);
  return "127.0.0.1";
}

test("an address that accepts is not given up because this process stood still meanwhile", async (t) => {
  const receiver = await openReceiver(t, (_request, response) => response.end());
  const outbound = open(t, "production", {
    resolve: answering([publicAddress, "2606:4700::1111"]),
    connect: { ...fakeInternet(), addressOf },
  });
  assert.equal((await outbound.send(get(receiver.url))).kind, "answered");
});
