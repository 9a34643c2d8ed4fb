// What integrators do wrong most often: the answer names the parameter, and says what it has to be.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sessionDigest, signDigest } from "@svc/protocol";
import { createApiKey } from "../../service/src/accounts/index.ts";
import { authorizationUrl, makePkce } from "../login-flow.ts";
import { newIdentity, openWalletSession, post } from "../raw-wallet.ts";
import { callbackUri, openWorld, type World } from "../world.ts";

let world: World;
let apiKey: string;

before(async () => {
  world = await openWorld();
  const { ctx, clientDomainId } = world;
  apiKey = (await createApiKey(ctx, { clientDomainId, name: "Test" }, "test")).key;
});
after(async () => world[Symbol.asyncDispose]());

interface Refused {
  readonly error: { readonly message: string; readonly details?: object };
}

/** A call with the API key; a body that is no text is sent as JSON. */
async function call(method: string, path: string, body?: unknown): Promise<Refused["error"]> {
  const answer = await fetch(`${world.baseUrl}${path}`, {
    method,
    headers: { authorization: apiKey, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return ((await answer.json()) as Refused).error;
}

const user = newIdentity().address;
const info = { field: "EMAIL", data: "a@example.com", pepper: "ab" };
const valid = "/api/v1/blockchain/valid";

test("a member of another type, an empty one and a missing body are refused in plain words, by the way to the member", async () => {
  const cases: [unknown, string][] = [
    [undefined, "the body must be a JSON object"],
    [[], "the body must be a JSON object"],
    [{ user: 5, infos: [info] }, "user must be a string"],
    [{ user, infos: "EMAIL" }, "infos must be an array"],
    [{ user, infos: [] }, "infos must not be empty"],
    [{ user, infos: [info, { ...info, pepper: 7 }] }, "infos[1].pepper must be a string"],
    [{ user: "x".repeat(101), infos: [info] }, "user must have at most 100 characters"],
    [{ user: `svcid:${user}`, infos: [info] }, "user must be the address alone, without svcid:"],
  ];
  for (const [body, fault] of cases)
    assert.equal((await call("POST", valid, body)).message, `Invalid Request: ${fault}`);
});

test("names joined by commas are reported as the one name that they make", async () => {
  const { details } = await call(
    "GET",
    `/api/v1/blockchain/verified?user=${user}&items=EMAIL,ADDRESS_CITY`,
  );
  assert.deepEqual(details, { fields: ["EMAIL,ADDRESS_CITY"] });
});

test("an empty referenceKey is told as such on every route that takes one", async () => {
  const reads = ["status", "all-statuses", "events", "deliveries", "receipt"];
  const answers = [
    ...reads.map(async (route) => call("GET", `/api/v2/kyc/${route}?referenceKey=`)),
    ...["cancel", "redeliver"].map(async (route) =>
      call("POST", `/api/v2/kyc/${route}`, { referenceKey: "" }),
    ),
  ];
  for (const { message } of await Promise.all(answers))
    assert.equal(message, "Invalid Request: referenceKey must not be empty");
});

test("a parameter given twice in a query or a form is reported as such, and in JSON as not being a string", async () => {
  const twice = "referenceKey=a&referenceKey=b";
  const { message } = await call("GET", `/api/v2/kyc/status?${twice}`);
  assert.equal(message, "Invalid Request: referenceKey is given more than once");
  const page = await call("GET", "/api/v1/kyb/billing/charges?limit=1&limit=2");
  assert.equal(page.message, "malformed_request: limit is given more than once");
  const { id, secret = "" } = world.client;
  for (const [path, name] of [
    ["token", "grant_type"],
    ["revoke", "token"],
    ["introspect", "token"],
  ] as const) {
    const body = new URLSearchParams(`${name}=a&${name}=b`);
    const headers = basic(`${id}:${secret}`);
    const answer = await fetch(`${world.baseUrl}/oauth2/${path}`, {
      method: "POST",
      headers,
      body,
    });
    const { error_description: description } = (await answer.json()) as Record<string, string>;
    assert.equal(description, `${name} is given more than once`);
  }
  const list = await call("POST", "/api/v2/kyc/cancel", { referenceKey: ["a", "b"] });
  assert.equal(list.message, "Invalid Request: referenceKey must be a string");
});

test("a number out of its range is refused with the range", async () => {
  const session = { svcID: user, challenge: "c", signature: "0x00" };
  for (const [deadline, fault] of [
    [-1, "deadline must be at least 0"],
    [4_294_967_296, "deadline must be at most 4294967295"],
    [1.5, "deadline must be a whole number"],
  ] as const) {
    const { message } = await call("POST", "/w/session", { ...session, deadline });
    assert.equal(message, `Invalid Request: ${fault}`);
  }
});

test("a wrong method, and a wrong content type or none, are answered with the right ones", async () => {
  const { message } = await call("POST", "/api/v2/kyc/status", {});
  assert.equal(message, "this path takes GET");
  for (const body of [new URLSearchParams({ user }), "user", new FormData(), Buffer.from("{}")]) {
    const init = { method: "POST", headers: { authorization: apiKey }, body };
    const answer = await fetch(`${world.baseUrl}/api/v2/kyc/qrcode`, init);
    const { error } = (await answer.json()) as Refused;
    assert.deepEqual([answer.status, error.message], [415, "the body must be application/json"]);
  }
});

test("routes for businesses refuse a URL and an address in the words of the other routes", async () => {
  const url = "http://shop.example/hooks";
  const endpoint = await call("PUT", "/api/v1/kyb/webhook-endpoint", { url });
  assert.equal(endpoint.message, "malformed_request: url must be a public https URL (scheme)");
  const { message } = await call("GET", `/api/v1/kyb/verify/${user.slice(1)}`);
  assert.match(message, /wallet must be an address of 20 bytes in hex, its checksum right/);
});

const member = (address: string, name = "Ada"): object => ({ address, name, votingRights: true });

test("who founds a business is told which member is wrong", async () => {
  const founder = newIdentity();
  const headers = await openWalletSession(world.baseUrl, founder);
  const ask = async (changed: object): Promise<string> => {
    const deadline = world.ctx.clock.now() + 600;
    const body = { name: "Muster AG", salt: `0x${"1".repeat(64)}`, deadline };
    const sent = { ...body, signature: `0x${"1".repeat(130)}`, ...changed };
    const answer = await post(`${world.baseUrl}/w/businesses`, sent, headers);
    return ((await answer.json()) as Refused).error.message;
  };
  const found = async (...addresses: string[]): Promise<string> =>
    ask({ members: addresses.map((each) => member(each)) });
  const { address } = founder;
  const upper = `0x${address.slice(2).toUpperCase()}`;
  assert.equal(await found(address, upper), `Invalid Request: members holds ${address} twice`);
  const wrong = address.slice(0, -1);
  assert.match(await found(address, wrong), /members\[1\]\.address must be an address/);
  const keyless = await found(address, `0x${"00".repeat(20)}`);
  assert.match(keyless, /: members\[1\]\.address is an address that nobody has the key of/);
  const members = [member(address), member(user, "Ali\u202ece")];
  assert.match(await ask({ members }), /: members\[1\]\.name holds control or bidirectional/);
  const nameless = await ask({ members: [member(address)], name: " " });
  assert.equal(nameless, "Invalid Request: name has 1 to 100 characters");
});

test("a malformed signature is told the proper form, another one only that it does not fit", async () => {
  const identity = newIdentity();
  const open = async (change: (signature: string) => string): Promise<string> => {
    const answer = await post(`${world.baseUrl}/w/session/challenge`, {});
    const { challenge, deadline, origin } = (await answer.json()) as {
      challenge: string;
      deadline: number;
      origin: string;
    };
    const digest = sessionDigest({ origin, challenge, deadline });
    const signature = change(signDigest(digest, identity.privateKey));
    const sent = { svcID: identity.address, challenge, deadline, signature };
    const opened = await post(`${world.baseUrl}/w/session`, sent);
    return ((await opened.json()) as Refused).error.message;
  };
  const forms = [
    (signature: string): string => `${signature.slice(0, -2)}00`,
    (signature: string): string => signature.slice(0, 130),
    (signature: string): string => signature.slice(2),
  ];
  for (const change of forms) assert.match(await open(change), /65 bytes r, s, v in hex/);
  const other = signDigest(new Uint8Array(32), identity.privateKey);
  assert.match(await open(() => other), /^the signature is of another identity/);
});

function basic(pair: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}

test("the token endpoint says how to send the client's credentials and the form", async () => {
  const open = await world.addClient({ authenticationMethod: "none" });
  const { id, secret = "" } = world.client;
  const form = { grant_type: "authorization_code", code: "x", redirect_uri: callbackUri };
  const ask = async (init: RequestInit, query = ""): Promise<string> => {
    const answer = await fetch(`${world.baseUrl}/oauth2/token${query}`, {
      method: "POST",
      ...init,
    });
    return ((await answer.json()) as { error_description: string }).error_description;
  };
  const query = `?${new URLSearchParams(form).toString()}`;
  const needsForm = "the body must be application/x-www-form-urlencoded";
  assert.equal(await ask({ headers: basic(`${id}:${secret}`) }, query), needsForm);
  const body = (): URLSearchParams => new URLSearchParams(form);
  const cases: [RequestInit, RegExp][] = [
    [{ headers: basic(`${id}:100%secret`), body: body() }, /form-encoded before they are joined/],
    [{ headers: basic(`${open.id}:x`), body: body() }, /has no secret and no key/],
    [{ headers: { authorization: `Bearer ${secret}` }, body: body() }, /base64 of id, colon/],
    [
      { headers: basic(`${id}:${secret}`), body: new URLSearchParams({ code: "x" }) },
      /^grant_type is missing$/,
    ],
  ];
  for (const [init, fault] of cases) assert.match(await ask(init), fault);
});

/** The description of the error, at the client or on the page. */
async function refuse(changed: Record<string, string>): Promise<string> {
  const url = authorizationUrl(world.baseUrl, world.client, makePkce(), changed);
  const answer = await fetch(url, { redirect: "manual" });
  const location = answer.headers.get("location");
  if (location === null) return answer.text();
  return new URL(location).searchParams.get("error_description") ?? "";
}

test("a wrong parameter of the authorization request is told by name, with what it may be", async () => {
  const cases: [Record<string, string>, RegExp][] = [
    [
      { redirect_uri: `${callbackUri}/` },
      /redirect_uri is not registered .* character by character/,
    ],
    [{ scope: "openid,offline" }, /^scope may hold openid, .*, separated by spaces$/],
    [{ audience: "https://api.example.com/" }, /^audience or resource is none that is registered/],
    [{ prompt: "Login" }, /^prompt may hold none, login, consent, select_account, separated/],
  ];
  for (const [changed, fault] of cases) assert.match(await refuse(changed), fault);
});
