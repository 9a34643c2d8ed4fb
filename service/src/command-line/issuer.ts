import {
  createIssuer,
  createIssuerKey,
  distrustIssuer,
  foreseeDistrust,
  listIssuerKeys,
  listIssuers,
  revokeIssuerKey,
} from "../credentials/index.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, dryRun, inContext, keyIdOf, timeOf, type Verb } from "./verb.ts";

const issuer = { value: "uuid", required: true, description: "The issuer." } as const;

export const issuerVerbs: readonly Verb[] = [
  {
    name: "issuer create",
    summary: "Open an issuer: somebody who verifies documents and issues credentials.",
    notes: "A running service gets its role on chain; its credentials count from then on.",
    options: {
      name: { value: "text", required: true, description: "Its name, as users see it." },
      environment: {
        choices: ["live", "sandbox"],
        required: true,
        description: "The side on which its credentials count; it never changes.",
      },
      address: {
        value: "address",
        description: "How the registry on chain names it. Default: derived from its UUID.",
      },
    },
    example: 'issuer create --name "Example Ident AG" --environment live',
    run: inContext(async (ctx, input) => {
      const address = input.optional("address");
      const given = { name: input.text("name"), environment: input.text("environment") };
      return createIssuer(ctx, address === undefined ? given : { ...given, address }, actor);
    }),
  },
  {
    name: "issuer list",
    summary: "List issuers, built-in ones included.",
    example: "issuer list",
    run: inContext(listIssuers),
  },
  {
    name: "issuer key create",
    summary: "Make a key of the issuer API.",
    notes: "It is shown only this once.",
    isToldOnce: true,
    options: {
      issuer,
      name: { value: "text", required: true, description: "What it is for." },
    },
    example: `issuer key create --issuer ${exampleIds.issuer} --name backend`,
    run: inContext(async (ctx, input) => {
      const given = { issuerId: input.text("issuer"), name: input.text("name") };
      return createIssuerKey(ctx, given, actor);
    }),
  },
  {
    name: "issuer key list",
    summary: "List the live keys of an issuer, with their last use.",
    options: { issuer },
    example: `issuer key list --issuer ${exampleIds.issuer}`,
    run: inContext(async (ctx, input) => listIssuerKeys(ctx, input.text("issuer"))),
  },
  {
    name: "issuer key revoke",
    summary: "Revoke a key of the issuer API at once.",
    parameters: [{ name: "key", description: "Its id: the 12 characters after svc_issuer_." }],
    example: "issuer key revoke 4kQz81LmXw0T",
    run: inContext(async (ctx, input) => {
      const id = keyIdOf(input);
      await revokeIssuerKey(ctx, id, actor);
      return { revoked: id };
    }),
  },
  {
    name: "issuer distrust",
    summary: "Distrust an issuer, from a given time on.",
    notes:
      "What it attested at or after that time stops counting at once, and it may not issue any more. A running service tells the chain and the merchants who were given values. This cannot be undone; the time can only be moved further back.",
    parameters: [{ name: "issuer", description: "Its UUID." }],
    options: {
      from: { value: "seconds", description: "Unix seconds. Default: now." },
      "dry-run": dryRun,
    },
    example: `issuer distrust ${exampleIds.issuer} --from 1795000000`,
    run: inContext(async (ctx, input) => {
      const from = timeOf("from", input.optional("from")) ?? ctx.clock.now();
      const given = { issuerId: input.text("issuer"), from };
      if (input.flag("dry-run")) return foreseeDistrust(ctx, given);
      return distrustIssuer(ctx, given, actor);
    }),
  },
];
