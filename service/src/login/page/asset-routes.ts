import type { Http } from "../../platform/http/http.ts";
import { Problem } from "../../platform/http/problems.ts";
import { Type } from "../../platform/http/schema.ts";
import { takesGzip } from "./gzip.ts";
import { assetPrefix, findNamesake, pageAssets } from "./page-assets.ts";

/** The files that the pages load. */
export function assetRoutes(http: Http): void {
  http.get(
    `${assetPrefix}:name`,
    { schema: { params: Type.Object({ name: Type.String({ maxLength: 100 }) }), hide: true } },
    (request, reply) => {
      const path = `${assetPrefix}${request.params.name}`;
      const own = pageAssets.get(path);
      const asset = own ?? findNamesake(path);
      if (asset === null) throw new Problem("route_not_found");
      void reply.headers({
        "content-type": asset.contentType,
        "cache-control": own === undefined ? "no-store" : "public, max-age=31536000, immutable",
        vary: "accept-encoding",
      });
      return takesGzip(request)
        ? reply.header("content-encoding", "gzip").send(asset.gzip)
        : reply.send(asset.body);
    },
  );
}
