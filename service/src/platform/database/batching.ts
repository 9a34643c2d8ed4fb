import { Problem } from "../http/problems.ts";

/** Questions that wait; whoever comes then is told to try again rather than to wait for a database that is stuck. */
const waitingMax = 10_000;
/** Questions of one call: the answer comes in about a millisecond. */
const questionsMax = 64;
/** Whoever has waited so long for a call, as over a connection that hangs, waits for it no more. */
const patienceMs = 250;
/** Calls under way at once, so that a database that hangs as a whole does not take all connections here. */
const underWayMax = 3;

interface Waiter<Question, Answer> {
  readonly question: Question;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/**
 * Gathers the questions that come while a call is under way, and answers them by the next one together. A question that
 * finds no call under way goes with those of this turn of the event loop, and of the next where it is not alone: nobody
 * waits for a clock. Under load a call serves many, and costs each of them a share. After 250 ms nobody waits any
 * longer for a call under way.
 *
 * @param answerAll answers at most 64 questions, in their order; when it throws, each of them is told
 * @returns asks one question. It throws what `answerAll` threw, or {Problem} unavailable when too many wait
 */
export function createBatcher<Question, Answer>(
  answerAll: (questions: readonly Question[]) => Promise<readonly Answer[]>,
): (question: Question) => Promise<Answer> {
  const waiting: Waiter<Question, Answer>[] = [];
  let underWay = 0;
  let isComing = false;
  let lastSize = 0;
  /** Of the call whose end those wait for who came since. */
  let awaited: symbol | undefined;
  let patience: NodeJS.Timeout | undefined;
  /**
   * When everything that has arrived was read: requests of several connections come out of one turn. Where questions
   * have company, more arrives while they are read, and one more turn takes it along.
   */
  const serveSoon = (): void => {
    if (isComing || waiting.length === 0) return;
    if (awaited !== undefined) {
      patience ??= setTimeout(goOn, patienceMs);
      return;
    }
    if (underWay === underWayMax) return;
    isComing = true;
    setImmediate(() => {
      if (waiting.length > 1 || lastSize > 1) setImmediate(serve);
      else serve();
    });
  };
  const goOn = (): void => {
    clearTimeout(patience);
    patience = undefined;
    awaited = undefined;
    serveSoon();
  };
  const serve = (): void => {
    isComing = false;
    const batch = waiting.splice(0, questionsMax);
    lastSize = batch.length;
    void answer(batch);
  };
  const answer = async (batch: readonly Waiter<Question, Answer>[]): Promise<void> => {
    const own = Symbol("call");
    awaited = own;
    underWay += 1;
    try {
      const answers = await answerAll(batch.map(({ question }) => question));
      settle(batch, answers);
    } catch (error) {
      for (const waiter of batch) waiter.reject(error);
    }
    underWay -= 1;
    if (awaited === own) goOn();
    else serveSoon();
  };
  return async (question) => {
    if (waiting.length >= waitingMax) throw new Problem("unavailable");
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    waiting.push({ question, resolve, reject });
    serveSoon();
    return promise;
  };
}

function settle<Question, Answer>(
  batch: readonly Waiter<Question, Answer>[],
  answers: readonly Answer[],
): void {
  batch.forEach((waiter, index) => {
    const found = answers[index];
    if (found === undefined) waiter.reject(new Error("a question was left unanswered"));
    else waiter.resolve(found);
  });
}
