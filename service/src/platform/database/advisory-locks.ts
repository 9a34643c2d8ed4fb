/**
 * The advisory locks that this service takes in PostgreSQL. Any numbers will do, as long as all differ and never
 * change: during an upgrade, processes of both versions take the same locks. The lock of the embedded chain has a name
 * instead.
 */
export const advisoryLocks = {
  migration: 7_355_001,
  auditChain: 7_355_002,
  settlementBatches: 7_355_012,
  handOver: 7_355_013,
  businessMoves: 7_355_014,
  clientAudiences: 7_355_015,
  /** Held in common by every connection that listens. */
  listeners: 7_355_016,
} as const;

/**
 * Locks of one thing among many, taken as `hashtextextended(<its name>, <seed>)`: with different seeds, two kinds of
 * thing with the same name do not wait for each other. Like {@link advisoryLocks}, they must differ and never change.
 */
export const lockSeeds = {
  requestsOfPair: 7,
  proposalsOfBusiness: 8,
  foundingsOfCreator: 9,
  boxesOfUser: 10,
} as const;
