import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { ConfigError, readFileContent } from '../config-values.ts';

/** Returns the value of an option. `@path` means the content of a file, `-` means standard input. */
export function readOptionValue(text: string): string {
  if (text === '-' || text === '@-') return readFileSync(0, 'utf8').trim();
  return text.startsWith('@') ? readFileContent(text.slice(1)).trim() : text;
}

/** Makes an option parser for commander: a ConfigError becomes a usage error. */
export function optionParser<T>(parse: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      throw error instanceof ConfigError ? new InvalidArgumentError(error.message) : error;
    }
  };
}
