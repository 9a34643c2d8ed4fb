import type { Db } from "./db.ts";

/** Statements that note the use of a secret or key, or whom somebody asked about. */
const note = /^(?:update \w+ set last_used_at|insert into lookup)\b/;

/** The same database, except that these notes, which a timer sends at any moment, do not count as calls. */
export function countWithoutNotes(db: Db): Db {
  let notes = 0;
  return {
    ...db,
    query: async (statement) => {
      if (note.test(statement.text)) notes += 1;
      return db.query(statement);
    },
    get callsTotal() {
      return db.callsTotal - notes;
    },
  };
}
