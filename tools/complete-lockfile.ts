// `npm run lock`: writes package-lock.json, complete for every platform, and good for the npm of any Node.
//
// Tools with native parts list one optional package for each platform. A registry mirror may lack those of platforms it does
// not serve; npm then leaves them out of the lock file, and `npm ci` refuses a lock file that lacks them. On every other
// platform `npm ci` is content with an entry that has neither address nor hash; on its own it would install the package
// without a check. So npm is asked again for entries without a hash, and `tools/tidy.test.ts` accepts none.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addMissing, type Lock, withoutEngines, withoutUnpinned } from "./lock-entries.ts";

const path = join(import.meta.dirname, "../package-lock.json");

function readLock(): Lock {
  return JSON.parse(readFileSync(path, "utf8")) as Lock;
}

function writeLock(lock: Lock): void {
  const sorted = Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const text = JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2);
  writeFileSync(path, `${text}\n`);
}

writeLock(withoutUnpinned(readLock()));
execFileSync("npm", ["install", "--package-lock-only", "--ignore-scripts", "--no-audit"], {
  stdio: "inherit",
});
const lock = readLock();
const added = addMissing(lock);
writeLock(withoutEngines(lock));
console.log(`${added.length} entries for other platforms without a hash`);
