// What must hold of the money of data requests at any moment, however often processes raced or died.
import assert from "node:assert/strict";
import type { Ctx } from "../service/src/platform/context.ts";

interface Totals {
  readonly sum: string;
  readonly least: string;
}

/** Every fault of the ledger and of what was released, by the database itself. */
export async function checkMoney({ db }: Pick<Ctx, "db">): Promise<void> {
  const rows = async <Row extends object>(text: string): Promise<Row[]> =>
    db.query<Row>({ name: "", text, values: [] });
  const [totals] = await rows<Totals>(
    `select coalesce(sum(balance_rappen), 0)::text as sum,
       coalesce(min(balance_rappen) filter (where kind <> 'funding'), 0)::text as least
     from ledger_account`,
  );
  assert.equal(totals?.sum, "0", "all accounts together are zero");
  assert.ok(Number(totals.least) >= 0, "no balance is negative");
  const faults: Readonly<Record<string, string>> = {
    "a balance is not the sum of its movements": `
      select a.id from ledger_account a where a.balance_rappen <>
        coalesce((select sum(amount_rappen) from ledger_movement where to_account_id = a.id), 0)
        - coalesce((select sum(amount_rappen) from ledger_movement where from_account_id = a.id), 0)`,
    "what was captured and freed is not what was held": `
      select h.subject from ledger_hold h where h.ended_at is not null and h.amount_rappen <>
        (select coalesce(sum(amount_rappen), 0) from ledger_movement m
          where m.subject = h.subject and m.kind in ('capture', 'free'))`,
    "money is held for a request that has ended, or not for an open one": `
      select r.id from data_request r join ledger_hold h on h.subject = r.id
      where (r.status = 'pending_approval') <> (h.ended_at is null)`,
    "a release without its charge, or a charge without its release": `
      select r.id from data_request r
        left join data_release d on d.request_id = r.id left join kyb_charge c on c.request_id = r.id
      where (r.status = 'released') <> (d.request_id is not null)
        or (r.status = 'released') <> (c.request_id is not null)`,
    "a charge that the ledger did not capture": `
      select c.id from kyb_charge c left join ledger_movement m on m.subject = c.request_id and m.kind = 'capture'
      where m.amount_rappen is distinct from c.amount_rappen`,
    "a charge for other fields than those that were released": `
      select c.id from kyb_charge c join data_release d using (request_id) where d.leaves is not null
        and (select array_agg(distinct line->>'field') from jsonb_array_elements(c.lines) as line)
          is distinct from (select array_agg(distinct leaf->>'name') from jsonb_array_elements(d.leaves) as leaf)`,
    "a charge that is not the sum of its lines, at the prices of the request": `
      select c.id from kyb_charge c join data_request r on r.id = c.request_id where c.amount_rappen is distinct from
        (select sum((line->>'cents')::bigint) from jsonb_array_elements(c.lines) as line
          join jsonb_array_elements(r.fields) as field on field->>'name' = line->>'field'
            and field->>'cents' = line->>'cents' and field->>'tier' = line->>'tier'
            and (not (field->>'optional')::boolean or field->>'name' = any(r.fixed_optional)))`,
    "an ended request without its two events, or more of them": `
      select r.id from data_request r
      where (select array_agg(e.sequence order by e.sequence) from webhook_event e where e.stream_id = r.id)
        is distinct from (case when r.status = 'pending_approval' then array[1] else array[1, 2] end)`,
  };
  for (const [fault, text] of Object.entries(faults)) assert.deepEqual(await rows(text), [], fault);
}
