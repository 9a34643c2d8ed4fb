import { Problem } from "../http/problems.ts";

/** Questions that wait; whoever comes then is told to try again rather than to wait for a database that is stuck. */
const waitingMax = 10_000;
/** Questions of one call: the answer comes in about a millisecond. */
const questionsMax = 64;
/** A call that takes longer, as over a connection that hangs, keeps nobody else waiting. */
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
 * waits for a clock. Under load a call serves many, and costs each of them a share. A call that takes more than 250 ms
 * is no longer waited for.
 *
 * @param answerAll answers at most 64 questions, in their order; when it throws, each of them is told
 * @returns asks one question. It throws what `answerAll` threw, or {Problem} unavailable when too many wait
 */
export function createBatcher<Question, Answer>(
  answerAll: (questions: readonly Question[]) => Promise<readonly Answer[]>,
): (question: Question) => Promise<Answer> {
  const waiting: Waiter<Question, Answer>[] = [];
  let underWay = 0;
  let isWaitedFor = false;
  let isComing = false;
  let lastSize = 0;
  /**
   * When everything that has arrived was read: requests of several connections come out of one turn. Where questions
   * have company, more arrives while they are read, and one more turn takes it along.
   */
  const serveSoon = (): void => {
    if (isComing) return;
    isComing = true;
    setImmediate(() => {
      if (waiting.length > 1 || lastSize > 1) setImmediate(serve);
      else serve();
    });
  };
  const serve = (): void => {
    isComing = false;
    if (waiting.length === 0 || isWaitedFor || underWay === underWayMax) return;
    const batch = waiting.splice(0, questionsMax);
    lastSize = batch.length;
    underWay += 1;
    isWaitedFor = true;
    let isSlow = false;
    const goOn = (): void => {
      if (!isSlow) isWaitedFor = false;
      serveSoon();
    };
    const timer = setTimeout(() => {
      goOn();
      isSlow = true;
    }, patienceMs);
    void answer(batch, answerAll)
      .catch((error: unknown) => {
        for (const waiter of batch) waiter.reject(error);
      })
      .finally(() => {
        clearTimeout(timer);
        underWay -= 1;
        goOn();
      });
  };
  return async (question) => {
    if (waiting.length >= waitingMax) throw new Problem("unavailable");
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    waiting.push({ question, resolve, reject });
    serveSoon();
    return promise;
  };
}

async function answer<Question, Answer>(
  batch: readonly Waiter<Question, Answer>[],
  answerAll: (questions: readonly Question[]) => Promise<readonly Answer[]>,
): Promise<void> {
  const answers = await answerAll(batch.map(({ question }) => question));
  batch.forEach((waiter, index) => {
    const found = answers[index];
    if (found === undefined) waiter.reject(new Error("a question was left unanswered"));
    else waiter.resolve(found);
  });
}
