import type { MaybePromise } from '../base/maybe-promise.ts';
import { currentSpan, endWith, runInSpan, type SpanOptions, traceStep } from '../base/tracing.ts';
import type { Row, Store, Value } from './store.ts';

/**
 * Returns the same store, whose reads and transactions are steps of the trace that they belong to. SQL is not recorded.
 */
export function traceStore(store: Store, system: 'sqlite' | 'postgresql'): Store {
  const { reader } = store;
  const read: SpanOptions = { kind: 'client', attributes: { 'db.system.name': system } };
  const traceRead = <T>(work: () => MaybePromise<T>): MaybePromise<T> => traceStep('database read', read, work);
  return {
    ...store,
    reader: {
      ...reader,
      all: <R extends Row>(sql: string, ...params: Value[]) => traceRead(() => reader.all<R>(sql, ...params)),
      get: <R extends Row>(sql: string, ...params: Value[]) => traceRead(() => reader.get<R>(sql, ...params)),
    },
    async write(work, options) {
      const call = currentSpan();
      if (!call) return store.write(work, options);
      const span = call.startChild('database transaction', read);
      // Transactions may share a commit and run one after the other, so each must say again which call it belongs to.
      const run = () => store.write((tx) => runInSpan(span ?? call, () => work(tx)), options);
      return span ? endWith(span, run) : run();
    },
  };
}
