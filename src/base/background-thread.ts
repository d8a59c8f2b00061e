import { type TransferListItem, Worker } from 'node:worker_threads';
import { ApiError, Code } from './errors.ts';

/** A task took more time than it may. */
export class TaskLimitError extends Error {
  override readonly name = 'TaskLimitError';
}

export interface BackgroundThreadOptions {
  /** The time for one task. */
  readonly taskMs: number;
  /** How long the thread waits for another task until it ends and frees its memory. */
  readonly idleMs?: number;
}

/** Runs tasks outside of the thread that serves requests, so that long ones do not block the event loop. */
export interface BackgroundThread<Input, Result> {
  /**
   * Runs a task after those before it. Throws a TaskLimitError when it takes too long, and UNAVAILABLE when too many
   * tasks are waiting.
   */
  run(input: Input, transfer?: readonly TransferListItem[]): Promise<Result>;
}

interface Task {
  readonly input: unknown;
  readonly transfer: readonly TransferListItem[];
  resolve(result: never): void;
  reject(error: unknown): void;
}

const MAX_WAITING = 100;
const ENTRY = new URL('./background-thread.worker.ts', import.meta.url);

/**
 * Creates a background thread for the tasks of one module, which exports `run(input)`. A task must bound its memory
 * itself: a thread that reaches the heap limit of Node sometimes ends the whole process. The thread starts with the first
 * task. It keeps the process alive only while it runs a task.
 */
export function createBackgroundThread<Input, Result>(
  module: URL,
  { taskMs, idleMs = 10_000 }: BackgroundThreadOptions,
): BackgroundThread<Input, Result> {
  const waiting: Task[] = [];
  let running: Task | undefined;
  let worker: Worker | undefined;
  let timer: NodeJS.Timeout | undefined;

  function startWorker(): Worker {
    const started = new Worker(ENTRY, {
      workerData: { module: module.href },
      // The flags of the server process are for its own heap.
      execArgv: [],
    });
    started.on('message', ({ result, error }) =>
      settle((task) => (error ? task.reject(error) : task.resolve(result as never))),
    );
    started.on('error', (error) => {
      drop(started);
      settle((task) => task.reject(error));
    });
    return started;
  }

  /** Ends the current task and starts the next one. */
  function settle(end: (task: Task) => void): void {
    clearTimeout(timer);
    const task = running;
    running = undefined;
    if (task) end(task);
    startNext();
  }

  function startNext(): void {
    if (running) return;
    running = waiting.shift();
    if (!running) {
      worker?.unref();
      timer = setTimeout(() => worker && drop(worker), idleMs).unref();
      return;
    }
    clearTimeout(timer);
    worker ??= startWorker();
    worker.ref();
    worker.postMessage(running.input, running.transfer);
    timer = setTimeout(() => {
      if (worker) drop(worker);
      settle((task) => task.reject(new TaskLimitError(`the task takes more than ${taskMs} ms`)));
    }, taskMs).unref();
  }

  function drop(dropped: Worker): void {
    if (worker === dropped) worker = undefined;
    dropped.removeAllListeners().on('error', () => {});
    void dropped.terminate();
  }

  return {
    run: (input, transfer = []) =>
      new Promise<Result>((resolve, reject) => {
        if (waiting.length >= MAX_WAITING) {
          reject(new ApiError(Code.UNAVAILABLE, 'Unavailable: too many requests of this kind are waiting; try again'));
          return;
        }
        waiting.push({ input, transfer, resolve, reject });
        startNext();
      }),
  };
}
