/**
 * The advisory locks that this service takes in PostgreSQL. Any numbers will do, as long as all differ and stay what they
 * are: while versions change, processes of both take the same locks. The one of the embedded chain has a name instead.
 */
export const advisoryLocks = {
  migration: 7_355_001,
  auditChain: 7_355_002,
  settlementBatches: 7_355_012,
  handOver: 7_355_013,
  businessMoves: 7_355_014,
} as const;

/**
 * Locks of one thing among many, taken as `hashtextextended(<its name>, <seed>)`: under seeds of their own, two kinds of
 * thing with the same name do not wait for each other. The same holds for them as for {@link advisoryLocks}.
 */
export const lockSeeds = {
  requestsOfPair: 7,
  proposalsOfBusiness: 8,
  foundingsOfCreator: 9,
  boxesOfUser: 10,
} as const;
