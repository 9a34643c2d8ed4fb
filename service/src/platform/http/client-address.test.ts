import assert from "node:assert/strict";
import { test } from "node:test";
import {
  clientAddressOf,
  isLoopbackAddress,
  isNetwork,
  limitNetworkOf,
  networkOf,
} from "./client-address.ts";

const proxies = ["10.0.0.0/8", "2001:db8:1::/48", "192.0.2.7"];

type Row = [promise: string, peer: string, header: string | string[] | undefined, expected: string];

const rows: Row[] = [
  ["the peer without a header", "203.0.113.9", undefined, "203.0.113.9"],
  ["the peer when it is no proxy, whatever it claims", "203.0.113.9", "1.2.3.4", "203.0.113.9"],
  ["what a proxy saw", "10.1.2.3", "203.0.113.9", "203.0.113.9"],
  ["what the first proxy saw, through two", "10.1.2.3", "203.0.113.9, 192.0.2.7", "203.0.113.9"],
  ["never what the client wrote itself", "10.1.2.3", "1.1.1.1, 203.0.113.9", "203.0.113.9"],
  ["the last proxy when all are proxies", "10.1.2.3", "10.9.9.9, 192.0.2.7", "10.9.9.9"],
  ["the proxy when the header is not an address", "10.1.2.3", "unknown", "10.1.2.3"],
  ["the proxy when the header is empty", "10.1.2.3", "", "10.1.2.3"],
  ["the believed part of a broken header", "10.1.2.3", "x, 192.0.2.7", "192.0.2.7"],
  ["the same where an address is left of it", "10.1.2.3", "1.1.1.1, x, 192.0.2.7", "192.0.2.7"],
  ["repeated headers as one list", "10.1.2.3", ["1.1.1.1", "203.0.113.9"], "203.0.113.9"],
  ["an IPv4-mapped peer as IPv4", "::ffff:203.0.113.9", undefined, "203.0.113.9"],
  ["an IPv4-mapped proxy as a proxy", "::ffff:10.1.2.3", "203.0.113.9", "203.0.113.9"],
  ["an IPv4-mapped hop as IPv4", "10.1.2.3", "::ffff:cb00:7109", "203.0.113.9"],
  ["IPv6 in one spelling", "2001:DB8:0001::1", "2001:0db8:2:0:0:0:0:9", "2001:db8:2::9"],
  ["an address without its port", "10.1.2.3", "203.0.113.9:4711", "203.0.113.9"],
  ["an IPv6 address without brackets and port", "10.1.2.3", "[2a00::9]:4711", "2a00::9"],
  ["an address without its zone", "fe80::1%eth0", undefined, "fe80::1"],
  ["nothing of a peer without an address", "", "1.2.3.4", "::"],
];

for (const [promise, peer, header, expected] of rows) {
  test(`the client's address is ${promise}`, () => {
    assert.equal(clientAddressOf(peer, header, proxies), expected);
  });
}

test("no header is believed while no proxy is trusted", () => {
  assert.equal(clientAddressOf("10.1.2.3", "203.0.113.9", []), "10.1.2.3");
});

test("a proxy list with a mistake throws instead of trusting less or more", () => {
  assert.throws(() => clientAddressOf("10.1.2.3", "1.2.3.4", ["10.0.0.0/33"]), /CIDR/);
});

const networks: [address: string, near: string, limit: string][] = [
  ["203.0.113.9", "203.0.113.0/24", "203.0.113.9/32"],
  ["::ffff:203.0.113.9", "203.0.113.0/24", "203.0.113.9/32"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1::/48", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8::/48", "2001:db8::/64"],
  ["::1", "::/48", "::/64"],
  ["fe80::1:2%eth0", "fe80::/48", "fe80::/64"],
  ["64:ff9b::203.0.113.9", "64:ff9b::/48", "64:ff9b::/64"],
];

for (const [address, near, limit] of networks) {
  test(`${address} lies in ${near} and counts as ${limit}`, () => {
    assert.equal(networkOf(address), near);
    assert.equal(limitNetworkOf(address), limit);
  });
}

test("loopback is 127.0.0.0/8 and ::1, mapped or not", () => {
  const yes = ["127.0.0.1", "127.9.9.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"];
  const no = ["128.0.0.1", "::2", "localhost", "", "::ffff:10.0.0.1"];
  assert.deepEqual(
    yes.filter((address) => !isLoopbackAddress(address)),
    [],
  );
  assert.deepEqual(no.filter(isLoopbackAddress), []);
});

test("a network is an address or a CIDR block", () => {
  const yes = ["10.0.0.0/8", "10.0.0.1", "::/0", "2001:db8::/32", "::1"];
  const no = [
    "",
    "10.0.0.0/33",
    "10.0.0.0/",
    "10.0.0/8",
    "10.0.0.0/8/8",
    "::/129",
    "fe80::1%a",
    "x",
  ];
  assert.deepEqual(
    yes.filter((text) => !isNetwork(text)),
    [],
  );
  assert.deepEqual(no.filter(isNetwork), []);
});
