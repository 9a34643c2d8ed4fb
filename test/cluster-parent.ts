import { tmpdir } from "node:os";

/**
 * Where the servers that tests start for themselves keep their data: in memory, beside those of the run, if it has room
 * and may run programs. Each server makes a thousand files, and to make and remove them on a disk took half of the CPU
 * time of such tests.
 */
export const clusterParent = process.env["TEST_CLUSTER_PARENT"] ?? tmpdir();
