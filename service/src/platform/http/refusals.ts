import { type TObject, Type } from "./schema.ts";
import { type OAuthCode, type Reason, statusOf } from "./problems.ts";

/** The envelope of an error (decisions section 1, Errors), as `answerEnvelopeError` writes it. */
function errorBody(description: string): TObject {
  const members = {
    code: Type.Integer({ description: "The HTTP status." }),
    reason: Type.String({ description: "A code that never changes, for programs to branch on." }),
    message: Type.String({ description: "An explanation for people." }),
    requestId: Type.String({ description: "Also in the header X-Request-Id." }),
    details: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          "What the reason is about, such as the `fields` at fault; absent if there is nothing to add.",
      }),
    ),
  };
  const success = Type.Literal(false, {
    description: "Always false, which tells a refusal from a success.",
  });
  const error = Type.Object(members, { description: "Why the call was refused." });
  return Type.Object({ success, error }, { title: "Refusal", description });
}

function oauthErrorBody(description: string): TObject {
  const members = {
    error: Type.String({ description: "A code that never changes, for programs to branch on." }),
    error_description: Type.String({ description: "An explanation for people." }),
  };
  return Type.Object(members, { title: "OAuthError", description });
}

/** Refusals that any route with a JSON body may give beside its own. */
export const bodyReasons = [
  "invalid_request",
  "malformed_request",
  "body_too_large",
  "unsupported_media_type",
] as const satisfies readonly Reason[];

/** Refusals that any route behind a key, of a client domain or an issuer, may give beside its own. */
export const keyReasons = [
  "apikey_missing",
  "apikey_invalid",
  "rate_limited",
] as const satisfies readonly Reason[];

/** The refusals of a route for `schema.response`, one answer for each status, whose description lists the reasons. */
export function refusals(...reasons: readonly Reason[]): Record<number, TObject> {
  const byStatus = Object.groupBy(reasons, (reason) => String(statusOf(reason)));
  return describeEach(byStatus, errorBody);
}

/** As {@link refusals} for the routes that answer in the shape of RFC 6749 section 5.2. */
export function oauthRefusals(
  codes: Readonly<Record<number, readonly OAuthCode[]>>,
): Record<number, TObject> {
  return describeEach(codes, oauthErrorBody);
}

/** As {@link refusals} for the routes that a browser shows: a page says what went wrong. */
export function refusalPages(
  statuses: Readonly<Record<number, string>>,
): Record<number, ReturnType<typeof htmlPage>> {
  const pages = Object.entries(statuses).map(([status, text]) => [status, htmlPage(text)]);
  return Object.fromEntries(pages) as Record<number, ReturnType<typeof htmlPage>>;
}

/** An answer in HTML. */
export function htmlPage(description: string): {
  description: string;
  content: Record<string, { schema: object }>;
} {
  return { description, content: { "text/html": { schema: Type.String() } } };
}

function describeEach(
  reasons: Readonly<Partial<Record<string, readonly string[]>>>,
  body: (description: string) => TObject,
): Record<number, TObject> {
  const answers = Object.entries(reasons).map(([status, list = []]) => [
    status,
    body(list.map((each) => `\`${each}\``).join(", ")),
  ]);
  return Object.fromEntries(answers) as Record<number, TObject>;
}
