import { Problem } from "../http/problems.ts";

/** How many questions may wait; beyond that, callers are told to try again instead of waiting for a stuck database. */
const waitingMax = 10_000;
/** Questions asked in one call, which takes about a millisecond. */
const questionsMax = 64;
/** How long a question waits for the call under way, which may hang, before another call is started. */
const patienceMs = 250;
/** Calls under way at once, so that a database that hangs does not use up all connections for this. */
const underWayMax = 3;

interface Waiter<Question, Answer> {
  readonly question: Question;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/**
 * Answers questions in batches. While a call is under way, new questions wait and share the next one. If none is under
 * way, the questions of one turn of the event loop share a call, and if there is more than one, also those of the next
 * turn; no timer delays them. After 250 ms, waiting questions stop waiting for a call that hangs.
 *
 * @param answerAll answers at most 64 questions, in their order; if it throws, each of them fails
 * @returns asks one question. It throws what `answerAll` threw, or {Problem} unavailable when too many wait
 */
export function createBatcher<Question, Answer>(
  answerAll: (questions: readonly Question[]) => Promise<readonly Answer[]>,
): (question: Question) => Promise<Answer> {
  const waiting: Waiter<Question, Answer>[] = [];
  let underWay = 0;
  let isScheduled = false;
  let lastSize = 0;
  /** The call that waiting questions are held back for; undefined when the next one may start. */
  let blockingCall: symbol | undefined;
  let patienceTimer: NodeJS.Timeout | undefined;
  /**
   * Serves once everything that has arrived has been read, since requests of several connections appear in one turn. If
   * there is more than one question, one more turn adds those that arrived while the others were read.
   */
  const serveSoon = (): void => {
    if (isScheduled || waiting.length === 0) return;
    if (blockingCall !== undefined) {
      patienceTimer ??= setTimeout(goOn, patienceMs);
      return;
    }
    if (underWay === underWayMax) return;
    isScheduled = true;
    setImmediate(() => {
      if (waiting.length > 1 || lastSize > 1) setImmediate(serve);
      else serve();
    });
  };
  const goOn = (): void => {
    clearTimeout(patienceTimer);
    patienceTimer = undefined;
    blockingCall = undefined;
    serveSoon();
  };
  const serve = (): void => {
    isScheduled = false;
    const batch = waiting.splice(0, questionsMax);
    lastSize = batch.length;
    void answer(batch);
    // Questions that did not fit into this call wait for it, as later ones do.
    serveSoon();
  };
  const answer = async (batch: readonly Waiter<Question, Answer>[]): Promise<void> => {
    const own = Symbol("call");
    blockingCall = own;
    underWay += 1;
    try {
      const answers = await answerAll(batch.map(({ question }) => question));
      settle(batch, answers);
    } catch (error) {
      for (const waiter of batch) waiter.reject(error);
    }
    underWay -= 1;
    if (blockingCall === own) goOn();
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
