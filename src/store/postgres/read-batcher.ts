/** After so long another answer is begun beside the one under way, lest all wait for one that hangs. */
const PATIENCE_MS = 20;
const MAX_BATCH = 100;

interface PendingKey<Q, A> {
  readonly question: Q;
  resolve(answer: A): void;
  reject(error: unknown): void;
}

export interface Batcher<Q, A> {
  load(question: Q): Promise<A>;
  isIdle(): boolean;
}

/**
 * Questions of one turn of the event loop, and those that come while others are being answered, are answered together. The
 * work for an answer always begins after its question was asked, so that nobody is told anything older.
 */
export function createBatcher<Q, A>(
  answerAll: (questions: readonly Q[]) => Promise<readonly A[]>,
  now: () => number = () => performance.now(),
): Batcher<Q, A> {
  let waiting: PendingKey<Q, A>[] = [];
  let underWay = 0;
  let begun = 0;
  let isComing = false;

  function beginSoon(): void {
    if (isComing) return;
    isComing = true;
    setImmediate(begin);
  }

  function begin(): void {
    isComing = false;
    const asked = waiting.length > MAX_BATCH ? waiting.splice(0, MAX_BATCH) : waiting;
    if (asked === waiting) waiting = [];
    underWay++;
    begun = now();
    void answer(asked);
  }

  async function answer(asked: readonly PendingKey<Q, A>[]): Promise<void> {
    try {
      const answers = await answerAll(asked.map(({ question }) => question));
      underWay--;
      for (const [at, { resolve }] of asked.entries()) resolve(answers[at] as A);
    } catch (error) {
      underWay--;
      for (const { reject } of asked) reject(error);
    }
    if (waiting.length > 0) beginSoon();
  }

  return {
    load: (question) =>
      new Promise((resolve, reject) => {
        waiting.push({ question, resolve, reject });
        if (underWay === 0 || now() - begun >= PATIENCE_MS) beginSoon();
      }),
    isIdle: () => underWay === 0 && waiting.length === 0,
  };
}
