import { apiKeyVerbs } from "./api-key.ts";
import { businessVerbs } from "./business.ts";
import { businessRecordVerbs } from "./business-record.ts";
import { chainVerbs } from "./chain.ts";
import { clientVerbs } from "./client.ts";
import { domainVerbs } from "./domain.ts";
import { installationVerbs } from "./installation.ts";
import { grantVerbs } from "./grant.ts";
import { issuerVerbs } from "./issuer.ts";
import { keyVerbs } from "./key.ts";
import { orderVerbs } from "./order.ts";
import { organizationVerbs } from "./organization.ts";
import { packageVerbs } from "./package.ts";
import { simulateVerbs } from "./simulate.ts";
import { userVerbs } from "./user.ts";
import type { Verb } from "./verb.ts";

/** Every verb, in the order of the help. */
export const verbs: readonly Verb[] = [
  ...installationVerbs,
  ...chainVerbs,
  ...organizationVerbs,
  ...domainVerbs,
  ...clientVerbs,
  ...apiKeyVerbs,
  ...packageVerbs,
  ...grantVerbs,
  ...orderVerbs,
  ...businessVerbs,
  ...businessRecordVerbs,
  ...issuerVerbs,
  ...keyVerbs,
  ...userVerbs,
  ...simulateVerbs,
];
