import { Type } from "@fastify/type-provider-typebox";

const text = (maxLength: number) => Type.Optional(Type.String({ maxLength }));
/** RFC 8707 allows several; the grants say that one is enough. */
const repeatable = Type.Optional(
  Type.Union([
    Type.String({ maxLength: 500 }),
    Type.Array(Type.String({ maxLength: 500 }), { maxItems: 20 }),
  ]),
);

/** How a client may prove itself in a form. */
const clientMembers = {
  client_id: text(200),
  client_secret: text(500),
  client_assertion: text(8192),
  client_assertion_type: text(200),
};

/** Unknown members are ignored (RFC 6749 section 3.2); a repeated one is a list, which no schema here takes. */
export const TokenForm = Type.Object({
  ...clientMembers,
  grant_type: text(200),
  // Longer than ours are, so that a token of another kind is answered as one that is not good here.
  code: text(4096),
  redirect_uri: text(2048),
  code_verifier: text(256),
  refresh_token: text(4096),
  scope: text(1024),
  audience: repeatable,
  resource: repeatable,
});

/** Of revocation and introspection. */
export const TokenNameForm = Type.Object({
  ...clientMembers,
  token: text(8192),
  token_type_hint: text(100),
});

export const UserinfoForm = Type.Object({ access_token: text(8192) });

export const LogoutForm = Type.Object({
  id_token_hint: text(8192),
  client_id: text(200),
  post_logout_redirect_uri: text(2048),
  state: text(4096),
  ui_locales: text(512),
  logout_hint: text(512),
  confirm: text(100),
  decision: text(20),
});

export const OAuthErrorBody = Type.Object({
  error: Type.String(),
  error_description: Type.String(),
});

export const TokenBody = Type.Object({
  access_token: Type.String(),
  token_type: Type.Union([Type.Literal("bearer"), Type.Literal("DPoP")]),
  expires_in: Type.Integer({ description: "Seconds" }),
  scope: Type.String(),
  id_token: Type.Optional(Type.String()),
  refresh_token: Type.Optional(Type.String()),
});

const ext = Type.Record(Type.String(), Type.Unknown());

export const IntrospectionBody = Type.Object({
  active: Type.Boolean(),
  iss: Type.Optional(Type.String()),
  sub: Type.Optional(Type.String()),
  aud: Type.Optional(Type.Array(Type.String())),
  client_id: Type.Optional(Type.String()),
  scope: Type.Optional(Type.String()),
  scp: Type.Optional(Type.Array(Type.String())),
  jti: Type.Optional(Type.String()),
  iat: Type.Optional(Type.Integer()),
  nbf: Type.Optional(Type.Integer()),
  exp: Type.Optional(Type.Integer()),
  cnf: Type.Optional(Type.Object({ jkt: Type.String() })),
  ext: Type.Optional(ext),
  token_type: Type.Optional(Type.String()),
  token_use: Type.Optional(Type.String()),
});

export const UserinfoBody = Type.Object({ sub: Type.String(), ext });
