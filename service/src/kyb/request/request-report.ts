import type { Ctx } from "../../platform/context.ts";
import { Problem } from "../../platform/http/problems.ts";
import { reportStream } from "../../webhooks/index.ts";
import { recordOf as dataRecordOf } from "./data-request.ts";
import { findRequest as findDataRequest } from "./data-request-store.ts";
import { recordOf as signatureRecordOf } from "./signature-request.ts";
import { findRequest as findSignatureRequest } from "./signature-request-store.ts";

/**
 * A data or signature request for the operator: whose it is, its record as the merchant sees it, and the delivery of
 * its events.
 *
 * @param options as of {@link reportStream}
 * @throws {Problem} request_not_found
 */
export async function reportRequest(
  ctx: Pick<Ctx, "db" | "seal">,
  id: string,
  options: { withAnswers: boolean },
): Promise<Record<string, unknown>> {
  const found = await findRecord(ctx, id);
  if (found === null) throw new Problem("request_not_found");
  const { kind, request, record } = found;
  const { organizationId, clientDomainId, environment } = request;
  const whose = { kind, organizationId, clientDomainId, environment };
  return { ...whose, ...record, ...(await reportStream(ctx, id, options)) };
}

async function findRecord({ db }: Pick<Ctx, "db">, id: string) {
  const data = await findDataRequest(db, id);
  if (data !== null) return { kind: "data_request", request: data, record: dataRecordOf(data) };
  const signature = await findSignatureRequest(db, id);
  if (signature === null) return null;
  return { kind: "signature_request", request: signature, record: signatureRecordOf(signature) };
}
