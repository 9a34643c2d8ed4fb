import assert from "node:assert/strict";
import { test } from "node:test";
import { shareOfCap, spend, spendOnBump, takeWithinCap } from "./spending-cap.ts";

const now = 1_000_000;
const today = Math.floor(now / 86_400);
const paid = (wei: bigint) => ({ kind: "kyc.initiate", wei });
const unpaid = (wei: bigint) => ({ kind: "business.create", wei });

test("a day's spending ends at the cap, and starts again with the next day", () => {
  const day = today;
  const limits = { now, capWei: 100n, unpaidCapWei: 50n };
  const spent = { day, wei: 60n, unpaidWei: 10n };
  assert.deepEqual(spend(spent, paid(40n), limits), { ...spent, wei: 100n });
  assert.equal(spend(spent, paid(41n), limits), null);
  const anew = { day, wei: 41n, unpaidWei: 0n };
  assert.deepEqual(spend({ ...spent, day: day - 1 }, paid(41n), limits), anew);
  const ahead = { ...spent, day: day + 1 };
  assert.equal(spend(ahead, paid(41n), limits), null, "another process is ahead");
  assert.deepEqual(spend(ahead, paid(40n), limits), { ...ahead, wei: 100n });
  assert.deepEqual(spend({ ...spent, day: day + 2 }, paid(41n), limits), anew);
  assert.deepEqual(spend(spent, paid(0n), { ...limits, capWei: 0n }), spent);
});

test("transactions that nobody is charged for end at their share of the day's cap, and at the cap", () => {
  const day = today;
  const limits = { now, capWei: 100n, unpaidCapWei: 50n };
  const spent = { day, wei: 60n, unpaidWei: 20n };
  assert.deepEqual(spend(spent, unpaid(30n), limits), { day, wei: 90n, unpaidWei: 50n });
  assert.equal(spend(spent, unpaid(31n), limits), null);
  assert.equal(spend({ ...spent, wei: 71n }, unpaid(30n), limits), null);
  assert.deepEqual(spend({ ...spent, day: day - 1 }, unpaid(50n), limits), {
    day,
    wei: 50n,
    unpaidWei: 50n,
  });
});

test("foundings and acts of businesses, and credentials, have half of a day, everything else has all of it", () => {
  const acts = ["create", "govern", "keep", "remove"].map((act) => `business.${act}`);
  for (const kind of [...acts, "credential.attest", "credential.revoke"])
    assert.equal(shareOfCap(kind, 100n), 50n, kind);
  for (const kind of ["kyc.initiate", "registry.distrust", "contract.deploy", "nonce.fill"])
    assert.equal(shareOfCap(kind, 100n), 100n, kind);
});

const nothing = { day: today, wei: 0n, unpaidWei: 0n };

test("a transaction that does not fit into the day does not delay later ones", () => {
  const due = [
    { kind: "kyc.initiate", wei: 60n },
    { kind: "business.create", wei: 51n },
    { kind: "kyc.confirm", wei: 41n },
    { kind: "business.create", wei: 40n },
  ];
  const limits = { spent: nothing, now, capWei: 100n };
  const { taken, waiting, spent } = takeWithinCap(due, ({ wei }) => wei, limits);
  assert.deepEqual(taken, [due[0], due[3]]);
  assert.deepEqual(waiting, [due[1], due[2]]);
  assert.deepEqual(spent, { day: today, wei: 100n, unpaidWei: 40n });
});

test("a higher fee takes from the whole cap, also for what nobody is charged for", () => {
  const limits = { now, capWei: 100n };
  assert.deepEqual(spendOnBump(nothing, unpaid(80n), limits), {
    day: today,
    wei: 80n,
    unpaidWei: 80n,
  });
  assert.equal(spendOnBump(nothing, unpaid(101n), limits), null);
});
