import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";
import { getAddress } from "viem";

import vectors from "../vectors/addresses.json" with { type: "json" };
import {
  addressOfSubject,
  checksumAddress,
  organizationIdentity,
  parseAddress,
  shortAddress,
  subjectOf,
} from "./address.ts";
import { anyAddress } from "../tools/generated-links.ts";

test("every spelling of an address reads as the one canonical address", () => {
  for (const { address, checksum, short, subject, spellings } of vectors.valid) {
    for (const spelling of spellings) assert.equal(parseAddress(spelling), address, spelling);
    const canonical = parseAddress(address);
    assert.ok(canonical !== null);
    assert.equal(checksumAddress(canonical), checksum);
    assert.equal(shortAddress(canonical), short);
    assert.equal(subjectOf(canonical), subject);
    assert.equal(addressOfSubject(subject), address);
  }
});

test("what is no address is not read as one", () => {
  for (const text of vectors.invalid) assert.equal(parseAddress(text), null, text);
  for (const text of vectors.invalidSubjects) assert.equal(addressOfSubject(text), null, text);
});

test("checksums are those of viem, and one wrong letter is refused", () => {
  fc.assert(
    fc.property(anyAddress, (address) => {
      const checksum = checksumAddress(address);
      assert.equal(checksum, getAddress(address));
      assert.equal(parseAddress(checksum), address);
      const at = checksum.slice(2).search(/[a-fA-F]/) + 2;
      const letter = checksum[at] ?? "";
      const turned = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
      const wrong = checksum.slice(0, at) + turned + checksum.slice(at + 1);
      const isOneCase =
        wrong.slice(2) === wrong.slice(2).toLowerCase() ||
        wrong.slice(2) === wrong.slice(2).toUpperCase();
      if (at > 1 && !isOneCase) assert.equal(parseAddress(wrong), null);
    }),
  );
});

test("an organization has the identity that its UUID implies, in any case of its letters", () => {
  for (const { uuid, identity } of vectors.organizations) {
    assert.equal(organizationIdentity(uuid), identity);
    assert.equal(organizationIdentity(uuid.toUpperCase()), identity);
  }
  assert.throws(() => organizationIdentity("01963f4e"), TypeError);
});
