// The form of webhooks as `/openapi.json` describes it: whatever the tests receive must have exactly these members.
import assert from "node:assert/strict";
import { isRecord } from "@svc/protocol";
import { businessWebhooks } from "../service/src/kyb/event/event-schemas.ts";
import { orderWebhooks } from "../service/src/kyc/event-schemas.ts";
import { lazySchemas } from "../service/src/platform/http/lazy-schemas.ts";

const compile = lazySchemas.buildValidator(
  {},
  { customOptions: { allErrors: true, coerceTypes: false, removeAdditional: false } },
);

/** The schema without room for members that it does not name. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (!isRecord(schema)) return schema;
  const members = Object.entries(schema).map(([name, each]) => [name, closed(each)]);
  const own = schema["type"] === "object" ? { additionalProperties: false } : {};
  return { ...Object.fromEntries(members), ...own };
}

const checks = new Map(
  [...orderWebhooks, ...businessWebhooks].map(({ name, body }) => [
    name,
    compile({ schema: closed(body), method: "POST", url: "/", httpPart: "body" }),
  ]),
);

/** @throws {Error} where a body is not as the document of the API says */
export function checkWebhookForm(body: string): void {
  const parsed = JSON.parse(body) as { event: string };
  const check = checks.get(parsed.event);
  assert.ok(check, `${parsed.event} is not in the document`);
  assert.ok(check(parsed), `${body.slice(0, 300)}: ${JSON.stringify(check.errors)}`);
}
