import { isRecord } from "@svc/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Ctx } from "../platform/context.ts";
import { purgeInBatches } from "../platform/database/purge.ts";
import type { Queryable } from "../platform/database/db.ts";
import { uuidv7 } from "../platform/ids.ts";
import { equalBytes } from "../platform/cryptography/mac.ts";
import { Problem } from "../platform/http/problems.ts";
import { placeIn, type SealedColumn } from "../platform/cryptography/seal.ts";
import { readIdempotencyKey } from "./idempotency-key.ts";
import * as store from "./idempotency-store.ts";
import { apiKeyOf } from "../accounts/index.ts";

/** The answer to a call. */
export interface Answer<Body> {
  readonly status: number;
  readonly body: Body;
}

/** Answers may hold secrets. */
export const idempotentAnswerColumn: SealedColumn = {
  table: "kyb_idempotency",
  idColumn: "id",
  column: "answer_sealed",
};

const lifetimeSeconds = 86_400;

/**
 * Runs a call that changes something, in one transaction. If it has an `Idempotency-Key`, that is stored with the
 * answer in the same transaction: the same call of the same client domain within 24 hours changes nothing and gets the
 * same answer, with status 200. A concurrent one waits for the first. A refused call stores nothing, and may be tried
 * again. A route with `onlyReads` stores the key without the answer and runs each call, since an old answer may be
 * wrong by now.
 *
 * @param run must do all its work in the given transaction
 * @throws {Problem} idempotency_key_required, invalid_request, idempotency_key_conflict, and what `run` throws
 */
export async function idempotently<Body extends object>(
  ctx: Pick<Ctx, "db" | "clock" | "random" | "keys" | "seal">,
  call: { request: FastifyRequest; reply: FastifyReply; isKeyRequired?: boolean },
  run: (tx: Queryable) => Promise<Answer<Body>>,
): Promise<Body> {
  const { request, reply } = call;
  const key = readKey(request, call.isKeyRequired === true);
  const answer = await ctx.db.transaction(async (tx) => {
    if (key === null) return run(tx);
    const { clientDomainId } = apiKeyOf(request);
    const requestMac = macOf(ctx, contentOf(request));
    const id = uuidv7(ctx.clock, ctx.random);
    const taken = { id, clientDomainId, key, requestMac, now: ctx.clock.now() };
    const known = await store.takeKey(tx, taken, taken.now - lifetimeSeconds);
    if (known !== null && !isSameCall(ctx, request, known.requestMac))
      throw new Problem("idempotency_key_conflict");
    if (request.routeOptions.config.onlyReads === true) return run(tx);
    if (known === null) {
      const made = await run(tx);
      const sealed = ctx.seal.seal(
        Buffer.from(JSON.stringify(made.body)),
        placeIn(idempotentAnswerColumn, id),
      );
      await store.keepAnswer(tx, { id, sealed });
      return made;
    }
    const opened = ctx.seal.open(known.answerSealed, placeIn(idempotentAnswerColumn, known.id));
    return { status: 200, body: JSON.parse(opened.toString()) as Body };
  });
  void reply.code(answer.status);
  return answer.body;
}

/** Deletes keys after 24 hours. */
export async function purgeIdempotencyKeys(ctx: Pick<Ctx, "db" | "clock">): Promise<void> {
  const before = ctx.clock.now() - lifetimeSeconds;
  await purgeInBatches(async (limit) => store.deleteKeys(ctx.db, before, limit));
}

function readKey(request: FastifyRequest, isRequired: boolean): string | null {
  const key = readIdempotencyKey(request);
  if (key === null && isRequired) throw new Problem("idempotency_key_required");
  return key;
}

function macOf({ keys }: Pick<Ctx, "keys">, content: string): Buffer {
  return keys.mac("kyb-idempotency", content);
}

/** Also by the MAC of an earlier version, which depended on the order of members: its keys live for a day. */
function isSameCall(ctx: Pick<Ctx, "keys">, request: FastifyRequest, knownMac: Buffer): boolean {
  const contents = [contentOf(request), JSON.stringify(partsOf(request))];
  return contents.some((content) => equalBytes(knownMac, macOf(ctx, content)));
}

/** Method and path with the body: a key belongs to one call. */
function partsOf({ method, url, body }: FastifyRequest): readonly unknown[] {
  return [method, url, body ?? null];
}

/** Does not depend on the order of the body's members. */
function contentOf(request: FastifyRequest): string {
  return JSON.stringify(partsOf(request), (_, value: unknown) =>
    isRecord(value) ? sortMembers(value) : value,
  );
}

/** Not canonical JSON: that refuses some values, such as the number 1e999, which routes for any JSON accept. */
function sortMembers(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = Object.keys(value).toSorted();
  return Object.fromEntries(names.map((name) => [name, value[name]]));
}
