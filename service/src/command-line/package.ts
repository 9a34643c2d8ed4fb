import {
  type Balance,
  buyPackage,
  getOrganization,
  getPackage,
  type KycPackage,
  listPackages,
  makeNextSigningKey,
  parseEnvironment,
  readBalance,
  switchSigningKey,
  topUp,
} from "../accounts/index.ts";
import { chfOfRappen, rappenOfChf } from "../platform/money.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, inContext, UsageError, wholeNumber, type Option, type Verb } from "./verb.ts";

const parameters = [{ name: "package", description: "The package's UUID." }];
const organization: Option = {
  value: "uuid",
  required: true,
  description: "The organization's UUID.",
};
const environment: Option = {
  choices: ["live", "sandbox"],
  description: "Which balance: real CHF (live) or play money (sandbox). Default: live.",
};

const moneyVerbs: readonly Verb[] = [
  {
    name: "top-up",
    summary: "Credit a payment to an organization's balance.",
    options: {
      organization,
      chf: {
        value: "amount",
        required: true,
        description: "The amount in CHF, with at most two decimals.",
      },
      environment,
      payment: {
        value: "text",
        description:
          "A name for the payment, so that it is credited only once: the same name is refused the next time.",
      },
    },
    example: `top-up --organization ${exampleIds.organization} --chf 500 --payment invoice-2026-17`,
    run: async (shell, input) => {
      const payment = input.optional("payment");
      const given = {
        organizationId: input.text("organization"),
        environment: input.optional("environment") ?? "live",
        amountRappen: amountOf("--chf", input.text("chf")),
        ...(payment === undefined ? {} : { subject: payment }),
      };
      return shell.withContext(async (ctx) => balanceOf(await topUp(ctx, given, actor)));
    },
  },
  {
    name: "balance",
    summary: "Show how much money an organization has available, on hold and spent.",
    options: { organization, environment },
    example: `balance --organization ${exampleIds.organization}`,
    run: inContext(async (ctx, input) => {
      const side = parseEnvironment(input.optional("environment") ?? "live");
      const { id } = await getOrganization(ctx, input.text("organization"));
      return balanceOf(await readBalance(ctx, { organizationId: id, environment: side }));
    }),
  },
];

const productVerbs: readonly Verb[] = [
  {
    name: "package buy",
    summary: "Buy a KYC package from the balance.",
    notes: "The signing key of the package's webhooks is shown only once.",
    isToldOnce: true,
    options: {
      domain: {
        value: "uuid",
        required: true,
        description: "The client domain that the package is for.",
      },
      name: { value: "text", required: true, description: "The package's name." },
      field: {
        value: "name",
        repeated: true,
        description:
          "A field that every order of the package asks for. Without this option, each order names its own fields.",
      },
      transfers: {
        value: "number",
        required: true,
        description: "The number of transfers in the package.",
      },
      chf: {
        value: "amount",
        required: true,
        description: "The price in CHF, which is taken from the balance now.",
      },
    },
    example: `package buy --domain ${exampleIds.domain} --name Age --field IDCARD_DOB --transfers 100 --chf 80`,
    run: async (shell, input) => {
      const given = {
        clientDomainId: input.text("domain"),
        name: input.text("name"),
        fields: input.list("field") ?? null,
        transfers: wholeNumber("--transfers", input.text("transfers")),
        priceRappen: amountOf("--chf", input.text("chf")),
      };
      return shell.withContext(async (ctx) => {
        const { kycPackage, signingKey } = await buyPackage(ctx, given, actor);
        return { ...shown(kycPackage), signingKey };
      });
    },
  },
  {
    name: "package list",
    summary: "List the packages of a client domain.",
    options: { domain: { value: "uuid", required: true, description: "The client domain." } },
    example: `package list --domain ${exampleIds.domain}`,
    run: inContext(async (ctx, input) =>
      (await listPackages(ctx, input.text("domain"))).map(shown),
    ),
  },
  {
    name: "package show",
    summary: "Show a package and how many transfers are left.",
    parameters,
    example: `package show ${exampleIds.kycPackage}`,
    run: inContext(async (ctx, input) => shown(await getPackage(ctx, input.text("package")))),
  },
  {
    name: "package next-key",
    summary: "Create the next signing key of a package's webhooks.",
    notes:
      "The key is shown only once. Webhooks are signed with it only after `package switch-key`; give it to the receiver before that.",
    isToldOnce: true,
    parameters,
    options: {
      replace: {
        description: "Replace a next key that was created earlier but got lost or leaked.",
      },
    },
    example: `package next-key ${exampleIds.kycPackage}`,
    run: inContext(async (ctx, input) => ({
      nextSigningKey: await makeNextSigningKey(
        ctx,
        { id: input.text("package"), isReplacing: input.flag("replace") },
        actor,
      ),
    })),
  },
  {
    name: "package switch-key",
    summary: "Sign a package's webhooks with its next key from now on.",
    parameters,
    example: `package switch-key ${exampleIds.kycPackage}`,
    run: inContext(async (ctx, input) => {
      await switchSigningKey(ctx, input.text("package"), actor);
      return shown(await getPackage(ctx, input.text("package")));
    }),
  },
];

export const packageVerbs: readonly Verb[] = [...moneyVerbs, ...productVerbs];

/** @throws {UsageError} */
function amountOf(name: string, text: string): bigint {
  const rappen = rappenOfChf(text);
  if (rappen === null) throw new UsageError(`${name} must be an amount such as 500 or 79.90`);
  return rappen;
}

function shown({ priceRappen, ...rest }: KycPackage) {
  return { ...rest, priceChf: chfOfRappen(priceRappen) };
}

function balanceOf(balance: Balance) {
  return {
    availableChf: chfOfRappen(balance.availableRappen),
    heldChf: chfOfRappen(balance.heldRappen),
    spentChf: chfOfRappen(balance.spentRappen),
    packagesChf: chfOfRappen(balance.packagesRappen),
  };
}
