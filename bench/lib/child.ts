import { type ChildProcess, fork, type Serializable } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface Child {
  readonly process: ChildProcess;
  /** Sends a message and waits for the answer. */
  ask<T>(message: Serializable): Promise<T>;
  stop(): Promise<void>;
}

/** A program of this directory in a process of its own, which answers each message with one. */
export function startChild(program: string, execArgv: readonly string[] = []): Child {
  const child = fork(join(import.meta.dirname, program), { execArgv: [...execArgv], serialization: 'advanced' });
  return {
    process: child,
    async ask<T>(message: Serializable): Promise<T> {
      const answer = once(child, 'message');
      child.send(message);
      const [value] = await answer;
      return value as T;
    },
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}
