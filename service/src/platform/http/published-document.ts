import { hash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Http } from "./http.ts";
import { Type } from "./schema.ts";

/** How old a copy may be; keys are published long before they sign. */
const cacheSeconds = 300;
const preflightSeconds = 600;

/** A document as it is sent, with the tag of this version. */
export interface PublishedDocument {
  readonly body: string;
  readonly etag: string;
}

/** Serialises a document once for all callers. */
export function serialiseDocument(document: object): PublishedDocument {
  const body = JSON.stringify(document);
  return { body, etag: `"${hash("sha256", body, "base64url").slice(0, 27)}"` };
}

/** A key set as it is sent (RFC 7517 section 5). */
export function serialiseKeySet(
  keys: readonly {
    readonly kid: string;
    readonly algorithm: string;
    readonly publicJwk: Readonly<Record<string, string>>;
  }[],
): PublishedDocument {
  return serialiseDocument({
    keys: keys.map(({ kid, algorithm, publicJwk }) => ({
      ...publicJwk,
      use: "sig",
      alg: algorithm,
      kid,
    })),
  });
}

/** A document below `/.well-known/`, and how the reference describes it. */
export interface Publication {
  readonly name: string;
  readonly read: () => PublishedDocument | Promise<PublishedDocument>;
  readonly tag: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
}

const response = {
  200: {
    description: "The document.",
    content: { "application/json": { schema: Type.Object({}) } },
  },
  304: Type.Null({ description: "The document is still the version that `If-None-Match` names." }),
};

/** Publishes a document for everybody: programs, caches, and scripts of every origin. */
export function publish(http: Http, { name, read, tag, ...about }: Publication): void {
  const path = `/.well-known/${name}`;
  const schema = { response, tags: [tag], ...about };
  http.get(path, { exposeHeadRoute: true, schema }, (request, reply) => {
    const document = read();
    return document instanceof Promise
      ? document.then((each) => send(each, request, reply))
      : send(document, request, reply);
  });
  // Any header that a script or its tracing adds is harmless here.
  http.options(path, { schema: { hide: true } }, (_request, reply) =>
    reply
      .code(204)
      .headers({
        "access-control-allow-origin": "*",
        "access-control-allow-methods": "GET",
        "access-control-allow-headers": "*",
        "access-control-max-age": String(preflightSeconds),
      })
      .send(),
  );
}

function send(
  { body, etag }: PublishedDocument,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  void reply.headers({
    etag,
    "cache-control": `public, max-age=${cacheSeconds}`,
    "access-control-allow-origin": "*",
  });
  if (isKnown(etag, request.headers["if-none-match"])) return reply.code(304).send();
  return reply.type("application/json").send(body);
}

/** RFC 9110 section 13.1.2: `*` matches every version; a list matches if it contains this one, marked weak or not. */
function isKnown(etag: string, asked: string | undefined): boolean {
  return asked !== undefined && (asked.trim() === "*" || asked.includes(etag));
}
