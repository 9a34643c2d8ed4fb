import { authorizationSections } from "./authorization-rows.ts";
import { bearerSections } from "./bearer-rows.ts";
import { clientSections } from "./client-rows.ts";
import { dpopSections } from "./dpop-rows.ts";
import { loginSections } from "./login-rows.ts";
import { pushedSections } from "./pushed-rows.ts";
import type { Section } from "./row.ts";
import { tokenSections } from "./token-rows.ts";

/** Every request that both servers are asked. */
export const table: readonly Section[] = [
  ...authorizationSections,
  ...loginSections,
  ...pushedSections,
  ...tokenSections,
  ...clientSections,
  ...dpopSections,
  ...bearerSections,
];
