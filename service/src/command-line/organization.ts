import {
  addMember,
  createOrganization,
  getOrganization,
  listMembers,
  listOrganizations,
  type OrganizationLimits,
  removeMember,
  setLimits,
} from "../accounts/index.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, inContext, wholeNumber, type Input, type Verb } from "./verb.ts";

const organization = {
  value: "uuid",
  required: true,
  description: "The organization's UUID.",
} as const;
const exampleUser = "0x52908400098527886e0f7030069857d2e4169ee7";

export const organizationVerbs: readonly Verb[] = [
  {
    name: "organization create",
    summary: "Create an organization: the account of a company that integrates the service.",
    options: {
      name: {
        value: "text",
        required: true,
        description: "The organization's name, as people see it.",
      },
    },
    example: 'organization create --name "Example AG"',
    run: inContext(async (ctx, input) =>
      createOrganization(ctx, { name: input.text("name") }, actor),
    ),
  },
  {
    name: "organization list",
    summary: "List organizations in the order of their creation.",
    options: {
      after: {
        value: "uuid",
        description:
          "Only organizations after this one; to get the next page, pass the last UUID of the current one.",
      },
      limit: { value: "number", description: "How many to show, from 1 to 100. Default: 100." },
    },
    example: "organization list --limit 20",
    run: async (shell, input) => {
      const after = input.optional("after");
      const limit = input.optional("limit");
      return shell.withContext(async (ctx) =>
        listOrganizations(ctx, {
          ...(after === undefined ? {} : { after }),
          ...(limit === undefined ? {} : { limit: wholeNumber("--limit", limit) }),
        }),
      );
    },
  },
  {
    name: "organization show",
    summary: "Show an organization and its members.",
    parameters: [{ name: "organization", description: "The organization's UUID." }],
    example: `organization show ${exampleIds.organization}`,
    run: inContext(async (ctx, input) => {
      const found = await getOrganization(ctx, input.text("organization"));
      return { ...found, members: await listMembers(ctx, found.id) };
    }),
  },
  {
    name: "organization limits",
    summary: "Show or change an organization's own rate limits.",
    notes:
      "Without options the limits are only shown. Null means that the setting applies: `LIMIT_READS_PER_SECOND`, `LIMIT_CREATES_PER_SECOND` or `LIMIT_LOGINS_PER_CLIENT_MINUTE`; `default` returns to it. Running processes apply the change within milliseconds, or within a minute if they miss the notification.",
    parameters: [{ name: "organization", description: "The organization's UUID." }],
    options: {
      reads: { value: "number|default", description: "Reads per second of each API key." },
      creates: { value: "number|default", description: "Creations per second of each API key." },
      logins: {
        value: "number|default",
        description: "Logins per minute that can be started at each client.",
      },
    },
    example: `organization limits ${exampleIds.organization} --reads 500 --logins default`,
    run: async (shell, input) => {
      const changes = limitsOf(input);
      return shell.withContext(async (ctx) =>
        setLimits(ctx, { organizationId: input.text("organization"), changes }, actor),
      );
    },
  },
  {
    name: "organization member add",
    summary: "Add a member to an organization, or change the role of an existing one.",
    notes:
      "The first member must be an owner. The last owner cannot be removed or get another role.",
    options: {
      organization,
      user: { value: "address", required: true, description: "The member's address." },
      role: {
        choices: ["owner", "developer", "viewer"],
        required: true,
        description: "The member's role, which is recorded and listed.",
      },
    },
    example: `organization member add --organization ${exampleIds.organization} --user ${exampleUser} --role owner`,
    run: inContext(async (ctx, input) => {
      const organizationId = input.text("organization");
      const given = { organizationId, user: input.text("user"), role: input.text("role") };
      return addMember(ctx, given, actor);
    }),
  },
  {
    name: "organization member remove",
    summary: "Remove a member from an organization. The last owner cannot be removed.",
    options: {
      organization,
      user: { value: "address", required: true, description: "The member's address." },
    },
    example: `organization member remove --organization ${exampleIds.organization} --user ${exampleUser}`,
    run: inContext(async (ctx, input) => {
      const given = { organizationId: input.text("organization"), user: input.text("user") };
      await removeMember(ctx, given, actor);
      return { removed: given.user };
    }),
  },
  {
    name: "organization member list",
    summary: "List the members of an organization.",
    options: { organization },
    example: `organization member list --organization ${exampleIds.organization}`,
    run: inContext(async (ctx, input) => listMembers(ctx, input.text("organization"))),
  },
];

const limitOptions = {
  reads: "readsPerSecond",
  creates: "createsPerSecond",
  logins: "loginsPerClientMinute",
} as const;

/** @throws {UsageError} */
function limitsOf(input: Input): Partial<OrganizationLimits> {
  const changes = Object.entries(limitOptions).flatMap(([option, name]) => {
    const text = input.optional(option);
    if (text === undefined) return [];
    return [[name, text === "default" ? null : wholeNumber(`--${option}`, text)] as const];
  });
  return Object.fromEntries(changes);
}
