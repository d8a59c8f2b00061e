import { pino } from 'pino';
import { redact, redactText } from './redact.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** Facts of a log line, such as `requestId`. Log an error as the field `error`. */
export type LogFields = Readonly<Record<string, unknown>>;

/** All that the rest of the code knows about logging. */
export interface Log {
  /** Fields that cost something to find out come as a function, which is called only when somebody is looking. */
  debug(fields: LogFields | (() => LogFields), message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

export interface LogOptions {
  readonly level: LogLevel;
  /** Takes one line at a time; standard error by default, because standard output belongs to answers. */
  readonly destination?: { write(line: string): void };
}

/** JSON lines with the time in ISO 8601 and the level as a word, free of secrets. */
export function createLogger({ level, destination = pino.destination(2) }: LogOptions): Log {
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
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
