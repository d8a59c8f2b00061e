/** So many answers are under way at once: should one hang, the next does not wait for it. */
const LANES = 2;
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
export function gathered<Q, A>(answerAll: (asked: readonly Asked<Q, A>[]) => Promise<void>): Gathered<Q, A> {
  let waiting: Asked<Q, A>[] = [];
  let lanes = LANES;

  function proceed(): void {
    while (lanes > 0 && waiting.length > 0) {
      const asked = waiting.length > MAX_BATCH ? waiting.splice(0, MAX_BATCH) : waiting;
      if (asked === waiting) waiting = [];
      lanes--;
      void answer(asked);
    }
  }

  async function answer(asked: readonly Asked<Q, A>[]): Promise<void> {
    try {
      await answerAll(asked);
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
    lanes++;
    proceed();
  }

  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        waiting.push({ question, resolve, reject });
        proceed();
      }),
    isIdle: () => lanes === LANES,
  };
}
