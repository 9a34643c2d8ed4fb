// What `npm start` runs: see demo.ts.
import { resolveSourcesByName } from "@svc/service/source-imports";

resolveSourcesByName();
const { runDemo } = await import("./demo.ts");
await runDemo();
