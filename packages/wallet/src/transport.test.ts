import { test } from "node:test";
import { refuses } from "../test/test-wallet.ts";
import { call, type Call } from "./transport.ts";

const url = "https://shop.example/x";
const unusable: [() => Response, string][] = [
  [() => new Response(null, { status: 302 }), "redirects, which is not followed"],
  [() => new Response(new Uint8Array([0xff])), "gives no answer that can be read"],
];

await test("only whoever was sent something is said to have been told", async () => {
  const calls: [Call, string][] = [
    [{ url }, ""],
    [{ url, method: "DELETE" }, "was told, and "],
    [{ url, body: {} }, "was told, and "],
  ];
  for (const [answer, fault] of unusable)
    for (const [given, told] of calls) {
      const calling = call(async () => answer(), given);
      await refuses(calling, "unreachable", new RegExp(`^shop\\.example ${told}${fault}$`));
    }
});
