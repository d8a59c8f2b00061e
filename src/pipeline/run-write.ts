import type { Message } from '@bufbuild/protobuf';
import { chain, type MaybePromise } from '../base/maybe-promise.ts';
import type { Operation, ReadContext, WriteContext } from '../resource/operation.ts';
import type { Store, WriteOptions } from '../store/store.ts';
import type { CommitDecision } from './deadline.ts';
import { type AnyEventFacts, recordEvent } from './record-event.ts';

export type WriteOperation = Extract<Operation, { readonly mode: 'write' }>;

/** A transaction in which one or several operations run. */
export type TransactionContext = Omit<WriteContext, 'unchanged'>;

export interface TransactionOptions extends WriteOptions {
  /** Authorizes the call again. Called when the access of its caller has changed since it was authorized. */
  readonly authorize: (ctx: TransactionContext) => MaybePromise<unknown>;
  /** Gets the headers that the work has set, after the commit. */
  readonly sendHeader?: WriteContext['setHeader'] | undefined;
  readonly decision?: CommitDecision | undefined;
}

/**
 * Runs `work` in a transaction. The caller is checked again inside of it: a client may take minutes to send a request,
 * and lose its access in the meantime.
 */
export async function runInTransaction<T>(
  store: Store,
  reading: ReadContext,
  work: (ctx: TransactionContext) => Promise<T>,
  { authorize, sendHeader, decision, ...writeOptions }: TransactionOptions,
): Promise<T> {
  const headers = new Map<string, string>();
  const setHeader = (name: string, value: string) => void headers.set(name, value);
  const result = await store.write((db) => {
    decision?.start();
    return chain(reading.caller.current(db), async (caller) => {
      const ctx = { ...reading, caller, db, setHeader };
      if (caller !== reading.caller) await authorize(ctx);
      const value = await work(ctx);
      decision?.commit();
      return value;
    });
  }, writeOptions);
  for (const [name, value] of headers) sendHeader?.(name, value);
  return result;
}

/** Runs a write operation and records its event, unless it changed nothing. */
export async function runWriteOperation(
  transaction: TransactionContext,
  operation: WriteOperation,
  request: Message,
  prepared?: unknown,
): Promise<Message> {
  let isChanged = true;
  const unchanged = () => {
    isChanged = false;
  };
  const ctx: WriteContext = { ...transaction, unchanged };
  const response = await operation.run(ctx, request, prepared);
  if (ctx.method.event && isChanged) await recordEvent(ctx, operation.event?.(ctx, request, response));
  return response;
}

/** What work that is not an operation of the method table returns: its result, and the facts of its events. */
export interface WithEvents<T> {
  readonly result: T;
  readonly events: readonly AnyEventFacts[];
}

/** Records the events that `work` returns, in its transaction. */
export const recordingEvents =
  <T>(work: (ctx: TransactionContext) => Promise<WithEvents<T>>) =>
  async (ctx: TransactionContext): Promise<T> => {
    const { result, events } = await work(ctx);
    for (const facts of events) await recordEvent(ctx, facts);
    return result;
  };
