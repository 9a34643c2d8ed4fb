import { readFileSync } from "node:fs";
import {
  acrs,
  addSecret,
  authenticationMethods,
  type ClientKeySet,
  type ClientRow,
  type ClientSettings,
  createClient,
  disableClient,
  getClient,
  listClients,
  parseKeySet,
  revokeSecret,
  type SecretRow,
  updateClient,
} from "../accounts/index.ts";
import { exampleIds } from "./example-ids.ts";
import {
  actor,
  choiceOf,
  inContext,
  switchOf,
  UsageError,
  type Input,
  type Option,
  type Verb,
} from "./verb.ts";

const settingOptions: Record<string, Option> = {
  "redirect-uri": {
    value: "url",
    repeated: true,
    description:
      "An address that the browser may return to after a login, compared character by character.",
  },
  "post-logout-redirect-uri": {
    value: "url",
    repeated: true,
    description: "An address that the browser may return to after a logout.",
  },
  audience: {
    value: "text",
    repeated: true,
    description:
      "A URI or plain name that access tokens may be requested for; in production, not one that another organization uses.",
  },
  "backchannel-logout-uri": {
    value: "url",
    description: "The address to call when a login at this client ends.",
  },
  jwks: {
    value: "file",
    description: "A file with the public keys of a private_key_jwt client, as a JSON Web Key Set.",
  },
  "jwks-uri": {
    value: "url",
    description: "Instead of --jwks: the address to fetch these keys from.",
  },
  "number-matching": {
    value: "on|off",
    description: "Whether the user has to type the two digits shown on the page into the wallet.",
  },
  "pkce-required": {
    value: "on|off",
    description:
      "Whether PKCE is required. Turn it off only for conformance suites; production refuses that.",
  },
  "dpop-required": {
    value: "on|off",
    description: "Whether tokens must be bound by DPoP.",
  },
  "pushed-request-required": {
    value: "on|off",
    description: "Whether authorization requests must be pushed.",
  },
  "id-token-algorithm": {
    value: "RS256|ES256",
    description: "The algorithm that signs id tokens.",
  },
  "acr-minimum": {
    value: "urn",
    description: `The weakest proximity that a login may have: ${acrs.join(", ")}.`,
  },
};

/** Settings that a new client has unless it is given others; an update leaves them as they are. */
const settingDefaults: Readonly<Record<string, string>> = {
  "number-matching": "on",
  "pkce-required": "on",
  "dpop-required": "off",
  "pushed-request-required": "off",
  "id-token-algorithm": "RS256",
};

const newClientOptions: Record<string, Option> = Object.fromEntries(
  Object.entries(settingOptions).map(([name, option]) => {
    const fallback = settingDefaults[name];
    const description =
      fallback === undefined ? option.description : `${option.description} Default: ${fallback}.`;
    return [name, { ...option, description }];
  }),
);

const parameters = [{ name: "client", description: "The client's oauth2ClientID." }];

export const clientVerbs: readonly Verb[] = [
  {
    name: "client create",
    summary: "Register an OAuth client for a client domain.",
    notes: "The client's secret, if it has one, is shown only once.",
    isToldOnce: true,
    options: {
      domain: { value: "uuid", required: true, description: "The client domain." },
      name: {
        value: "text",
        required: true,
        description: "The client's name, as wallets show it.",
      },
      type: {
        value: "type",
        description: `How the client authenticates: ${authenticationMethods.join(", ")}. Default: client_secret_basic.`,
      },
      ...newClientOptions,
    },
    example: `client create --domain ${exampleIds.domain} --name Shop --redirect-uri https://shop.example.com/callback --audience https://api.example.com`,
    run: inContext(async (ctx, input) => {
      const type = input.optional("type") ?? "client_secret_basic";
      const given = {
        ...readSettings(input),
        clientDomainId: input.text("domain"),
        name: input.text("name"),
        authenticationMethod: choiceOf("--type", type, authenticationMethods),
      };
      const { client, secret } = await createClient(ctx, given, actor);
      return { ...toWire(client), ...(secret === null ? {} : { secret }) };
    }),
  },
  {
    name: "client list",
    summary: "List the OAuth clients of a client domain.",
    options: { domain: { value: "uuid", required: true, description: "The client domain." } },
    example: `client list --domain ${exampleIds.domain}`,
    run: inContext(async (ctx, input) => {
      const clients = await listClients(ctx, input.text("domain"));
      return clients.map(toSummary);
    }),
  },
  {
    name: "client show",
    summary: "Show an OAuth client with all its settings.",
    parameters,
    example: `client show ${exampleIds.client}`,
    run: inContext(async (ctx, input) => toWire(await getClient(ctx, input.text("client")))),
  },
  {
    name: "client update",
    summary: "Change the settings of an OAuth client.",
    notes:
      'Settings that are not given stay as they are. A list replaces the previous one; "" empties a list or removes a setting.',
    parameters,
    options: {
      name: { value: "text", description: "The client's name, as wallets show it." },
      type: {
        value: "type",
        description:
          "client_secret_basic or client_secret_post; clients of other types cannot change theirs.",
      },
      ...settingOptions,
    },
    example: `client update ${exampleIds.client} --redirect-uri https://shop.example.com/callback --number-matching off`,
    run: inContext(async (ctx, input) => {
      const changes = { ...readSettings(input), ...readIdentity(input) };
      if (Object.keys(changes).length === 0) throw new UsageError("no setting is given");
      return toWire(await updateClient(ctx, { clientId: input.text("client"), changes }, actor));
    }),
  },
  {
    name: "client disable",
    summary: "Disable an OAuth client permanently.",
    notes:
      "From now on the client cannot begin logins or get tokens, and userinfo and introspection refuse its tokens. Anyone who checks only the signature of an access token accepts it until it expires. No back-channel logout is sent to the client.",
    parameters,
    example: `client disable ${exampleIds.client}`,
    run: inContext(async (ctx, input) => {
      await disableClient(ctx, input.text("client"), actor);
      return toWire(await getClient(ctx, input.text("client")));
    }),
  },
  {
    name: "client secret-add",
    summary: "Add a second secret to a client, to replace the first without downtime.",
    notes: "The secret is shown only once. A client has at most two.",
    isToldOnce: true,
    parameters,
    example: `client secret-add ${exampleIds.client}`,
    run: inContext(async (ctx, input) => addSecret(ctx, input.text("client"), actor)),
  },
  {
    name: "client secret-revoke",
    summary: "Revoke a secret of a client immediately.",
    parameters: [
      ...parameters,
      { name: "secret", description: "The secret's id, as `client show` prints it." },
    ],
    example: `client secret-revoke ${exampleIds.client} 0199c3a0-7c3e-7b21-9d55-a2e1f3b4c5d6`,
    run: inContext(async (ctx, input) => {
      const secretId = input.text("secret");
      await revokeSecret(ctx, { clientId: input.text("client"), secretId }, actor);
      return { revoked: secretId };
    }),
  },
];

function readSettings(input: Input): Partial<ClientSettings> {
  const algorithm = input.optional("id-token-algorithm");
  return present({
    redirectUris: listOf(input, "redirect-uri"),
    postLogoutRedirectUris: listOf(input, "post-logout-redirect-uri"),
    audiences: listOf(input, "audience"),
    backchannelLogoutUri: clearable(input.optional("backchannel-logout-uri"), String),
    jwks: clearable(input.optional("jwks"), readKeySet),
    jwksUri: clearable(input.optional("jwks-uri"), String),
    numberMatching: switchOf("number-matching", input.optional("number-matching")),
    pkceRequired: switchOf("pkce-required", input.optional("pkce-required")),
    dpopRequired: switchOf("dpop-required", input.optional("dpop-required")),
    pushedRequestRequired: switchOf(
      "pushed-request-required",
      input.optional("pushed-request-required"),
    ),
    idTokenAlgorithm:
      algorithm === undefined
        ? undefined
        : choiceOf("--id-token-algorithm", algorithm, ["RS256", "ES256"]),
    acrMinimum: clearable(input.optional("acr-minimum"), (text) =>
      choiceOf("--acr-minimum", text, acrs),
    ),
  });
}

function readIdentity(input: Input): Partial<ClientSettings> {
  const type = input.optional("type");
  return present({
    name: input.optional("name"),
    authenticationMethod:
      type === undefined ? undefined : choiceOf("--type", type, authenticationMethods),
  });
}

/** Leaves out settings that were not given. */
function present(settings: {
  [K in keyof ClientSettings]?: ClientSettings[K] | undefined;
}): Partial<ClientSettings> {
  const entries = Object.entries(settings).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Partial<ClientSettings>;
}

function listOf(input: Input, name: string): readonly string[] | undefined {
  return input.list(name)?.filter((value) => value !== "");
}

/** Undefined if it was not given, null if it was given as "". */
function clearable<T>(text: string | undefined, read: (text: string) => T): T | null | undefined {
  if (text === undefined) return undefined;
  return text === "" ? null : read(text);
}

function readKeySet(path: string): ClientKeySet {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    throw new UsageError(`${path} is not a readable JSON file`);
  }
  return parseKeySet(value);
}

/** A client in the words of the protocol. */
function toWire(client: ClientRow & { secrets: readonly SecretRow[] }): Record<string, unknown> {
  const { authenticationMethod, name, ...settings } = client.settings;
  return {
    oauth2ClientID: client.id,
    clientDomainId: client.clientDomainId,
    name,
    tokenEndpointAuthMethod: authenticationMethod,
    ...settings,
    secrets: client.secrets,
    createdAt: client.createdAt,
    disabledAt: client.disabledAt,
  };
}

function toSummary(client: ClientRow): Record<string, unknown> {
  const { authenticationMethod, name, redirectUris, audiences, numberMatching } = client.settings;
  return {
    oauth2ClientID: client.id,
    name,
    tokenEndpointAuthMethod: authenticationMethod,
    redirectUris,
    audiences,
    numberMatching,
    disabledAt: client.disabledAt,
  };
}
