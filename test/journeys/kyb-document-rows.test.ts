// Every row of the KYB tables of the service document and of section 6 of its decisions: a test by its name, filed by its
// status, that says what shows it.
import { test } from "node:test";
import { checkPromised, promisedBy, type Row, showRows } from "../document-rows.ts";
import { requestRows } from "../kyb-request-rows.ts";
import { isOfMembers } from "../kyb-routes.ts";

const endpoint = "journeys/kyb-endpoint.test.ts";
const events = "journeys/kyb-events.test.ts";
const quarantine = "webhooks/quarantine.test.ts";
const endpoints = "webhooks/endpoints.test.ts";
const matrix = "journeys/kyb-route-matrix.test.ts";
const data = "journeys/kyb-data-request.test.ts";
const personal = "journeys/kyb-personal-fields.test.ts";
const offers = "journeys/kyb-offers.test.ts";
const signatures = "journeys/kyb-signature-requests.test.ts";
const memberLists = "journeys/kyb-member-lists.test.ts";
const standing = "journeys/kyb-standing.test.ts";
const governance = "journeys/kyb-governance.test.ts";
const founding = "journeys/kyb-founding.test.ts";
const businessList = "journeys/kyb-business-list.test.ts";
const login = "journeys/business-login.test.ts";
const sdk = "journeys/kyb-sdk.test.ts";
const push = "journeys/kyb-push.test.ts";
const removals = "journeys/kyb-removals.test.ts";
const many = "journeys/kyb-votes-of-many.test.ts";
const pricing = "kyb/billing/pricing.test.ts";
const walletContract = "contracts/test/BusinessWallet.t.sol";
const factoryContract = "contracts/test/BusinessFactory.t.sol";
const governanceContract = "contracts/test/BusinessGovernance.t.sol";

const api = "/api/v1/kyb";
/** The webhook endpoint. */
const endpointRows: readonly Row[] = [
  {
    name: "200 PUT webhook-endpoint: registers or replaces, `active: true`, a new secret once",
    routes: [`PUT ${api}/webhook-endpoint`, `GET ${api}/webhook-endpoint`],
    shownBy: [
      [endpoint, "PUT answers the record with its secret, once; GET shows the rest"],
      [
        endpoints,
        "PUT ends a quarantine: held events go to the new URL, signed only by the new secret",
      ],
      [
        endpoints,
        "nothing of an endpoint's secret stands in the clear, and its reads do not show it",
      ],
    ],
  },
  {
    name: "200 POST rotate-secret: a new secret, the old one for 24 hours, at most two, or at once",
    routes: [`POST ${api}/webhook-endpoint/rotate-secret`],
    shownBy: [
      [
        endpoint,
        "a rotation answers a new secret; repeated under its Idempotency-Key the same one",
      ],
      [endpoints, "an old secret signs beside the new one for 24 hours, and two live at most"],
      ["journeys/webhook-signature.test.ts", "the stock library ${name} takes every KYB delivery"],
    ],
  },
  {
    name: "200 POST reactivate: delivery resumes, the oldest first",
    routes: [`POST ${api}/webhook-endpoint/reactivate`],
    shownBy: [
      [
        endpoint,
        "a receiver that is gone puts it into quarantine; it goes on when it is reactivated",
      ],
      [endpoints, "a 410 holds everything; reactivated, all of it goes out, the oldest first"],
      [
        endpoints,
        "after a quarantine an endpoint gets at most five deliveries in a second until its first 2xx",
      ],
    ],
  },
  {
    name: "201 POST test: `kyb.endpoint.test` arrives signed",
    routes: [`POST ${api}/webhook-endpoint/test`],
    shownBy: [[endpoint, "a test event arrives signed, and its stream has no gap"]],
  },
  {
    name: "200 GET events of a client domain, newest first, by type and status; GET deliveries, POST redeliver of one",
    routes: [
      `GET ${api}/events`,
      `GET ${api}/events/<id>/deliveries`,
      `POST ${api}/events/<id>/redeliver`,
    ],
    shownBy: [
      [events, "each attempt at a test event is listed with its outcome, and none at another"],
      [events, "a move whose delivery was given up is listed, and arrives when it is sent again"],
      [events, "events of every kind are listed newest first and page by page"],
      [events, "a page ends where its bodies are 8 MiB together, and the next goes on there"],
      [events, "what was purged is listed without its body, and cannot be sent again"],
      [
        events,
        "an event exists only for its own client domain, and an event of a request only for keys that may make such requests",
      ],
    ],
  },
  {
    name: "400: a URL that is not plain https on a public host, without userinfo and fragment",
    shownBy: [
      [
        endpoint,
        "an address that no webhook may go to is refused, and the endpoint stays as it was",
      ],
      [
        "platform/outbound/address-policy.test.ts",
        "URLs outside the address policy are refused, with the reason",
      ],
    ],
  },
  {
    name: "404 and 409 without one: `endpoint_not_found`, `no_webhook_endpoint`; quarantined counts as registered",
    reasons: ["endpoint_not_found", "no_webhook_endpoint"],
    shownBy: [
      [endpoint, "before registration there is no endpoint, and nothing can be done with it"],
      [offers, "offer needs an endpoint, active or in quarantine"],
    ],
  },
  {
    name: "409 `endpoint_not_quarantined`",
    reasons: ["endpoint_not_quarantined"],
    shownBy: [
      [
        endpoint,
        "a receiver that is gone puts it into quarantine; it goes on when it is reactivated",
      ],
    ],
  },
  {
    name: "quarantine: one 410, 72 hours of failure, 100 in a row over an hour, 3 refusals over 10 minutes",
    shownBy: [
      [
        quarantine,
        "one 410 is enough for a quarantine, another refusal is not",
        "are enough for a quarantine, one fewer or a moment less is not",
      ],
      [quarantine, "a 2xx restarts every count"],
      [
        endpoints,
        "ten thousand held events are handed out in order, none lost, though processes take turns",
      ],
    ],
  },
  {
    name: "deliveries: signed for stripe and standardwebhooks, redirects not followed, at least once, in order",
    shownBy: [
      ["journeys/webhook-signature.test.ts", "before, during and after a rotation"],
      ["webhooks/leases.test.ts", "a redirect is not followed"],
      [
        "webhooks/deliveries.test.ts",
        "first attempts of a stream go in order, one after the other",
      ],
      [
        "merchant/src/kyb-webhook.test.ts",
        "a time of five minutes either way is taken, and no other",
      ],
    ],
  },
];

/** Lookups, prices, billing. */
const lookupRows: readonly Row[] = [
  {
    name: "200 GET status, verify, members of a business; names for who is acquainted alone",
    routes: [
      `GET ${api}/status/<wallet>`,
      `GET ${api}/verify/<wallet>`,
      `GET ${api}/members/<wallet>`,
    ],
    shownBy: [
      [
        standing,
        "a business is looked up by its wallet in any case; its rules and members are told, their names are not",
      ],
      [
        standing,
        "an organization that the business logged in to sees the names of its members, another does not",
      ],
    ],
  },
  {
    name: "200 GET pricing, billing/account, billing/charges; quotes, prices and charges agree by line",
    routes: [`GET ${api}/pricing`, `GET ${api}/billing/account`, `GET ${api}/billing/charges`],
    shownBy: [
      [data, "prices, quotes and charges for the same fields agree line by line"],
      [pricing, "every field of the catalogue has a price, by tier 4.00, 2.50 or 1.00"],
      [
        pricing,
        "what tells of a person is tier C, seven groups are tier B, and the rest is tier A",
      ],
    ],
  },
  {
    name: "404 `business_not_found`: no address, unknown, not deployed yet, or of the other environment",
    reasons: ["business_not_found"],
    shownBy: [
      [
        standing,
        "a wallet that is unknown, not deployed yet or of the other environment is not found, and no address is malformed",
      ],
    ],
  },
];

const entitlementRows: readonly Row[] = [
  {
    name: "401: every route takes the API key; there is no separate one",
    reasons: ["apikey_missing", "apikey_invalid"],
    shownBy: [[matrix, "no KYB route can be called without a valid key"]],
  },
  {
    name: "403 `kyb_not_entitled`, `kyb_signature_not_entitled`: `kyb:read` is there from the start, the others are granted",
    reasons: ["kyb_not_entitled", "kyb_signature_not_entitled"],
    shownBy: [
      [
        matrix,
        "from the start, and nothing else; each entitlement is granted and withdrawn by its UUID",
      ],
      [offers, "an organization that lost its entitlement gets no request from its"],
    ],
  },
  {
    name: "403 `pii_not_entitled`: at quote, create, claim and release",
    reasons: ["pii_not_entitled"],
    shownBy: [
      [matrix, "personal data take kyb:pii, wherever fields are named"],
      [personal, "a sole proprietor's company fields are gated at the quote and the create"],
      [personal, "an offer for company fields is gated when a sole proprietor claims it"],
      [
        personal,
        "kyb:pii is withdrawn between the create and the release: nothing of a person goes, nothing is paid",
      ],
    ],
  },
  {
    name: "400, 413, 415: bodies are JSON objects of known members, within their bounds",
    reasons: ["malformed_request", "body_too_large", "unsupported_media_type"],
    shownBy: [
      [
        matrix,
        "members of a body that no route knows are refused by name, and parameters of a query too",
      ],
      [matrix, "bodies that are no JSON object are refused, and so are other content types"],
      [
        signatures,
        "a document of 64 KiB is taken however it is escaped, a text of 4096 bytes, and no body beyond 160 KiB",
      ],
    ],
  },
  {
    name: "404 `request_not_found`: objects are those of one client domain",
    reasons: ["request_not_found", "offer_not_found"],
    shownBy: [
      [matrix, "objects are those of one client domain: for every other key they are not there"],
      [matrix, "a sandbox key knows no live business, and the other way round"],
    ],
  },
  {
    name: "the order of refusals: 404 route, 401, 403, 400, 404, 409 or 422, 402",
    shownBy: [
      [matrix, "of several faults the first in the documented order is told"],
      [matrix, "other methods are answered with those that there are, and other paths with 404"],
      [data, "a request is refused in the documented order, each with its reason"],
    ],
  },
];

const memberRows: readonly Row[] = [
  {
    name: "businesses are founded by all members' signatures, at the address that these imply",
    routes: ["POST /w/businesses", "GET /w/businesses", "POST /w/businesses/<address>/abandon"],
    reasons: ["invalid_request", "business_exists", "wallet_session_required"],
    shownBy: [
      [
        founding,
        "a business is active once everybody signed, and its wallet is deployed where it was said to be",
      ],
      [
        founding,
        "the same founding again changes nothing, and nobody else takes its place",
        "a founder ends its founding until everybody has signed, and nobody is asked any more",
      ],
      [founding, "live and sandbox are two wallets, and a key of the one does not see the other"],
      [founding, "a founding without what it takes is refused by name"],
      [
        businessList,
        "a member of 230 businesses reads all of them, 100 on a page; those it is invited to come last",
      ],
      [factoryContract, "test_nobodyCanSquatOnAnAddress", "test_thereIsNothingToInitialise"],
      [
        memberLists,
        "401: no route for members accepts an act without a wallet session, and an API key does not count as one",
      ],
    ],
  },
  {
    name: "votes: MAJORITY and UNANIMOUS at 1 to 25 members, epochs, categories",
    routes: ["GET /w/inbox", "POST /w/votes/<id>"],
    reasons: [
      "already_voted",
      "ballot_changed",
      "ballot_not_found",
      "ballot_over",
      "signature_wrong",
    ],
    shownBy: [
      [
        "kyb/ballot/ballot.test.ts",
        "in every category the rule decides how many approvals are enough, and how many refusals end a vote early",
      ],
      [many, "of 25 members 13 are the majority: 12 are not, and 13 refusals end it"],
      [
        many,
        "an approval counts for its category, business, environment, chain, epoch and time alone",
      ],
      [governance, "a change of the roster voids open votes, and they are collected anew"],
      [
        "races/kyb-members.test.ts",
        "one member who approves on one process and refuses on the other has one vote",
      ],
      [
        walletContract,
        "testFuzz_exactlyTheThresholdSigns",
        "test_anApprovalOfOneCategoryIsUselessInEveryOther",
      ],
    ],
  },
  {
    name: "governance: the stricter of old and new rule; moves; any member ends what is under way",
    routes: [
      "POST /w/businesses/<address>/proposals",
      "POST /w/businesses/<address>/proposals/<id>/retract",
      "POST /w/businesses/<address>/keep",
    ],
    reasons: ["nothing_to_end", "too_many", "chain_unavailable"],
    shownBy: [
      [
        memberLists,
        "400: no contract gets a vote, which it could never give; without one it may be a member",
        "503: nothing that only the chain knows is proposed while its node is away, refuses or does not have it",
      ],
      [
        governance,
        "whoever proposed something takes it back until it is decided, and may propose anew",
      ],
      [memberLists, "409: a member has at most five proposals open, and at most twenty foundings"],
      [governance, "members and rules change when the members decided and the chain has it"],
      [
        governance,
        "members move their business to another wallet, and nothing goes on in the old one",
      ],
      [standing, "a move by the operator waits 30 days, and any member cancels it"],
      [
        governanceContract,
        "test_theStricterOfTheOldAndTheNewRuleOfGovernanceDecides",
        "test_afterAMoveMembersAndRulesStayAsTheyAre",
      ],
    ],
  },
  {
    name: "a lost member: 30 days, ended by its signature, safe for 90 days; 422 `removal_refused`",
    reasons: ["removal_refused"],
    shownBy: [
      [governance, "a member who seems lost is removed after 30 days"],
      [
        governance,
        "a member who is there ends its removal with a signature, and is safe for 90 days",
      ],
      [
        removals,
        "a member who votes and never signs to stay ends no removals for good: the others decide again, and it signs or goes",
        "a member whose removal was decided again, also across a change of the roster, still ends it with a signature",
      ],
      [governanceContract, "test_recoveryIsNoTakeover", "test_aRemovalNeverTakesTheLastVote"],
    ],
  },
  {
    name: "members block requesters, see what was released, and are told of votes by push",
    routes: [
      "GET /w/businesses/<address>/releases",
      "POST /w/businesses/<address>/block",
      "GET /w/businesses/<address>/blocks",
      "GET /w/push/key",
      "POST /w/push",
      "DELETE /w/push",
    ],
    reasons: ["result_refused"],
    shownBy: [
      [
        memberLists,
        "422: a vote that names an optional field twice, or a field that is not optional",
      ],
      [
        signatures,
        "a business that has blocked an organization is asked nothing, by request or by offer",
      ],
      [
        memberLists,
        "members see whom their business takes no requests of, and take a block back by what they see",
        "members see for ever what their business released, to whom and by which vote, and no value",
      ],
      [push, "a device hears of a vote once, until its wallet has it told no more"],
    ],
  },
  {
    name: "business login: 15 minutes, no partial success, the claims in both tokens and userinfo",
    shownBy: [
      [login, "a majority logs in, and every token says for which business and by whom"],
      [login, "where all must agree, no smaller number logs in"],
      [login, "after 15 minutes the page stays, with a new start, and no vote counts"],
      [login, "a member has one open login; the wallet that began it ends it"],
      [
        "journeys/business-login-roster.test.ts",
        "a changed roster ends every login for the business, and a changed rule none",
      ],
    ],
  },
  {
    name: "`kyb.business.wallet_address_changed`: attested, to whoever knows the business",
    shownBy: [
      [
        standing,
        "whoever knows a business that moved is told where, with an attestation, and finds it moved",
      ],
      [
        standing,
        "a lookup of a business that moved names its successor to whoever is told of the move, and to nobody else",
      ],
      [sdk, "a business that moves is followed by its attestation alone"],
    ],
  },
];

const rows = [...endpointRows, ...lookupRows, ...entitlementRows, ...requestRows, ...memberRows];

test("every route and refusal of the reference of KYB has a row", () => {
  checkPromised(
    rows,
    promisedBy("Businesses", () => true),
  );
  checkPromised(rows, promisedBy("Wallet", isOfMembers));
});

showRows(rows);
