import { readFileSync } from "node:fs";
import {
  type CompanyCallbacks,
  getBuiltInIssuer,
  getIssuer,
  type GivenCompanyField,
  issueCompanyRecord,
  sampleCompanyFields,
  waitForAttestation,
} from "../credentials/index.ts";
import { type Business, getBusiness, holdCompany, noteCompanyRecord } from "../kyb/index.ts";
import type { Ctx } from "../platform/context.ts";
import { Problem } from "../platform/http/problems.ts";
import { attestationNote, attestationOptions, readPatience } from "./attestation-wait.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, timeOf, UsageError, type Verb } from "./verb.ts";

const business = [
  { name: "business", description: "The address of the business's wallet." },
] as const;
const yearSeconds = 365 * 86_400;

export const businessRecordVerbs: readonly Verb[] = [
  {
    name: "business record",
    summary: "Issue the record of a business: what was verified about it and the people behind it.",
    notes: `The file is a JSON list of { field, subject?, data }. A verified field marks the business as verified, unless the record itself says that the verification is unfinished or has ended. ${attestationNote}`,
    parameters: business,
    options: {
      fields: { value: "file", required: true, description: "The JSON file with the fields." },
      issuer: {
        value: "uuid",
        description:
          "The issuer of the record. Default: the sandbox issuer for a sandbox business; for a live one, in `dev` only, the demo issuer.",
      },
      "as-of": {
        value: "seconds",
        description: "When the issuer checked the sources, in Unix seconds. Default: now.",
      },
      expires: {
        value: "seconds",
        description: "When the record expires, in Unix seconds. Default: in a year.",
      },
      ...attestationOptions,
    },
    example: `business record ${exampleIds.business} --fields record.json --issuer ${exampleIds.issuer}`,
    run: async (shell, input) => {
      const patienceSeconds = readPatience(input);
      return shell.withContext(async (ctx) => {
        const found = await getBusiness(ctx.db, input.text("business"));
        const expiresAt = timeOf("expires", input.optional("expires"));
        const asOf = timeOf("as-of", input.optional("as-of"));
        const given = {
          issuerId: input.optional("issuer"),
          fields: readFields(input.text("fields")),
          ...(asOf === undefined ? {} : { asOf }),
          ...(expiresAt === undefined ? {} : { expiresAt }),
        };
        return issue(ctx, found, { ...given, patienceSeconds });
      });
    },
  },
  {
    name: "simulate company",
    summary: "Give a sandbox business the record of an invented company.",
    notes: `${attestationNote} The fields end after a year; call it again then.`,
    parameters: business,
    options: attestationOptions,
    example: `simulate company ${exampleIds.business}`,
    run: async (shell, input) => {
      const patienceSeconds = readPatience(input);
      return shell.withContext(async (ctx) => {
        const found = await getBusiness(ctx.db, input.text("business"));
        if (found.environment !== "sandbox") throw new Problem("business_not_found");
        return issue(ctx, found, { fields: sampleCompanyFields(found.address), patienceSeconds });
      });
    },
  },
];

async function issue(
  ctx: Ctx,
  { address, environment }: Business,
  given: {
    issuerId?: string | undefined;
    fields: readonly GivenCompanyField[];
    asOf?: number;
    expiresAt?: number;
    patienceSeconds: number;
  },
): Promise<object> {
  const { issuerId, fields, patienceSeconds, asOf } = given;
  const { expiresAt = ctx.clock.now() + yearSeconds } = given;
  const kind = environment === "sandbox" ? "sandbox" : "demo";
  const issuer =
    issuerId === undefined
      ? await getBuiltInIssuer(ctx, kind, environment)
      : await getIssuer(ctx, issuerId);
  const callbacks: CompanyCallbacks = {
    holdCompany,
    onCompanyRecord: async (tx, company) => noteCompanyRecord(ctx, tx, company),
  };
  const times = asOf === undefined ? { expiresAt } : { expiresAt, asOf };
  const record = { business: address, fields, actor, ...times };
  const { id, root } = await issueCompanyRecord({ ...ctx, ...callbacks }, issuer, record);
  const attested = await waitForAttestation(ctx, [id], patienceSeconds);
  return { id, business: address, issuer: issuer.id, root, fields: fields.length, attested };
}

/** Faults are reported without the values. @throws {UsageError} */
function readFields(path: string): GivenCompanyField[] {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    throw new UsageError("--fields must name a readable JSON file");
  }
  if (!Array.isArray(value) || !value.every(isField))
    throw new UsageError(
      "--fields must be a JSON list of { field, subject?, data }, all of them strings",
    );
  return value;
}

function isField(value: unknown): value is GivenCompanyField {
  if (typeof value !== "object" || value === null) return false;
  const { field, subject, data, ...others } = value as Record<string, unknown>;
  return (
    typeof field === "string" &&
    typeof data === "string" &&
    (subject === undefined || typeof subject === "string") &&
    Object.keys(others).length === 0
  );
}
