import type { Db } from "./db.ts";

/** What notes the use of a secret or a key, and who was asked about. */
const note = /^(?:update \w+ set last_used_at|insert into lookup)\b/;

/** The same database; what is noted of uses, which a timer sends at any moment, does not count as a call. */
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
