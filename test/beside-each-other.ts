import { test as testAlone, type TestContext } from "node:test";

type Work = (t: TestContext) => Promise<void>;

/**
 * Tests that mostly wait, for blocks and for processes, and share nothing: each has a database, a chain and processes of
 * its own. One after the other they would occupy a process of the run for as long as all their waits together.
 */
export interface Beside {
  /** As `test` of `node:test`. */
  readonly test: (name: string, work: Work) => void;
  /** Runs the tests that were given, this many at once. */
  readonly run: (atOnce: number) => void;
}

/** @param name what all of them show */
export function openBeside(name: string): Beside {
  const works: [name: string, work: Work][] = [];
  return {
    test: (each, work) => {
      works.push([each, work]);
    },
    run: (concurrency) => {
      void testAlone(name, { concurrency }, async (t) => {
        await Promise.all(works.map(async ([each, work]) => t.test(each, work)));
      });
    },
  };
}
