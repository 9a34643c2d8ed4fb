import { Type } from "../../platform/http/schema.ts";
import { ownJwtLengthMax } from "./access-token.ts";

const text = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ maxLength, description }));
/** RFC 8707 allows several; the grants say that one is enough. */
const repeatable = (description: string) =>
  Type.Optional(
    Type.Union(
      [
        Type.String({ maxLength: 500 }),
        Type.Array(Type.String({ maxLength: 500 }), { maxItems: 20 }),
      ],
      { description },
    ),
  );

/** How a client may prove itself in a form. */
export const clientMembers = {
  client_id: text(200, "The client, unless the Authorization header or the assertion names it."),
  client_secret: text(500, "Of a client of type client_secret_post."),
  client_assertion: text(8192, "A signed JWT of a client of type private_key_jwt (RFC 7523)."),
  client_assertion_type: text(
    200,
    "With an assertion: `urn:ietf:params:oauth:client-assertion-type:jwt-bearer`.",
  ),
};

/** `security` of a route for every client: one that is browser-only names itself and proves nothing. */
export const anyClient: Record<string, string[]>[] = [{ client: [] }, {}];

/** Unknown members are ignored (RFC 6749 section 3.2); a repeated one is a list, which no schema here takes. */
export const TokenForm = Type.Object({
  ...clientMembers,
  grant_type: Type.String({
    maxLength: 200,
    description: "`authorization_code`, `refresh_token` or `client_credentials`.",
  }),
  // Longer than our own, so that another kind of token is answered with `invalid_grant`, not as malformed.
  code: text(4096, "The code; with `authorization_code`."),
  redirect_uri: text(2048, "That of the authorization request; with `authorization_code`."),
  code_verifier: text(256, "43 to 128 characters (RFC 7636); with `authorization_code`."),
  refresh_token: text(4096, "The newest one; with `refresh_token`."),
  scope: text(
    1024,
    "With `refresh_token`: less than was granted. With `client_credentials`: none.",
  ),
  audience: repeatable(
    "With `client_credentials`: one of the client's audiences. Otherwise one that was granted.",
  ),
  resource: repeatable("The same as `audience` (RFC 8707)."),
});

/** Of revocation and introspection. */
export const TokenNameForm = Type.Object({
  ...clientMembers,
  token: Type.String({ maxLength: 8192, description: "The token." }),
  token_type_hint: text(100, "Ignored: a token says itself what it is."),
});

export const UserinfoForm = Type.Object({
  access_token: text(8192, "The access token, unless the Authorization header holds it."),
});

export const LogoutForm = Type.Object({
  id_token_hint: text(
    ownJwtLengthMax,
    "An id token of the login to end, expired or not. Without it the person is asked.",
  ),
  client_id: text(200, "The client; that of the hint when both are given."),
  post_logout_redirect_uri: text(
    2048,
    "Where the browser goes afterwards: exactly one of those that are registered.",
  ),
  state: text(4096, "Comes back unchanged."),
  ui_locales: text(512, "Languages of the page in the order of preference."),
  logout_hint: text(512, "Ignored."),
  confirm: text(100, "Of the page's own form."),
  decision: text(20, "Of the page's own form."),
});

export const TokenBody = Type.Object(
  {
    access_token: Type.String({ description: "A JWT of typ `at+jwt` (RFC 9068)." }),
    token_type: Type.Union([Type.Literal("bearer"), Type.Literal("DPoP")]),
    expires_in: Type.Integer({ description: "Seconds." }),
    scope: Type.String(),
    id_token: Type.Optional(Type.String({ description: "With `openid`." })),
    refresh_token: Type.Optional(
      Type.String({
        description:
          "With `offline` or `offline_access`, unless a session answered; a new one each time.",
      }),
    ),
  },
  { title: "Tokens", description: "The tokens." },
);

const ext = Type.Record(Type.String(), Type.Unknown());

export const IntrospectionBody = Type.Object(
  {
    active: Type.Boolean(),
    iss: Type.Optional(Type.String()),
    sub: Type.Optional(
      Type.String({ description: "`svcid:<address>`; of client credentials the client." }),
    ),
    aud: Type.Optional(Type.Array(Type.String())),
    client_id: Type.Optional(Type.String()),
    scope: Type.Optional(Type.String({ description: "Separated by spaces." })),
    scp: Type.Optional(Type.Array(Type.String(), { description: "The same as a list." })),
    jti: Type.Optional(Type.String()),
    iat: Type.Optional(Type.Integer()),
    nbf: Type.Optional(Type.Integer()),
    exp: Type.Optional(Type.Integer()),
    cnf: Type.Optional(
      Type.Object({ jkt: Type.String({ description: "Thumbprint of the DPoP key." }) }),
    ),
    ext: Type.Optional(ext),
    token_type: Type.Optional(Type.String()),
    token_use: Type.Optional(Type.String({ description: "`access_token` or `refresh_token`." })),
  },
  {
    title: "Introspection",
    description:
      "Only `active` for a token that is not valid, or that the caller may not know about.",
  },
);

export const UserinfoBody = Type.Object(
  { sub: Type.String({ description: "`svcid:<address>`" }), ext },
  { title: "Userinfo", description: "The user behind the token." },
);
