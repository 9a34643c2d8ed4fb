// How PostgreSQL finds the rows of a statement by its generic plan, as it does for the service's prepared statements.
import type { Db, Queryable, Statement } from "../service/src/platform/database/db.ts";

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Filter?: string;
  readonly Plans?: readonly PlanNode[];
}

export interface QueryPlan {
  /** Indexes that are read. */
  readonly indexes: readonly string[];
  /** Conditions by which an index leads to rows. */
  readonly indexed: string;
  /** Conditions that are checked on rows after these were read. */
  readonly filtered: string;
  /** Tables that are read from one end to the other. */
  readonly scanned: readonly string[];
}

/** How the statements of `ask` find their rows, on tables too long to be read as a whole. */
export async function plansOf(
  db: Db,
  ask: (db: Queryable) => Promise<unknown>,
): Promise<QueryPlan[]> {
  const asked: Statement[] = [];
  const record = async (statement: Statement): Promise<never[]> => {
    asked.push(statement);
    return [];
  };
  await ask({ query: record });
  return db.transaction(async (tx) => {
    await tx.query({ name: "", text: "set local enable_seqscan = off", values: [] });
    const plans: QueryPlan[] = [];
    for (const statement of asked) plans.push(await planOf(tx, statement));
    return plans;
  });
}

class Undone extends Error {}

/**
 * How the statements of `ask` find their rows if PostgreSQL believes that every table with any rows has a million of
 * them, so that it may also join whole tables.
 *
 * @param rows statements that fill the tables; they are rolled back, and foreign keys are not checked
 */
export async function plansAtLength(
  db: Db,
  rows: readonly string[],
  ask: (db: Queryable) => Promise<unknown>,
): Promise<QueryPlan[]> {
  const plans: QueryPlan[] = [];
  const explained = db.transaction(async (tx) => {
    const prepare = [
      "set local session_replication_role = replica",
      ...rows,
      `update pg_class set relpages = 1, reltuples = 1e6
        where relkind = 'r' and relnamespace = 'public'::regnamespace`,
    ];
    for (const text of prepare) await tx.query({ name: "", text, values: [] });
    const explain = async (statement: Statement): Promise<never[]> => {
      plans.push(await planOf(tx, statement));
      return [];
    };
    await ask({ query: explain });
    throw new Undone();
  });
  await explained.catch((error: unknown) => {
    if (!(error instanceof Undone)) throw error;
  });
  return plans;
}

async function planOf(tx: Queryable, { text }: Statement): Promise<QueryPlan> {
  const explain = `explain (generic_plan, format json) ${text}`;
  const [row] = await tx.query<{ "QUERY PLAN": readonly { Plan: PlanNode }[] }>({
    name: "",
    text: explain,
    values: [],
  });
  const nodes = row?.["QUERY PLAN"].flatMap(({ Plan }) => nodesOf(Plan)) ?? [];
  return {
    indexes: nodes.flatMap((node) => node["Index Name"] ?? []),
    indexed: nodes.map((node) => node["Index Cond"] ?? "").join(" "),
    filtered: nodes.map((node) => node.Filter ?? "").join(" "),
    scanned: nodes
      .filter((node) => node["Node Type"] === "Seq Scan")
      .map((node) => node["Relation Name"] ?? ""),
  };
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}
