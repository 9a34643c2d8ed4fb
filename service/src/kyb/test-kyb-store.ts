// Rows for tests of the stores: organizations, client domains and businesses on a database of their own.
import { randomUUID } from "node:crypto";
import { type Address, encodeCharter } from "@svc/protocol";
import { type Db, openDb, type Queryable, sql, type Statement } from "../platform/database/db.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { bufferOfHex } from "../platform/hex.ts";
import { insertMembers } from "./business/founding-store.ts";

export interface TestKyb extends AsyncDisposable {
  readonly db: Db;
  /** An active business with these members, all of whom vote. */
  addBusiness(members?: readonly Address[]): Promise<Address>;
  addOrganization(): Promise<TestRequester>;
  /** Whether a row is locked. @param look a statement that finds the row but skips locked ones */
  isHeld(look: Statement): Promise<boolean>;
  /** Whether the work succeeds in a transaction of its own without waiting for a lock. */
  isFree(work: (tx: Queryable) => Promise<unknown>): Promise<boolean>;
}

/** An organization with its one client domain. */
export interface TestRequester {
  readonly organizationId: string;
  readonly clientDomainId: string;
}

/** The address that consists of this hex digit only. */
export const addressOf = (digit: string): Address => `0x${digit.repeat(40)}`;

export async function openTestKyb(): Promise<TestKyb> {
  const database = await openTestDatabase();
  const db = openDb({ ...database.connection, connections: 4 });
  let count = 0;
  return {
    db,
    addBusiness: async (members = []) => {
      count += 1;
      return addBusiness(db, { address: `0x${String(count).padStart(40, "0")}`, members });
    },
    addOrganization: async () => addOrganization(db),
    isHeld: async (look) => (await db.query(look)).length === 0,
    isFree: async (work) => isFree(db, work),
    [Symbol.asyncDispose]: async () => {
      await db[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}

async function addBusiness(
  db: Queryable,
  { address, members }: { address: Address; members: readonly Address[] },
): Promise<Address> {
  const voters = members.length === 0 ? [address] : members.toSorted();
  const charter = encodeCharter({
    rules: { signature_requests: "MAJORITY", data_requests: "MAJORITY", governance: "MAJORITY" },
    members: voters.map((voter) => ({ address: voter, isVoting: true })),
  });
  await db.query(
    sql`insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      values (${address}, 'live', 'Test Ltd', 'active', ${address}, ${address}, 0, ${Buffer.alloc(32)},
        ${bufferOfHex(charter)}, 0)`,
  );
  const rows = members.map((member) => ({
    id: randomUUID(),
    member,
    nameSealed: Buffer.alloc(1),
    isVoting: true,
    isCreator: false,
    signature: null,
  }));
  await insertMembers(db, address, { members: rows, now: 0 });
  return address;
}

async function addOrganization(db: Queryable): Promise<TestRequester> {
  const [organizationId, clientDomainId] = [randomUUID(), randomUUID()];
  await db.query(
    sql`insert into organization (id, name, created_at) values (${organizationId}, 'Test Ltd', 0)`,
  );
  await db.query(
    sql`insert into client_domain (id, organization_id, domain, environment, proof_token, created_at)
      values (${clientDomainId}, ${organizationId}, 'example.com', 'live', '', 0)`,
  );
  return { organizationId, clientDomainId };
}

async function isFree(db: Db, work: (tx: Queryable) => Promise<unknown>): Promise<boolean> {
  const working = db.transaction(async (tx) => {
    await tx.query(sql`set local lock_timeout = '50ms'`);
    await work(tx);
  });
  return working.then(
    () => true,
    () => false,
  );
}
