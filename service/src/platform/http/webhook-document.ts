import { type TObject, Type } from "./schema.ts";

/** An event that merchants get, for the `webhooks` of `/openapi.json` (OpenAPI 3.1). */
export interface WebhookAbout {
  /** The `event` of its body. */
  readonly name: string;
  readonly summary: string;
  readonly body: TObject;
  /** The header that signs it, beside those of Standard Webhooks. */
  readonly signature: { readonly header: string; readonly description: string };
}

declare module "fastify" {
  interface FastifyInstance {
    /** The events in `/openapi.json`; routes add theirs. */
    readonly webhooks: WebhookAbout[];
  }
}

/** Headers of each delivery, whatever the event. */
const commonHeaders = {
  "Svc-Event-Id": "The event's id: the same in every delivery.",
  "Svc-Delivery-Attempt": "The number of the attempt, from 1.",
  "webhook-id": "The same as `Svc-Event-Id`, for libraries of Standard Webhooks.",
  "webhook-timestamp": "When the attempt began, Unix seconds.",
  "webhook-signature": "The signatures, separated by spaces: `v1,<Base64>`.",
};

/**
 * A tag that no route has: openapi-generator writes a file for each tag, first of the routes and then, over it, of the
 * webhooks.
 */
export const webhookTag = {
  name: "webhooks",
  description: "What you receive, and the headers with its signatures; see `webhooks.md`.",
};

/** The `webhooks` of the document. */
export function describeWebhooks(webhooks: readonly WebhookAbout[]): Record<string, object> {
  return Object.fromEntries(webhooks.map((each) => [each.name, { post: describe(each) }]));
}

function describe({ name, summary, body, signature }: WebhookAbout): object {
  const headers = { [signature.header]: signature.description, ...commonHeaders };
  return {
    operationId: `on${name.replaceAll(/(?:^|[._])([a-z])/g, (_all, first: string) => first.toUpperCase())}`,
    summary,
    tags: [webhookTag.name],
    security: [],
    parameters: Object.entries(headers).map(([header, meaning]) => ({
      name: header,
      in: "header",
      required: true,
      description: meaning,
      schema: Type.String(),
    })),
    requestBody: { required: true, content: { "application/json": { schema: body } } },
    responses: {
      "2XX": {
        description:
          "The event is accepted. After any other answer, or no answer in time, it is sent again.",
      },
    },
  };
}
