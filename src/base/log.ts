import { pino } from 'pino';
import { type LogOutput, standardErrorOutput } from './log-output.ts';
import { redact, redactText } from './redact.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** The fields of a log line, such as `requestId`. An error belongs into the field `error`. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  /** Pass a function when the fields are expensive: it is called only when the level is enabled. */
  debug(fields: LogFields | (() => LogFields), message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/** The log of a process, as the program that owns it sees it. */
export interface ProcessLog extends Log {
  setLevel(level: LogLevel): void;
  /** Waits until all lines are written, but no longer than `timeoutMs`. */
  flush(timeoutMs: number): Promise<void>;
}

export interface LogOptions {
  readonly level: LogLevel;
  /**
   * Receives one line per call. The default is standard error, because commands print their output to standard output.
   */
  readonly destination?: Pick<LogOutput, 'write'> & Partial<LogOutput>;
}

/** Logs JSON lines with the time in ISO 8601, the level as a word, and secrets redacted. */
export function createLogger({ level, destination = standardErrorOutput() }: LogOptions): ProcessLog {
  const logger = pino(
    {
      level,
      base: null,
      messageKey: 'message',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (word) => ({ level: word }) },
    },
    destination,
  );
  const at =
    (word: Exclude<LogLevel, 'silent'>) =>
    (fields: LogFields | (() => LogFields), message: string): void => {
      if (!logger.isLevelEnabled(word)) return;
      logger[word](redact(typeof fields === 'function' ? fields() : fields), redactText(message));
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    setLevel: (word) => {
      logger.level = word;
    },
    flush: async (timeoutMs) => destination.flush?.(timeoutMs),
  };
}
