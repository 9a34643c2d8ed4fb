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

const issuer = { value: "uuid", required: true, description: "The issuer's UUID." } as const;

export const issuerVerbs: readonly Verb[] = [
  {
    name: "issuer create",
    summary: "Create an issuer: a party that verifies documents and issues credentials.",
    notes: "A running service registers the issuer on chain; its credentials count from then on.",
    options: {
      name: { value: "text", required: true, description: "The issuer's name, as users see it." },
      environment: {
        choices: ["live", "sandbox"],
        required: true,
        description: "The environment in which its credentials count; it cannot be changed later.",
      },
      address: {
        value: "address",
        description:
          "The address that stands for the issuer in the registry on chain. Default: derived from its UUID.",
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
    summary: "List issuers, including built-in ones.",
    example: "issuer list",
    run: inContext(listIssuers),
  },
  {
    name: "issuer key create",
    summary: "Create a key for the issuer API.",
    notes: "The key is shown only once.",
    isToldOnce: true,
    options: {
      issuer,
      name: { value: "text", required: true, description: "A name that says what the key is for." },
    },
    example: `issuer key create --issuer ${exampleIds.issuer} --name backend`,
    run: inContext(async (ctx, input) => {
      const given = { issuerId: input.text("issuer"), name: input.text("name") };
      return createIssuerKey(ctx, given, actor);
    }),
  },
  {
    name: "issuer key list",
    summary: "List the keys of an issuer that are not revoked, with the time of their last use.",
    options: { issuer },
    example: `issuer key list --issuer ${exampleIds.issuer}`,
    run: inContext(async (ctx, input) => listIssuerKeys(ctx, input.text("issuer"))),
  },
  {
    name: "issuer key revoke",
    summary: "Revoke a key of the issuer API immediately.",
    parameters: [
      { name: "key", description: "The key's id: the 12 characters after svc_issuer_." },
    ],
    example: "issuer key revoke 4kQz81LmXw0T",
    run: inContext(async (ctx, input) => {
      const id = keyIdOf(input);
      await revokeIssuerKey(ctx, id, actor);
      return { revoked: id };
    }),
  },
  {
    name: "issuer distrust",
    summary: "Stop trusting what an issuer attested from a given time on.",
    notes:
      "What the issuer attested at or after that time stops counting immediately, and it cannot issue any more. A running service records this on chain and tells the merchants who received values. This cannot be undone; another call can only move the time further back.",
    parameters: [{ name: "issuer", description: "The issuer's UUID." }],
    options: {
      from: { value: "seconds", description: "The time, in Unix seconds. Default: now." },
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
