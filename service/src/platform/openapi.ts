import fastify, { type RouteOptions } from "fastify";
import type { Ctx } from "./context.ts";
import type { Http } from "./http.ts";
import { lazySchemas } from "./lazy-schemas.ts";

/** Serves `/openapi.json`: every route that is added from now on, from the schemas that check its requests. */
export function describeRoutes(http: Http, ctx: Pick<Ctx, "config">): void {
  const routes: RouteOptions[] = [];
  http.addHook("onRoute", (route) => {
    routes.push(route);
  });
  let document: Promise<string> | undefined;
  http.get(
    "/openapi.json",
    { exposeHeadRoute: true, schema: { hide: true } },
    async (_request, reply) => {
      document ??= writeDocument(routes, ctx.config.baseUrl);
      return reply
        .type("application/json")
        .header("cache-control", "public, max-age=300")
        .send(await document);
    },
  );
}

const handler = (): void => undefined;

/** The generator is loaded when somebody asks: it takes every process memory and time, and most are never asked. */
async function writeDocument(routes: readonly RouteOptions[], baseUrl: string): Promise<string> {
  const { default: swagger } = await import("@fastify/swagger");
  const catalogue = fastify({
    schemaController: { compilersFactory: lazySchemas },
    exposeHeadRoutes: false,
  });
  await catalogue.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "svc",
        version: "1",
        description: "Hosted identity broker: login, verified fields, business identity.",
      },
      servers: [{ url: baseUrl }],
    },
  });
  for (const { method, url, schema = {} } of routes)
    catalogue.route({ method, url, schema, handler });
  await catalogue.ready();
  return JSON.stringify(catalogue.swagger());
}
