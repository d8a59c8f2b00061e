import { readFileSync } from 'node:fs';
import { file } from '../config-values.ts';

/** The value of an option: `@path` stands for the content of a file and `-` for standard input, anything else for itself. */
export function readInput(text: string): string {
  if (text === '-' || text === '@-') return readFileSync(0, 'utf8').trim();
  return text.startsWith('@') ? file(text.slice(1)).trim() : text;
}
