// What `npm start` runs: see demo.ts.
import { resolveSourcesByName } from "@svc/service/source-imports";

resolveSourcesByName();
await import("./demo.ts");
