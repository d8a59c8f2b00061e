/** After so long another answer is begun beside the one under way, lest all wait for one that hangs. */
const PATIENCE_MS = 20;
const MAX_BATCH = 100;

export interface Asked<Q, A> {
  readonly question: Q;
  resolve(answer: A): void;
  reject(error: unknown): void;
}

export interface Gathered<Q, A> {
  ask(question: Q): Promise<A>;
  isIdle(): boolean;
}

/**
 * Questions that come faster than they are answered are answered many at a time. One that comes alone goes at once, and the
 * work for an answer always begins after its question was asked, so that nobody is told anything older.
 */
export function gathered<Q, A>(
  answerAll: (asked: readonly Asked<Q, A>[]) => Promise<void>,
  now: () => number = () => performance.now(),
): Gathered<Q, A> {
  let waiting: Asked<Q, A>[] = [];
  let underWay = 0;
  let begun = 0;

  function begin(): void {
    const asked = waiting.length > MAX_BATCH ? waiting.splice(0, MAX_BATCH) : waiting;
    if (asked === waiting) waiting = [];
    underWay++;
    begun = now();
    void answer(asked);
  }

  async function answer(asked: readonly Asked<Q, A>[]): Promise<void> {
    try {
      await answerAll(asked);
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
    underWay--;
    if (waiting.length > 0) begin();
  }

  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        waiting.push({ question, resolve, reject });
        if (underWay === 0 || now() - begun >= PATIENCE_MS) begin();
      }),
    isIdle: () => underWay === 0,
  };
}
