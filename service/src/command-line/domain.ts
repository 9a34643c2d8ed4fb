import {
  type ClientDomain,
  createDomain,
  getDomain,
  isProofWaived,
  isVerifiedNow,
  limitCallbackHosts,
  listDomains,
  proofOf,
  proveDomain,
} from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, inContext, UsageError, type Verb } from "./verb.ts";

const parameters = [{ name: "domain", description: "The client domain's UUID." }];

export const domainVerbs: readonly Verb[] = [
  {
    name: "domain create",
    summary: "Add a client domain, a merchant's site, in one environment.",
    notes:
      "The environment cannot be changed later. The result says which TXT record or file proves the domain; localhost needs no proof.",
    options: {
      organization: {
        value: "uuid",
        required: true,
        description: "The organization that owns the domain.",
      },
      domain: {
        value: "host",
        required: true,
        description: "A public host name; in the profile dev, also localhost[:port].",
      },
      environment: {
        choices: ["live", "sandbox"],
        required: true,
        description: "Where the domain lives. Keys and data of live and sandbox never mix.",
      },
    },
    example: `domain create --organization ${exampleIds.organization} --domain shop.example.com --environment live`,
    run: inContext(async (ctx, input) => {
      const organizationId = input.text("organization");
      const environment = input.text("environment");
      const given = { organizationId, domain: input.text("domain"), environment };
      return withProof(ctx, await createDomain(ctx, given, actor));
    }),
  },
  {
    name: "domain list",
    summary: "List the client domains of an organization.",
    options: {
      organization: {
        value: "uuid",
        required: true,
        description: "The organization that owns the domain.",
      },
    },
    example: `domain list --organization ${exampleIds.organization}`,
    run: inContext(async (ctx, input) => {
      const domains = await listDomains(ctx, input.text("organization"));
      return domains.map((domain) => summaryOf(ctx, domain));
    }),
  },
  {
    name: "domain show",
    summary: "Show a client domain, and the TXT record or file that proves it.",
    parameters,
    example: `domain show ${exampleIds.domain}`,
    run: inContext(async (ctx, input) =>
      withProof(ctx, await getDomain(ctx, input.text("domain"))),
    ),
  },
  {
    name: "domain prove",
    summary: "Check the proof of a client domain now.",
    notes:
      "Afterwards the service checks the proof every day. If it is missing for seven days, the domain is no longer verified.",
    parameters,
    example: `domain prove ${exampleIds.domain}`,
    run: inContext(async (ctx, input) => {
      const found = await proveDomain(ctx, input.text("domain"), actor);
      return { ...summaryOf(ctx, await getDomain(ctx, input.text("domain"))), found };
    }),
  },
  {
    name: "domain callback-hosts",
    summary: "Restrict the hosts that the callbacks of orders may use.",
    notes:
      "Without a list any public host is accepted, and the wallet points out a host outside the domain. With a list, a stolen API key cannot send an order's data to another host; but it can still read that data, and change the endpoint of business events. Orders already made keep their callback. The list replaces the previous one.",
    parameters,
    options: {
      host: {
        value: "host",
        repeated: true,
        description: "A host as written in the callback's URL, with the port if the URL has one.",
      },
      any: { description: "Remove the list, so that any public host is accepted again." },
    },
    example: `domain callback-hosts ${exampleIds.domain} --host hooks.example.com --host shop.example.com:8443`,
    run: async (shell, input) => {
      const hosts = input.list("host");
      if ((hosts === undefined) !== input.flag("any"))
        throw new UsageError("give either --host, once or more, or --any");
      return shell.withContext(async (ctx) => {
        const given = { id: input.text("domain"), hosts: hosts ?? null };
        return summaryOf(ctx, await limitCallbackHosts(ctx, given, actor));
      });
    },
  },
];

function summaryOf(ctx: Ctx, domain: ClientDomain): Record<string, unknown> {
  const { id, organizationId, environment, provedAt, failingSince, callbackHosts, createdAt } =
    domain;
  return {
    id,
    organizationId,
    domain: domain.domain,
    environment,
    verified: isVerifiedNow(ctx, domain),
    provedAt,
    failingSince,
    callbackHosts,
    createdAt,
  };
}

function withProof(ctx: Ctx, domain: ClientDomain): Record<string, unknown> {
  const proof = isProofWaived(domain.domain, ctx.config.profile) ? null : proofOf(domain);
  return { ...summaryOf(ctx, domain), proof };
}
