import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { isPublicAddress, isPublicName, parsePublicUrl } from "./address-policy.ts";

const production = { profile: "production", ownHosts: ["login.example.com"] } as const;
const dev = { profile: "dev", ownHosts: ["localhost:4000", "login.example.com"] } as const;

const outcome = (text: string, options: Parameters<typeof parsePublicUrl>[1]): string => {
  const result = parsePublicUrl(text, options);
  return "refused" in result ? result.refused : result.href;
};

const refused: readonly (readonly [string, string])[] = [
  // Not a URL, or one the parser would silently repair
  ["", "malformed"],
  ["hooks.example.com/in", "malformed"],
  ["//hooks.example.com/in", "malformed"],
  ["https:hooks.example.com", "malformed"],
  ["https:/hooks.example.com", "malformed"],
  ["https:///hooks.example.com", "malformed"],
  ["https:\\\\hooks.example.com\\in", "malformed"],
  ["https://hooks.example.com\\@login.example.com/", "malformed"],
  [" https://hooks.example.com/", "malformed"],
  ["https://hooks.example.com/ ", "malformed"],
  ["https://hooks.exa\tmple.com/", "malformed"],
  ["https://hooks.exa\nmple.com/", "malformed"],
  ["https://hooks.example.com/\r\nx-injected: 1", "malformed"],
  ["https://hooks.example.com/\u0000", "malformed"],
  ["https://hooks.example.com/\u00a0", "malformed"],
  ["https://", "malformed"],
  ["https://?q", "malformed"],
  ["https://:443/", "malformed"],
  ["https://a b.example.com/", "malformed"],
  ["https://hooks.example.com:99999/", "malformed"],
  ["https://hooks.example.com:x/", "malformed"],
  ["https://%00.example.com/", "malformed"],
  [`https://hooks.example.com/${"a".repeat(2048)}`, "too_long"],
  // Schemes
  ["http://hooks.example.com/in", "scheme"],
  ["HTTP://hooks.example.com/in", "scheme"],
  ["ftp://hooks.example.com/", "scheme"],
  ["ws://hooks.example.com/", "scheme"],
  ["wss://hooks.example.com/", "scheme"],
  ["file:///etc/passwd", "scheme"],
  ["gopher://hooks.example.com:6379/_", "scheme"],
  ["javascript:alert(1)", "scheme"],
  ["data:text/plain,x", "scheme"],
  ["blob:https://hooks.example.com/1", "scheme"],
  ["http://localhost:4001/", "scheme"],
  ["http://127.0.0.1:4001/", "scheme"],
  // Userinfo and fragment
  ["https://user@hooks.example.com/", "userinfo"],
  ["https://user:secret@hooks.example.com/", "userinfo"],
  ["https://@hooks.example.com/", "userinfo"],
  ["https://:@hooks.example.com/", "userinfo"],
  ["https://hooks.example.com@127.0.0.1/", "userinfo"],
  ["https://hooks.example.com/#part", "fragment"],
  ["https://hooks.example.com/#", "fragment"],
  ["https://hooks.example.com#@127.0.0.1/", "fragment"],
  // IP literals, in every notation the parser knows
  ["https://127.0.0.1/", "ip_literal"],
  ["https://127.0.0.1./", "ip_literal"],
  ["https://8.8.8.8/", "ip_literal"],
  ["https://10.0.0.1:8443/", "ip_literal"],
  ["https://2130706433/", "ip_literal"],
  ["https://0x7f000001/", "ip_literal"],
  ["https://0X7F.0.0.1/", "ip_literal"],
  ["https://0x7f.1/", "ip_literal"],
  ["https://017700000001/", "ip_literal"],
  ["https://0177.0.0.1/", "ip_literal"],
  ["https://127.1/", "ip_literal"],
  ["https://127.0.1/", "ip_literal"],
  ["https://0/", "ip_literal"],
  ["https://0x/", "ip_literal"],
  ["https://169.254.169.254/latest/meta-data/", "ip_literal"],
  ["https://%31%32%37.0.0.1/", "ip_literal"],
  ["https://127%2e0%2e0%2e1/", "ip_literal"],
  ["https://１２７.０.０.１/", "ip_literal"],
  ["https://①②⑦.⓪.⓪.①/", "ip_literal"],
  ["https://127。0。0。1/", "ip_literal"],
  ["https://127．0．0｡1/", "ip_literal"],
  ["https://127.0.0\u00ad.1/", "ip_literal"],
  ["https://[::1]/", "ip_literal"],
  ["https://[::]/", "ip_literal"],
  ["https://[::ffff:127.0.0.1]/", "ip_literal"],
  ["https://[::ffff:7f00:1]/", "ip_literal"],
  ["https://[::127.0.0.1]/", "ip_literal"],
  ["https://[64:ff9b::7f00:1]/", "ip_literal"],
  ["https://[fe80::1]/", "ip_literal"],
  ["https://[fd00:ec2::254]/", "ip_literal"],
  ["https://[2606:4700::1111]:8443/", "ip_literal"],
  ["https://[0:0:0:0:0:0:0:1]/", "ip_literal"],
  // Numbers that only look like an address do not become names
  ["https://256.0.0.1/", "malformed"],
  ["https://1.2.3.4.5/", "malformed"],
  ["https://hooks.example.123/", "malformed"],
  ["https://hooks.example.0x7f/", "malformed"],
  ["https://[fe80::1%25eth0]/", "malformed"],
  ["https://[::1/", "malformed"],
  ["https://[v1.a]/", "malformed"],
  // Names that are not public
  ["https://localhost/", "not_public_name"],
  ["https://LOCALHOST:8443/", "not_public_name"],
  ["https://ⓛocalhost/", "not_public_name"],
  ["https://localhost./", "not_public_name"],
  ["https://api.localhost/", "not_public_name"],
  ["https://localhost.localdomain/", "not_public_name"],
  ["https://intranet/", "not_public_name"],
  ["https://com/", "not_public_name"],
  ["https://printer.local/", "not_public_name"],
  ["https://db.internal/", "not_public_name"],
  ["https://metadata.google.internal/", "not_public_name"],
  ["https://router.home.arpa/", "not_public_name"],
  ["https://ipv4only.arpa/", "not_public_name"],
  ["https://1.0.0.127.in-addr.arpa/", "not_public_name"],
  ["https://abcdefghijklmnop.onion/", "not_public_name"],
  ["https://name.alt/", "not_public_name"],
  ["https://wiki.corp/", "not_public_name"],
  ["https://nas.lan/", "not_public_name"],
  ["https://api.default.svc.cluster.local/", "not_public_name"],
  ["https://api.default.svc/", "not_public_name"],
  ["https://a.test/", "not_public_name"],
  ["https://hooks.example.4com/", "not_public_name"],
  ["https://hooks.example.c/", "not_public_name"],
  ["https://a.invalid/", "not_public_name"],
  ["https://hooks.example.com./", "not_public_name"],
  ["https://hooks.example.com../", "not_public_name"],
  ["https://.example.com/", "not_public_name"],
  ["https://hooks..example.com/", "not_public_name"],
  ["https://my_hooks.example.com/", "not_public_name"],
  ["https://-a.example.com/", "not_public_name"],
  ["https://*.example.com/", "not_public_name"],
  ["https://a,b.example.com/", "not_public_name"],
  [`https://${"a".repeat(64)}.example.com/`, "not_public_name"],
  [`https://${"a.".repeat(130)}example.com/`, "not_public_name"],
  // Ports
  ["https://hooks.example.com:0/", "port"],
  ["https://hooks.example.com:22/", "port"],
  ["https://hooks.example.com:25/", "port"],
  ["https://hooks.example.com:80/", "port"],
  ["https://hooks.example.com:444/", "port"],
  ["https://hooks.example.com:1023/", "port"],
  // Our own hosts
  ["https://login.example.com/oauth2/token", "own_host"],
  ["https://LOGIN.example.com:8443/", "own_host"],
  ["https://login。example。com/", "own_host"],
  ["https://%6cogin.example.com/", "own_host"],
];

test("URLs outside the address policy are refused, with the reason", async (t) => {
  assert.ok(refused.length >= 60);
  for (const [text, reason] of refused) {
    await t.test(`${JSON.stringify(text.slice(0, 80))} is refused as ${reason}`, () => {
      assert.equal(outcome(text, production), reason);
    });
  }
});

test("public https URLs are accepted and normalised", () => {
  const accepted: readonly (readonly [string, string])[] = [
    ["https://hooks.example.com", "https://hooks.example.com/"],
    ["https://hooks.example.com/in?client=1&x=%20", "https://hooks.example.com/in?client=1&x=%20"],
    ["HTTPS://Hooks.Example.COM/In", "https://hooks.example.com/In"],
    ["https://hooks.example.com:443/", "https://hooks.example.com/"],
    ["https://hooks.example.com:/", "https://hooks.example.com/"],
    ["https://hooks.example.com:1024/", "https://hooks.example.com:1024/"],
    ["https://hooks.example.com:65535/", "https://hooks.example.com:65535/"],
    ["https://hooks.example.com/a/../b", "https://hooks.example.com/b"],
    ["https://hooks.example.com/@path", "https://hooks.example.com/@path"],
    ["https://bücher.example.com/", "https://xn--bcher-kva.example.com/"],
    ["https://hooks.xn--p1ai/", "https://hooks.xn--p1ai/"],
    ["https://1.example.com/", "https://1.example.com/"],
    ["https://127.0.0.1.nip.io/", "https://127.0.0.1.nip.io/"], // a name; its address is checked when sending
    ["https://not-login.example.com/", "https://not-login.example.com/"],
    ["https://login.example.com.evil.example/", "https://login.example.com.evil.example/"],
  ];
  for (const [text, href] of accepted) assert.equal(outcome(text, production), href);
});

test("dev takes exactly two spellings of this machine in addition", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["http://localhost:4001/in", "http://localhost:4001/in"],
    ["http://127.0.0.1:4001/in?x=1", "http://127.0.0.1:4001/in?x=1"],
    ["http://localhost:4001", "http://localhost:4001/"],
    ["https://hooks.example.com/", "https://hooks.example.com/"],
    ["http://localhost/", "scheme"],
    ["http://LOCALHOST:4001/", "scheme"],
    ["http://localhost.:4001/", "scheme"],
    ["http://127.1:4001/", "scheme"],
    ["http://2130706433:4001/", "scheme"],
    ["http://127.0.0.2:4001/", "scheme"],
    ["http://0.0.0.0:4001/", "scheme"],
    ["http://[::1]:4001/", "scheme"],
    ["http://api.localhost:4001/", "scheme"],
    ["http://localhost:4001.example.com/", "malformed"],
    ["http://hooks.example.com:4001/", "scheme"],
    ["https://localhost:4001/", "not_public_name"],
    ["https://127.0.0.1:4001/", "ip_literal"],
    ["http://user@localhost:4001/", "userinfo"],
    ["http://localhost:4001/#x", "fragment"],
    ["http://localhost:80/", "port"],
    ["http://localhost:25/", "port"],
    ["http://localhost:4000/", "own_host"],
    ["http://127.0.0.1:4000/oauth2/token", "own_host"],
    ["https://login.example.com/", "own_host"],
  ];
  for (const [text, expected] of cases) assert.equal(outcome(text, dev), expected, text);
});

test("of this machine our own port is refused by either name, and no port of another host's", () => {
  const own = { profile: "dev", ownHosts: ["127.0.0.1:4000", "login.example.com:4001"] } as const;
  for (const name of ["localhost", "127.0.0.1"]) {
    assert.equal(outcome(`http://${name}:4000/`, own), "own_host");
    assert.equal(outcome(`http://${name}:4001/`, own), `http://${name}:4001/`);
  }
});

test("a URL has at most 2,048 characters, and a name 253", () => {
  const long = "https://hooks.example.com/".padEnd(2048, "x");
  assert.equal(outcome(long, production), long);
  assert.equal(outcome(`${long}x`, production), "too_long");
  const name = `${"a.".repeat(121)}example.com`;
  assert.equal(name.length, 253);
  assert.equal(outcome(`https://${name}/`, production), `https://${name}/`);
  assert.equal(outcome(`https://a${name}/`, production), "not_public_name");
});

test("the characters of a URL are counted in the form in which it is kept and called", () => {
  // Beyond ASCII a character of a path takes at least six, and an apostrophe of a query three.
  for (const [start, character, kept] of [
    ["https://hooks.example.com/", "\u00e9", "%C3%A9"],
    ["https://hooks.example.com/?q=", "'", "%27"],
  ] as const) {
    const count = Math.floor((2048 - start.length) / kept.length);
    const longest = `${start}${character.repeat(count)}`;
    assert.equal(outcome(outcome(longest, production), production), start + kept.repeat(count));
    assert.equal(outcome(`${longest}${character}`, production), "too_long");
  }
});

test("an own host is meant on every port, however the configuration writes it", () => {
  for (const own of ["a.example.com", "A.example.com:8443", "https://a.example.com/base"]) {
    const options = { profile: "production", ownHosts: [own] } as const;
    assert.equal(outcome("https://a.example.com:9000/", options), "own_host", own);
    assert.equal(outcome("https://b.example.com/", options), "https://b.example.com/", own);
  }
});

test("no text makes the check throw, and an accepted URL is accepted again unchanged", () => {
  const piece = fc.constantFrom(
    ..."https:// http:// @ : / # ? . [ ] % \\ 0x7f 127 ::1 localhost a example com 。 １ 443".split(
      " ",
    ),
  );
  const texts = fc.oneof(
    fc.uint16Array().map((units) => String.fromCharCode(...units)),
    fc.tuple(fc.domain(), fc.string()).map(([host, rest]) => `https://${host}/${rest}`),
    fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")),
    fc.array(piece, { maxLength: 12 }).map((pieces) => `https://${pieces.join("")}`),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const result = parsePublicUrl(text, production);
      if ("refused" in result) return;
      assert.equal(result.protocol, "https:");
      assert.ok(isPublicName(result.hostname));
      assert.equal(outcome(result.href, production), result.href);
    }),
    { numRuns: 2_000 },
  );
});

test("addresses are public only outside the special ranges, to the last address of each", () => {
  const special = `0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255
    127.0.0.1 127.255.255.255 168.63.129.16 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255
    192.0.0.0 192.0.0.192 192.0.0.255 192.0.2.0 192.0.2.255 192.31.196.0 192.31.196.255 192.52.193.0 192.52.193.255
    192.88.99.0 192.88.99.255 192.168.0.0 192.168.255.255 192.175.48.0 192.175.48.255 198.18.0.0 198.19.255.255
    198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.255
    :: ::1 ::7f00:1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:808:808 64:ff9b::7f00:1 64:ff9b::8.8.8.8
    64:ff9b:1::a00:1 100::1 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001:: 2001:0:4136:e378:8000:63bf:3fff:fdd2
    2001:2::1 2001:4:112::1 2001:10::1 2001:20::1 2001:30::1 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff 2001:db8::
    2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2002:: 2002:7f00:1::1 2002:808:808::1 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
    2620:4f:8000:: 2620:4f:8000:ffff:ffff:ffff:ffff:ffff 3ffe:: 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff::
    3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff 4000:: 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1`;
  for (const ip of special.split(/\s+/)) assert.equal(isPublicAddress(ip), false, ip);

  const open = `1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
    168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0
    192.0.1.255 192.0.3.0 192.31.195.255 192.31.197.0 192.52.192.255 192.52.194.0 192.88.98.255 192.88.100.0
    192.167.255.255 192.169.0.0 192.175.47.255 192.175.49.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0
    203.0.112.255 203.0.114.0 223.255.255.255
    2000:: 2001:200::1 2001:4860:4860::8888 2001:db7:ffff::1 2001:db9::1 2003::1 2606:4700:4700::1111
    2620:4f:7fff::1 2620:4f:8001::1 2a00:1450:4001::1 3ffd::1 3fff:1000::1`;
  for (const ip of open.split(/\s+/)) assert.equal(isPublicAddress(ip), true, ip);
});

test("text that is not one plain address is not public", () => {
  const texts = ["", "8.8.8", "8", "0x8.8.8.8", "010.8.8.8", "8.8.8.8.", " 8.8.8.8", "8.8.8.8/32"];
  const more = ["[2606:4700::1]", "2606:4700::1%eth0", "2606:4700::1/64", "hooks.example.com"];
  for (const text of [...texts, ...more]) assert.equal(isPublicAddress(text), false, text);
});
