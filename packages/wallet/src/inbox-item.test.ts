import assert from "node:assert/strict";
import { test } from "node:test";

import { businessCategory } from "@svc/protocol";

import { readInboxItem } from "./inbox-item.ts";
import { dataRequestItem } from "../test/fake-business.ts";

const isRead = (changed: Record<string, unknown>): boolean =>
  readInboxItem({ ...dataRequestItem, ...changed }) !== null;

test("a data request names each field once, and what was fixed is among its optional ones", () => {
  assert.ok(isRead({}));
  assert.ok(isRead({ fixedOptional: ["BUSINESS_LEI"] }));
  for (const changed of [
    { required: ["BUSINESS_LEGAL_NAME", "BUSINESS_LEGAL_NAME"] },
    { optional: ["BUSINESS_LEI", "BUSINESS_LEI"] },
    { optional: ["BUSINESS_LEGAL_NAME"] },
    { fixedOptional: ["BUSINESS_LEI", "BUSINESS_TRADE_NAME"] },
    { fixedOptional: ["BUSINESS_LEGAL_NAME"] },
  ])
    assert.ok(!isRead(changed), JSON.stringify(changed));
});

test("an item is what its category says, and the request that its id says", () => {
  for (const category of [...Object.values(businessCategory), "2", undefined])
    assert.equal(isRead({ category }), category === businessCategory.data, String(category));
  for (const requestId of ["01K", "", undefined]) assert.ok(!isRead({ requestId }));
});

test("a text that has no bytes, and a time that no signature holds, are not approved", () => {
  for (const changed of [
    { purpose: "half \ud83d" },
    { purpose: "" },
    { audience: "\udc00" },
    { expiresAt: 253_402_300_800 },
    { validUntil: 2 ** 48 },
    { epoch: -1 },
    { epoch: 1.5 },
  ])
    assert.ok(!isRead(changed), JSON.stringify(changed));
});
