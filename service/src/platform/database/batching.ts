import { Problem } from "../http/problems.ts";

/** Questions that wait; whoever comes then is told to try again rather than to wait for a database that is stuck. */
const waitingMax = 10_000;

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
 * Answers questions that come while others are under way by one call for all of them. The first of an idle moment goes
 * at once, so nobody waits for company; under load a call serves many, and costs each a share of it. A call that takes
 * more than 250 ms is no longer waited for.
 *
 * @param options.answerAll answers in the order of the questions; when it throws, each of them is told
 * @param options.most questions of one call
 * @returns asks one question. It throws what `answerAll` threw, or {Problem} unavailable when too many wait
 */
export function createBatcher<Question, Answer>(options: {
  readonly most: number;
  answerAll(questions: readonly Question[]): Promise<readonly Answer[]>;
}): (question: Question) => Promise<Answer> {
  const waiting: Waiter<Question, Answer>[] = [];
  let underWay = 0;
  let isWaitedFor = false;
  const serve = (): void => {
    if (waiting.length === 0 || isWaitedFor || underWay === underWayMax) return;
    const batch = waiting.splice(0, options.most);
    underWay += 1;
    isWaitedFor = true;
    let isSlow = false;
    const goOn = (): void => {
      if (!isSlow) isWaitedFor = false;
      serve();
    };
    const timer = setTimeout(() => {
      goOn();
      isSlow = true;
    }, patienceMs);
    void answer(batch, async (questions) => options.answerAll(questions))
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
    serve();
    return promise;
  };
}

async function answer<Question, Answer>(
  batch: readonly Waiter<Question, Answer>[],
  answerAll: (questions: readonly Question[]) => Promise<readonly Answer[]>,
): Promise<void> {
  const answers = await answerAll(batch.map(({ question }) => question));
  for (const [index, waiter] of batch.entries()) {
    const found = answers[index];
    if (found === undefined) waiter.reject(new Error("a question was left unanswered"));
    else waiter.resolve(found);
  }
}
