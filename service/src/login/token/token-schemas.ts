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
  client_secret: text(500, "The client's secret, for the type client_secret_post."),
  client_assertion: text(8192, "A signed JWT (RFC 7523), for the type private_key_jwt."),
  client_assertion_type: text(
    200,
    "With `client_assertion`: `urn:ietf:params:oauth:client-assertion-type:jwt-bearer`.",
  ),
};

/** `security` of a route for every client: one that is browser-only names itself and proves nothing. */
export const anyClient: Record<string, string[]>[] = [{ oauthClient: [] }, {}];

/** Unknown members are ignored (RFC 6749 section 3.2); a repeated one is a list, which no schema here takes. */
export const TokenForm = Type.Object({
  ...clientMembers,
  grant_type: Type.String({
    maxLength: 200,
    description: "`authorization_code`, `refresh_token` or `client_credentials`.",
  }),
  // Longer than our own, so that another kind of token is answered with `invalid_grant`, not as malformed.
  code: text(4096, "With `authorization_code`: the code."),
  redirect_uri: text(
    2048,
    "With `authorization_code`: the redirect URI of the authorization request.",
  ),
  code_verifier: text(256, "With `authorization_code`: 43 to 128 characters (RFC 7636)."),
  refresh_token: text(4096, "With `refresh_token`: the newest refresh token."),
  scope: text(
    1024,
    "With `refresh_token`: a part of the granted scope, for this access token only. With `client_credentials`: none.",
  ),
  audience: repeatable(
    "With `client_credentials`: one of the client's audiences. With the other grants: one that was granted.",
  ),
  resource: repeatable("The same as `audience` (RFC 8707)."),
});

/** Of revocation and introspection. */
export const TokenNameForm = Type.Object({
  ...clientMembers,
  token: Type.String({ maxLength: 8192, description: "The token." }),
  token_type_hint: text(100, "Ignored: the token itself says what it is."),
});

export const UserinfoForm = Type.Object({
  access_token: text(8192, "The access token, unless the Authorization header holds it."),
});

export const LogoutForm = Type.Object({
  id_token_hint: text(
    ownJwtLengthMax,
    "An id token of the login to end, expired or not. Without it, the user is asked.",
  ),
  client_id: text(200, "The client. With `id_token_hint`, it must be the client of that token."),
  post_logout_redirect_uri: text(
    2048,
    "Where the browser goes afterwards: one of the client's registered addresses, character by character.",
  ),
  state: text(4096, "Returned unchanged."),
  ui_locales: text(512, "Languages of the page, in order of preference."),
  logout_hint: text(512, "Ignored."),
  confirm: text(100, "Used by the page's own form."),
  decision: text(20, "Used by the page's own form."),
});

export const TokenBody = Type.Object(
  {
    access_token: Type.String({ description: "A JWT of typ `at+jwt` (RFC 9068)." }),
    token_type: Type.Union([Type.Literal("bearer"), Type.Literal("DPoP")], {
      description: "`DPoP` if the access token is bound to the key of a DPoP proof.",
    }),
    expires_in: Type.Integer({ description: "Seconds." }),
    scope: Type.String({ description: "What the access token grants, separated by spaces." }),
    id_token: Type.Optional(Type.String({ description: "With the scope `openid`." })),
    refresh_token: Type.Optional(
      Type.String({
        description:
          "With the scope `offline` or `offline_access`, unless a session answered; a new one at each refresh.",
      }),
    ),
  },
  { title: "Tokens", description: "The tokens." },
);

const ext = Type.Record(Type.String(), Type.Unknown(), {
  description:
    "With the scope `business`: the business and the member who acts for it. Otherwise empty.",
});

export const IntrospectionBody = Type.Object(
  {
    active: Type.Boolean({ description: "Whether the token is good at this moment." }),
    iss: Type.Optional(Type.String({ description: "The base address of the service." })),
    sub: Type.Optional(
      Type.String({ description: "`svcid:<address>`; for client credentials, the client." }),
    ),
    aud: Type.Optional(
      Type.Array(Type.String(), {
        description: "The audience that was granted; the client itself if none was.",
      }),
    ),
    client_id: Type.Optional(Type.String({ description: "The client that got the token." })),
    scope: Type.Optional(Type.String({ description: "Separated by spaces." })),
    scp: Type.Optional(Type.Array(Type.String(), { description: "The same scopes as a list." })),
    jti: Type.Optional(Type.String({ description: "The id of an access token." })),
    iat: Type.Optional(Type.Integer({ description: "When it was issued, Unix seconds." })),
    nbf: Type.Optional(
      Type.Integer({ description: "Since when an access token is good, Unix seconds." }),
    ),
    exp: Type.Optional(Type.Integer({ description: "When it expires, Unix seconds." })),
    cnf: Type.Optional(
      Type.Object(
        { jkt: Type.String({ description: "Thumbprint of the DPoP key." }) },
        { description: "The key that an access token is bound to; absent if it is bound to none." },
      ),
    ),
    ext: Type.Optional(ext),
    token_type: Type.Optional(
      Type.String({
        description: "Of an access token: `DPoP` if it is bound to a key, else `bearer`.",
      }),
    ),
    token_use: Type.Optional(Type.String({ description: "`access_token` or `refresh_token`." })),
  },
  {
    title: "Introspection",
    description:
      "For a token that is not valid, or that the caller may not know about, only `active`: false.",
  },
);

export const UserinfoBody = Type.Object(
  { sub: Type.String({ description: "`svcid:<address>`" }), ext },
  { title: "Userinfo", description: "The user behind the token." },
);
