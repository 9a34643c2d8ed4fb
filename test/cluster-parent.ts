import { tmpdir } from "node:os";

/**
 * Where the servers that tests start for themselves have their data: in memory, beside those of the run, where that has
 * room and runs programs. Each makes a thousand files, and making and removing them on a disk took half of the CPU time of such tests.
 */
export const clusterParent = process.env["TEST_CLUSTER_PARENT"] ?? tmpdir();
