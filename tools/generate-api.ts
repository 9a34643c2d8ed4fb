// Writes docs/reference/api.md from /openapi.json: node --conditions=source tools/generate-api.ts
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { isRecord } from "@svc/protocol";
import { answersOfAnyRoute } from "../service/src/platform/http/openapi.ts";
import { routeTags } from "../service/src/platform/http/route-tags.ts";
import { openWorld } from "../test/world.ts";
import { code, page, table } from "./markdown.ts";

export const apiPage = join(import.meta.dirname, "../docs/reference/api.md");

interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly string[];
  readonly const?: string;
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

interface Answer {
  readonly description: string;
  readonly content?: Content;
}

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content; readonly required?: boolean };
  readonly responses: Readonly<Record<string, Answer>>;
}

/** One route of the OpenAPI document. */
export interface Route {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** The OpenAPI document. */
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: Readonly<Record<string, { readonly post: Operation }>>;
  readonly tags: readonly { readonly name: string }[];
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** Starts the service and fetches its `/openapi.json`. */
export async function readDocument(): Promise<Document> {
  await using world = await openWorld();
  const response = await fetch(`${world.baseUrl}/openapi.json`);
  return (await response.json()) as Document;
}

/** Its routes, each with all that it answers. */
export function routesOf(document: Document): Route[] {
  return Object.entries(withoutReferences(document).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );
}

function withoutReferences(document: Document): Document {
  const { schemas } = document.components;
  const resolve = (_name: string, value: unknown): unknown => {
    if (!isRecord(value) || typeof value["$ref"] !== "string") return value;
    return schemas[value["$ref"].replace("#/components/schemas/", "")];
  };
  return JSON.parse(JSON.stringify(document, resolve)) as Document;
}

/** Switches without which the common generators of clients fail; tried with openapi-generator 7.25 and oapi-codegen 2. */
const generatedClients = [
  "## Generated clients",
  "",
  "Generators of clients for other languages read `/openapi.json`. Some need a switch:",
  "",
  ...table(
    ["Generator", "Switch", "Without it"],
    [
      [
        "openapi-generator for Java and Go",
        code("--additional-properties disallowAdditionalPropertiesIfNotPresent=false"),
        "the client refuses an answer to which a later version added a member",
      ],
      [
        "openapi-generator for Python",
        code("--global-property apis,models,supportingFiles"),
        "what it writes for `webhooks` does not parse",
      ],
      ["oapi-codegen", code("skip-prune: true"), "some types of `webhooks` are left out"],
    ],
  ),
];

/** The reference page of all routes. */
export function writeApiReference(routes: readonly Route[]): string {
  return page([
    "# API",
    "",
    "Generated from `/openapi.json`, which every installation serves, by `tools/generate-api.ts`; a test keeps it current.",
    "",
    "Paths are relative to `BASE_URL`. Refusals come in two shapes, both in [errors](errors.md): an *envelope* with a",
    "`reason`, or an *OAuth error* with an `error`. Lengths are characters, times Unix seconds.",
    "",
    answersOfAnyRoute,
    "",
    ...generatedClients,
    ...Object.keys(routeTags).flatMap((tag) => writeSection(tag, routes)),
  ]);
}

function writeSection(tag: string, routes: readonly Route[]): string[] {
  const { title = "", description = "" } = routeTags[tag] ?? {};
  const text = description.replaceAll(/`(\w+)\.md`/g, "[$1]($1.md)");
  const ours = routes.filter(({ operation }) => operation.tags?.[0] === tag);
  const written = ours.flatMap((route, at) => writeRoute(route, ours[at - 1]));
  return ["", `## ${title}`, "", text, ...written];
}

/** Who may call, by the scheme of the document, where the head of the section does not say it. */
const callers: Readonly<Record<string, string>> = {
  oauthClient: "Requires client authentication.",
  "oauthClient or none":
    "Requires client authentication; a browser-only client sends just its `client_id`.",
  accessToken: "Requires an access token in the `Authorization` header.",
  walletSession: "Requires a wallet session in the `Authorization` header.",
};

function writeRoute({ method, path, operation }: Route, before: Route | undefined): string[] {
  const { summary = "", description, parameters = [], requestBody, responses } = operation;
  const [[type, body] = ["", undefined]] = Object.entries(requestBody?.content ?? {});
  const isOptional = requestBody?.required !== true;
  const { security = [] } = operation;
  const scheme = security.map((each) => Object.keys(each)[0] ?? "none").join(" or ");
  return [
    "",
    `### ${method} ${path.replaceAll(/\{(\w+)\}/g, "<$1>").replaceAll("<", "\\<")}`,
    "",
    [`${summary}.`, description, callers[scheme]].filter((text) => text !== undefined).join(" "),
    ...writeParameters(parameters),
    ...(body === undefined ? [] : writeBody({ type, ...body, isOptional }, before)),
    ...writeAnswers(responses),
  ];
}

function writeParameters(parameters: readonly Parameter[]): string[] {
  if (parameters.length === 0) return [];
  const rows = parameters.map((each) => [
    code(each.name),
    each.in,
    // A parameter in the path is always required.
    `${typeOf(asRepeated(each.schema))}${each.required === true && each.in !== "path" ? ", required" : ""}`,
    each.description ?? each.schema.description ?? "",
  ]);
  return ["", ...table(["Parameter", "In", "Type", "Meaning"], rows)];
}

interface RouteBody {
  readonly type: string;
  readonly schema: Schema;
  readonly isOptional: boolean;
}

function writeBody({ type, schema, isOptional }: RouteBody, before: Route | undefined): string[] {
  const kind = `${code(type)}${isOptional ? ", optional" : ""}`;
  const names = Object.keys(objectOf(schema).properties ?? {}).join();
  const namesBefore = before?.operation.parameters?.map(({ name }) => name).join();
  if (names === namesBefore)
    return ["", `Body, ${kind}: the parameters of ${before?.method ?? ""}.`];
  const isForm = type === "application/x-www-form-urlencoded";
  return formsOf(schema).flatMap((form, at) =>
    writeMembers(`${at === 0 ? "Body" : "Or"}, ${kind}`, isForm ? withRepeated(form) : form, {
      required: ", required",
      optional: "",
    }),
  );
}

function withRepeated(form: Schema): Schema {
  const members = Object.entries(form.properties ?? {});
  const told = members.map(([name, member]) => [name, asRepeated(member)] as const);
  return { ...form, properties: Object.fromEntries(told) };
}

/** In an address or form a list is one name, written once for each value. */
function asRepeated(schema: Schema): Schema {
  return schema.items === undefined ? schema : { ...schema, anyOf: [schema.items, schema] };
}

/** How a type is marked: in a request what is required, in an answer what is optional. */
interface Marks {
  readonly required: string;
  readonly optional: string;
}

function writeMembers(title: string, schema: Schema, marks: Marks): string[] {
  const rows = rowsOf(schema, "", marks);
  return rows.length === 0 ? [] : ["", ...table([title, "Type", "Meaning"], rows)];
}

/** One row for each member, those inside of objects and lists by their path. */
function rowsOf(schema: Schema, prefix: string, marks: Marks): string[][] {
  const { properties = {}, required = [] } = objectOf(schema);
  const rows: string[][] = [];
  for (const [name, member] of Object.entries(properties)) {
    const path = `${prefix}${name}`;
    const mark = required.includes(name) ? marks.required : marks.optional;
    rows.push([code(path), `${typeOf(member)}${mark}`, member.description ?? ""]);
    rows.push(...rowsOf(member, `${path}.`, marks));
    if (member.items !== undefined) rows.push(...rowsOf(member.items, `${path}[].`, marks));
  }
  return rows;
}

/** The first of several forms. */
function objectOf(schema: Schema): Schema {
  return formsOf(schema)[0] ?? schema;
}

/** What a body may be: the forms that a route chooses between, or the one that it has. */
function formsOf(schema: Schema): readonly Schema[] {
  const choices = schema.oneOf ?? schema.anyOf ?? [];
  const forms = choices.filter(({ properties }) => properties !== undefined);
  return forms.length > 0 ? forms : [schema];
}

function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return code(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => code(value)).join(" or ");
  const [single, list] = schema.anyOf ?? [];
  if (single !== undefined && list?.items?.type === single.type && list !== undefined)
    return `${typeOf(single)}, may be repeated`;
  if (schema.anyOf !== undefined) return schema.anyOf.map((each) => typeOf(each)).join(" or ");
  if (schema.items !== undefined) {
    const bound = schema.maxItems === undefined ? "" : ` (at most ${schema.maxItems})`;
    return `list${bound} of ${typeOf(schema.items)}`;
  }
  const most = schema.maxLength === undefined ? "" : ` (at most ${schema.maxLength})`;
  return `${schema.type ?? "any"}${most}`;
}

function writeAnswers(responses: Readonly<Record<string, Answer>>): string[] {
  const rows = Object.entries(responses).map(([status, { description, content = {} }]) => {
    const [[type, media] = ["", undefined]] = Object.entries(content);
    return [status, media === undefined ? "" : kindOf(type, media.schema), description];
  });
  const bodies = Object.entries(responses)
    .filter(([status]) => status.startsWith("2"))
    .flatMap(([status, { content }]) =>
      writeMembers(`Body of ${status}`, content?.["application/json"]?.schema ?? {}, {
        required: "",
        optional: ", optional",
      }),
    );
  return ["", ...table(["Answer", "Body", "Meaning"], rows), ...bodies];
}

function kindOf(type: string, { properties = {} }: Schema): string {
  if (type !== "application/json") return code(type);
  if ("success" in properties) return "envelope";
  return "error_description" in properties ? "OAuth error" : "JSON";
}

if (import.meta.main) writeFileSync(apiPage, writeApiReference(routesOf(await readDocument())));
