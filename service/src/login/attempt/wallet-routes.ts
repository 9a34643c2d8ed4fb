import { signatureCharactersMax } from "@svc/protocol";
import { Type } from "../../platform/http/schema.ts";
import { callerAddressOf } from "../../platform/http/client-address.ts";
import type { Http } from "../../platform/http/http.ts";
import { invalidRequest } from "../../platform/http/problems.ts";
import { bodyReasons, refusals } from "../../platform/http/refusals.ts";
import { approveLogin } from "./approve.ts";
import type { Channel } from "./attempt.ts";
import { readBusinessPart } from "../business/business-part.ts";
import { claimLogin } from "./claim.ts";
import { declineLogin } from "./decline.ts";
import type { LoginContext } from "../login-context.ts";
import { WalletRefusal } from "./wallet-refusal.ts";

const LoginParams = Type.Object({
  loginId: Type.String({
    minLength: 1,
    maxLength: 100,
    description: "The id of the login, as it stands in the `conn` of the link.",
  }),
});
const Session = Type.String({
  minLength: 1,
  maxLength: 200,
  description: "The `sess` of the link.",
});
const Identity = Type.String({ minLength: 1, maxLength: 100, description: "The user's identity." });

const ClaimBody = Type.Object({
  session: Session,
  svcID: Identity,
  claim: Type.String({
    minLength: 43,
    maxLength: 43,
    description: "BASE64URL(SHA-256(r)), where r is 32 random bytes that the wallet keeps.",
  }),
});

/** Either a result with its signature, or a refusal with `error`; other members are ignored. */
const AnswerBody = Type.Object({
  session: Session,
  svcID: Type.Optional(Identity),
  signature: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: signatureCharactersMax,
      description:
        "The signature over the `Login` message or, with `error`, over the `Decline` message.",
    }),
  ),
  claimSecret: Type.Optional(
    Type.String({
      minLength: 43,
      maxLength: 43,
      description: "BASE64URL(r), where r is the 32 random bytes behind `claim`.",
    }),
  ),
  code: Type.Optional(
    Type.String({ maxLength: 2, description: "The two digits shown on the page." }),
  ),
  business: Type.Optional(
    Type.Object(
      {
        address: Type.String({
          minLength: 1,
          maxLength: 100,
          description: "The address of the business wallet.",
        }),
        epoch: Type.Integer({ minimum: 0, description: "The epoch of the business wallet." }),
        validUntil: Type.Integer({
          minimum: 0,
          description: "The `valid_until` of the request object.",
        }),
        approval: Type.String({
          minLength: 1,
          maxLength: 200,
          description: "The member's `BusinessApproval` of category 4.",
        }),
      },
      { description: "With the scope `business`: the business for which the member acts." },
    ),
  ),
  error: Type.Optional(WalletRefusal),
  notStarted: Type.Optional(
    Type.Boolean({ description: "With `error`: true if somebody else started this login." }),
  ),
});

const claimReasons = [
  "login_not_found",
  "login_over",
  "wrong_channel",
  "identity_refused",
  "acr_unmet",
] as const;
const claimAnswers = {
  200: {
    description: "The signed request object, which says who asks.",
    content: { "application/jwt": { schema: Type.String() } },
  },
  ...refusals(...bodyReasons, ...claimReasons, "already_claimed", "code_expired"),
};
const Done = Type.Object(
  {
    status: Type.Union(
      [Type.Literal("approved"), Type.Literal("declined"), Type.Literal("waiting")],
      { description: "`waiting` while other members of the business must approve too." },
    ),
  },
  { description: "The login is decided, or waits for other members of the business." },
);
const answerAnswers = {
  200: Done,
  ...refusals(
    ...bodyReasons,
    ...claimReasons,
    "not_claimed",
    "already_claimed",
    "code_expired",
    "claim_wrong",
    "identity_changed",
    "number_required",
    "wrong_number",
    "signature_wrong",
    "not_a_member",
    "business_not_found",
    "business_login_open",
    "ballot_changed",
    "rate_limited",
  ),
};

/** The routes behind `conn` of a login's link: claim, result, refusal (decisions section 2, the QR page, rule 3). */
export function loginWalletRoutes(ctx: LoginContext, scope: Http): void {
  claimRoute(ctx, scope, { path: "/w/l/:loginId/claim", channel: "qr", operationId: "claimLogin" });
  claimRoute(ctx, scope, {
    path: "/w/b/:loginId/claim",
    channel: "app-link",
    operationId: "claimLoginOnDevice",
  });
  const schema = {
    params: LoginParams,
    body: AnswerBody,
    response: answerAnswers,
    tags: ["wallet"],
    operationId: "answerLogin",
    summary: "Approve or decline a login",
  };
  scope.post("/w/l/:loginId", { schema }, async (request) => {
    const { session, svcID, signature, claimSecret, code, business, error } = request.body;
    const { loginId } = request.params;
    const callerAddress = callerAddressOf(ctx, request);
    if (error !== undefined) {
      const { notStarted = false } = request.body;
      const refusal = { loginId, session, claimSecret, signature, notStarted, callerAddress };
      await declineLogin(ctx, refusal);
      return { status: "declined" as const };
    }
    if (svcID === undefined || signature === undefined)
      throw invalidRequest("svcID and signature are required");
    const status = await approveLogin(ctx, {
      loginId,
      session,
      svcID,
      signature,
      claimSecret,
      code,
      business: business === undefined ? undefined : readBusinessPart(business),
      callerAddress,
    });
    return { status };
  });
}

function claimRoute(
  ctx: LoginContext,
  scope: Http,
  { path, channel, operationId }: { path: string; channel: Channel; operationId: string },
): void {
  const schema = {
    params: LoginParams,
    body: ClaimBody,
    response: claimAnswers,
    tags: ["wallet"],
    operationId,
    summary: "Claim a login and get the signed request object",
  };
  scope.post(path, { schema }, async (request, reply) => {
    const { session, svcID, claim } = request.body;
    const { loginId } = request.params;
    const callerAddress = callerAddressOf(ctx, request);
    const input = { loginId, channel, session, svcID, claim, callerAddress };
    const object = await claimLogin(ctx, input);
    return reply.type("application/jwt").send(object);
  });
}
