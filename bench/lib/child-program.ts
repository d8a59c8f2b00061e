import { type ChildProcess, fork, type Serializable } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** A program in a child process that sends one message in response to each message. */
export interface ChildProgram {
  readonly process: ChildProcess;
  /** Sends a message and returns the response. */
  request<T>(message: Serializable): Promise<T>;
  stop(): Promise<void>;
}

/** Starts a program of this directory in a child process. */
export function startChildProgram(program: string, execArgv: readonly string[] = []): ChildProgram {
  const child = fork(join(import.meta.dirname, program), { execArgv: [...execArgv], serialization: 'advanced' });
  return {
    process: child,
    async request<T>(message: Serializable): Promise<T> {
      const response = once(child, 'message');
      child.send(message);
      const [value] = await response;
      return value as T;
    },
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}
